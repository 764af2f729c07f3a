package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestAfter reads records after an id that exists, one that does not, and one that no
// record can have.
func TestAfter(t *testing.T) {
	t.Parallel()
	kv := memory.New()
	table := records(kv)
	long := strings.Repeat("x", 512-len("records/a/"))
	all := []string{"a/1", "a/1 ", "a/1/2", "a/2", "a/" + long, "a/~", "b/1"}
	for _, id := range all {
		must(t, table.Insert(t.Context(), id, record{ID: id}))
	}
	cases := map[string]struct {
		reason, prefix, after string
		want                  []string
	}{
		"First":    {"without an id, a list begins with the first record", "a/", "", all[:6]},
		"Existing": {"the record with the id is left out", "a/", "1", all[1:6]},
		"Missing":  {"the id need not exist", "a/", "1/", all[2:6]},
		"Last":     {"there are no records after the last", "a/", "~", nil},
		"Longer":   {"no id has the length", "a/", long + "x", all[5:6]},
		"Tildes":   {"an id that cannot be incremented", "a/", strings.Repeat("~", 512), nil},
		"Control":  {"an id with a byte that keys cannot have", "a/", "1\x1f", all[1:6]},
		"All":      {"a list of all records", "", "a/2", all[4:]},
	}
	for name, tc := range cases {
		got, err := collect(table.After(t.Context(), tc.prefix, nf.Cursor{After: tc.after, Expect: 1}))
		must(t, err)
		var ids []string
		for _, r := range got {
			ids = append(ids, r.ID)
		}
		if diff := cmp.Diff(tc.want, ids); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestMerged reads a page of the records of some groups. The reads must depend on the
// number of groups, and not on the number of records.
func TestMerged(t *testing.T) {
	t.Parallel()
	const groups = 4
	in := func(r record) (string, bool) {
		group := r.ID[:strings.Index(r.ID, "/")+1]
		return group, group != "group2/"
	}
	key := func(r record) string { return r.ID[strings.Index(r.ID, "/")+1:] }
	var reads []int
	for _, each := range []int{100, 1000} {
		kv := &storetest.Counting{KV: memory.New()}
		table := records(kv)
		for i := range groups * each {
			id := fmt.Sprintf("group%d/%05d", i%groups, i)
			must(t, table.Insert(t.Context(), id, record{ID: id}))
		}
		for after, want := range map[string][]string{
			"":      {"00000", "00001", "00003", "00004", "00005"},
			"00200": {"00201", "00203", "00204", "00205", "00207"},
		} {
			kv.Entries = 0
			var got []string
			for r, err := range table.Merged(t.Context(), "", nf.Cursor{After: after}, key, in) {
				must(t, err)
				if got = append(got, key(r)); len(got) == len(want) {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after %q (-want +got):\n%s", after, diff)
			}
			reads = append(reads, kv.Entries)
		}
	}
	for _, n := range reads {
		if n != reads[0] || n > 2*groups+5 {
			t.Errorf("the pages read %v records", reads)
			break
		}
	}
}

// TestFirstPage returns the first page for the numbers of entries that a caller expects.
func TestParts(t *testing.T) {
	for keys := range 8 {
		for n := 1; n <= 4; n++ {
			kv := memory.New()
			want := []string{}
			for i := range keys {
				key := fmt.Sprint("k", i)
				_, err := kv.Put(t.Context(), key, []byte("v"), store.Absent)
				must(t, err)
				want = append(want, key)
			}
			got := []string{}
			for e, err := range store.Parts(t.Context(), kv, n) {
				must(t, err)
				got = append(got, e.Key)
				must(t, kv.Delete(t.Context(), e.Key, e.Revision)) // a list is still right if its start is gone
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%d keys in parts of %d: -want +got:\n%s", keys, n, d)
			}
		}
	}
	kv := storetest.Failing{KV: memory.New(), Fail: func(string, string) error { return nf.E(nf.Unreachable, "list", "keys", nil) }}
	errs := 0
	for _, err := range store.Parts(t.Context(), kv, 1) {
		if errs++; nf.KindOf(err) != nf.Unreachable || errs > 1 {
			t.Errorf("error %d is %v", errs, err)
		}
	}
	if errs == 0 {
		t.Error("an error is not yielded")
	}
}

func TestFirstPage(t *testing.T) {
	t.Parallel()
	for expected, want := range map[int]int{0: 64, 1: 1, 51: 51, 10_000: 512} {
		if got := store.FirstPage(store.Expecting(t.Context(), expected), 64, 512); got != want {
			t.Errorf("the first page has %d entries if %d are expected, want %d", got, expected, want)
		}
	}
	if got := store.FirstPage(t.Context(), 64, 512); got != 64 {
		t.Errorf("the first page has %d entries", got)
	}
}
