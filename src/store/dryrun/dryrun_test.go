package dryrun_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/dryrun"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return dryrun.New(memory.New()) })
}

// TestStoreKeepsBelow writes over a store that has something, and finds it as
// it was.
func TestStoreKeepsBelow(t *testing.T) {
	t.Parallel()
	ctx, below := t.Context(), memory.New()
	for _, key := range []string{"a", "b", "c", "e"} {
		if _, err := below.Put(ctx, key, []byte("old"), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	content := func(kv store.KV) map[string]string {
		out := map[string]string{}
		last := ""
		for e, err := range kv.List(ctx, "", "") {
			if err != nil || e.Key <= last {
				t.Fatalf("%q follows %q, %v", e.Key, last, err)
			}
			last = e.Key
			one, err := kv.Get(ctx, e.Key)
			if diff := cmp.Diff(e, one); err != nil || diff != "" {
				t.Errorf("%v, the list and the entry differ:\n%s", err, diff)
			}
			out[e.Key] = string(e.Value)
		}
		return out
	}
	s := dryrun.New(below)
	old, err := s.Get(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]error{}
	_, steps["replace"] = s.Put(ctx, "b", []byte("new"), old.Revision)
	steps["remove"] = s.Delete(ctx, "c", store.Any)
	_, steps["between"] = s.Put(ctx, "d", []byte("new"), store.Absent)
	_, steps["last"] = s.Put(ctx, "f", []byte("new"), store.Absent)
	for step, err := range steps {
		if err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	if _, err := s.Put(ctx, "b", nil, old.Revision); nf.KindOf(err) != nf.Conflict {
		t.Errorf("a revision of before: %v", err)
	}
	if _, err := s.Get(ctx, "c"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what was removed: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old", "b": "new", "d": "new", "e": "old", "f": "new"}, content(s)); diff != "" {
		t.Errorf("what is seen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "old", "b": "old", "c": "old", "e": "old"}, content(below)); diff != "" {
		t.Errorf("what is there (-want +got):\n%s", diff)
	}
}
