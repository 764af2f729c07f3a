package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

func listPrefix(t *testing.T, kv store.KV) {
	all := []string{"A", "a", "a.", "a/", "a/1", "a/1/2", "a0", "a~", "a~~", "b", "~"}
	for _, key := range all {
		mustPut(t, kv, key, "value of "+key)
	}
	for _, prefix := range []string{"", "a", "a/", "a/1", "a/1/", "a0", "a~", "b", "b/", "~", "~~", "0"} {
		want := []string{}
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key+"=value of "+key)
			}
		}
		got := []string{}
		for _, e := range list(t, kv, prefix) {
			got = append(got, e.Key+"="+string(e.Value))
			if now := get(t, kv, e.Key).Revision; e.Revision != now {
				t.Errorf("prefix %q: %q is listed with revision %d, want %d", prefix, e.Key, e.Revision, now)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func listStart(t *testing.T, kv store.KV, keys int) {
	cases := map[string]struct {
		reason        string
		prefix, start string
		want          []string
	}{
		"None":         {"without a start, a list begins with the first key", "p/", "", []string{"p/b", "p/d", "p/d/1", "p/f"}},
		"Key":          {"the start is listed", "p/", "p/d", []string{"p/d", "p/d/1", "p/f"}},
		"Between":      {"the start need not exist", "p/", "p/c", []string{"p/d", "p/d/1", "p/f"}},
		"AfterKey":     {"a key with a space is directly after the key", "p/", "p/d ", []string{"p/d/1", "p/f"}},
		"LastKey":      {"one key is left", "p/", "p/f", []string{"p/f"}},
		"BeforeFirst":  {"a start before the first key leaves nothing out", "p/", "p/a", []string{"p/b", "p/d", "p/d/1", "p/f"}},
		"AfterLast":    {"nothing is left", "p/", "p/g", nil},
		"Prefix":       {"no key with the prefix is before it", "p/", "p/", []string{"p/b", "p/d", "p/d/1", "p/f"}},
		"PrefixIsKey":  {"a key that equals the prefix is listed", "p/d", "p/d", []string{"p/d", "p/d/1"}},
		"PartOfPrefix": {"a part of the prefix is before all its keys", "p/", "p", []string{"p/b", "p/d", "p/d/1", "p/f"}},
		"BeforePrefix": {"the start need not have the prefix", "p/", "A", []string{"p/b", "p/d", "p/d/1", "p/f"}},
		"AfterPrefix":  {"a start after all keys with the prefix leaves none", "p/", "q", nil},
		"NoPrefix":     {"a start works for all keys together", "", "p/e", []string{"p/f", "p0", "z"}},
		"AfterAll":     {"no key is left", "", "zz", nil},
	}
	for _, key := range []string{"A", "o", "p", "p/b", "p/d", "p/d/1", "p/f", "p0", "z"} {
		mustPut(t, kv, key, "v")
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, keysFrom(t, kv, c.prefix, c.start)); diff != "" {
			t.Errorf("%s: %s: prefix %q, start %q (-want +got):\n%s", name, c.reason, c.prefix, c.start, diff)
		}
	}
	var all []string
	for i := range keys {
		all = append(all, fmt.Sprintf("y/%05d", i))
		mustPut(t, kv, all[i], "v")
	}
	for _, from := range []int{1, keys / 2, keys - 1} {
		if diff := cmp.Diff(all[from:], keysFrom(t, kv, "y/", all[from])); diff != "" {
			t.Errorf("a long list that starts at entry %d (-want +got):\n%s", from, diff)
		}
	}
}

func keysFrom(t *testing.T, kv store.KV, prefix, start string) (keys []string) {
	t.Helper()
	for e, err := range kv.List(t.Context(), prefix, start) {
		if err != nil {
			t.Fatalf("cannot list %q from %q: %v", prefix, start, err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

func listOrder(t *testing.T, kv store.KV, keys int) {
	want := make([]string, keys)
	for i := range want {
		want[i] = fmt.Sprintf("order/%c%d", " /0Aa~"[i%6], i)
	}
	for _, i := range rand.Perm(keys) {
		mustPut(t, kv, want[i], "v")
	}
	slices.Sort(want)
	got := []string{}
	for _, e := range list(t, kv, "order/") {
		got = append(got, e.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list is not in order (-want +got):\n%s", diff)
	}
}

func listExpecting(t *testing.T, kv store.KV) {
	const keys = 20
	for i := range keys {
		mustPut(t, kv, fmt.Sprintf("k%02d", i), "v")
	}
	for _, expected := range []int{0, 1, 3, keys, 10 * many} {
		for stop := range keys + 1 {
			seen := 0
			for e, err := range kv.List(store.Expecting(t.Context(), expected), "k", "") {
				if err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("k%02d", seen); e.Key != want {
					t.Errorf("with %d expected entries, entry %d is %q", expected, seen, e.Key)
				}
				if seen++; seen == stop {
					break
				}
			}
			if want := stop; stop > 0 && seen != want || stop == 0 && seen != keys {
				t.Errorf("with %d expected entries, a loop that stops after %d sees %d", expected, stop, seen)
			}
		}
	}
}

func listStops(t *testing.T, kv store.KV) {
	for i := range 10 {
		mustPut(t, kv, fmt.Sprintf("k%d", i), "v")
	}
	seen := 0
	for e, err := range kv.List(t.Context(), "k", "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := kv.Delete(t.Context(), e.Key, e.Revision); err != nil {
			t.Fatalf("cannot remove %q while it is listed: %v", e.Key, err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if left := len(list(t, kv, "k")); left != 7 {
		t.Errorf("%d keys are left after a loop that removed 3 of 10", left)
	}
}

func listBig(t *testing.T, kv store.KV, l load) {
	for i := range l.big {
		mustPut(t, kv, fmt.Sprintf("big/%02d", i), strings.Repeat(string(rune('a'+i)), l.limit))
	}
	got := list(t, kv, "big/")
	if len(got) != l.big {
		t.Fatalf("%d big values are listed, want %d", len(got), l.big)
	}
	for i, e := range got {
		if want := bytes.Repeat([]byte{byte('a' + i)}, l.limit); !bytes.Equal(e.Value, want) {
			t.Errorf("the value of %q, of %d bytes, is not what was put", e.Key, len(e.Value))
		}
	}
}

func listRace(t *testing.T, kv store.KV) {
	for i := range many {
		mustPut(t, kv, fmt.Sprintf("old/%04d", i), "v")
	}
	var writers errgroup.Group
	writers.Go(func() error {
		for i := range 100 {
			if _, err := kv.Put(t.Context(), fmt.Sprintf("old/%04d/new", i*13), nil, store.Absent); err != nil {
				return err
			}
			if _, err := kv.Put(t.Context(), fmt.Sprintf("old/%04d", i*13), nil, store.Any); err != nil {
				return err
			}
		}
		return nil
	})
	for range 3 {
		last, old := "", 0
		for _, e := range list(t, kv, "old/") {
			if e.Key <= last {
				t.Errorf("%q is listed after %q", e.Key, last)
			}
			if last = e.Key; !strings.HasSuffix(e.Key, "/new") {
				old++
			}
		}
		if old != many {
			t.Errorf("%d of %d keys that were there all the time are listed", old, many)
		}
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
}
