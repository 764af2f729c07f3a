package store_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestWriteIfAbsent deletes what refers to a record that does not exist, as it was read.
func TestWriteIfAbsent(t *testing.T) {
	cases := map[string]struct {
		reason    string
		meanwhile func(records, others store.Table[record]) error
		kept      bool
	}{
		"Absent":  {"nothing has changed", func(_, _ store.Table[record]) error { return nil }, false},
		"Created": {"the record exists now", func(records, _ store.Table[record]) error { return records.Insert(t.Context(), "a", record{ID: "a"}) }, true},
		"Written": {"another request refers to it", func(_, others store.Table[record]) error { return others.Put(t.Context(), "of a", record{ID: "a"}) }, true},
		"Gone":    {"another request has deleted it", func(_, others store.Table[record]) error { return others.Delete(t.Context(), "of a") }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, kv store.KV) {
				all, others := records(kv), store.NewTable[record](kv, "others/", "other")
				must(t, others.Insert(t.Context(), "of a", record{ID: "a"}))
				ops, err := others.DeleteWhereOps(t.Context(), "of a", func(record) bool { return true })
				must(t, err)
				must(t, tc.meanwhile(all, others))
				must(t, all.WriteIfAbsent(t.Context(), "a", ops...))
				must(t, all.WriteIfAbsent(t.Context(), "a"))
				if _, err := others.Get(t.Context(), "of a"); nf.IgnoreNotFound(err) != nil || (err == nil) != tc.kept {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
		})
	}
}
