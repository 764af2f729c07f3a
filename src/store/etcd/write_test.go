package etcd

import (
	"fmt"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestWriteTogether compares the revisions of the keys that a list writes: those
// of one transaction are equal.
func TestWriteTogether(t *testing.T) {
	cases := map[string]struct {
		reason       string
		keys, size   int
		transactions int
	}{
		"Small": {"a list that fits is one transaction", 20, 100, 1},
		"Many":  {"etcd limits the ops of a transaction", 250, 1, 3},
		"Large": {"etcd limits the size of a request", 4, store.MaxValue / 2, 2},
	}
	s := open(t, Config{Dir: t.TempDir()})
	for name, c := range cases {
		var ops []store.Op
		for i := range c.keys {
			ops = append(ops, store.Op{Key: fmt.Sprintf("%s/%03d", name, i), Value: make([]byte, c.size), Expect: store.Absent})
		}
		revisions, err := store.Write(t.Context(), s, ops)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		different := map[store.Revision]bool{}
		for i, op := range ops {
			e, err := s.Get(t.Context(), op.Key)
			if err != nil || e.Revision != revisions[i] {
				t.Fatalf("%s: key %s has revision %d and the error %v; Write returned %d", c.reason, op.Key, e.Revision, err, revisions[i])
			}
			different[e.Revision] = true
		}
		if len(different) != c.transactions {
			t.Errorf("%s: %d keys were written in %d transactions, want %d", c.reason, c.keys, len(different), c.transactions)
		}
	}
}

// TestWriteNothing has a list whose last op fails: nothing of it is written.
func TestWriteNothing(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	if _, err := s.Put(t.Context(), "there", nil, store.Absent); err != nil {
		t.Fatal(err)
	}
	_, err := store.Write(t.Context(), s, []store.Op{
		{Key: "first", Value: []byte("x"), Expect: store.Any},
		{Key: "there", Value: []byte("x"), Expect: store.Absent},
	})
	if nf.KindOf(err) != nf.Exists {
		t.Errorf("the error is %v, want one of a key that exists", err)
	}
	if _, err := s.Get(t.Context(), "first"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("the op before the failed one was written, or cannot be read: %v", err)
	}
}
