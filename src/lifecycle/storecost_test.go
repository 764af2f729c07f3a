package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/cache"
)

// TestStoreCost counts the requests to the store for one VNF instance with an object
// in each of four stages. Writes that are one transaction on etcd count as one. The
// counts do not depend on the machine. The store is the embedded one, whose records are
// kept in memory.
func TestStoreCost(t *testing.T) { synctest.Test(t, testStoreCost) }

func testStoreCost(t *testing.T) {
	f := newField(t, func(kv store.KV) store.KV { return cache.New(kv) })
	if _, _, err := f.catalog.Upload(t.Context(), nf.Package{ID: "four"}, tarOf(map[string]string{"list": "a/b/c/d"})); err != nil {
		t.Fatal(err)
	}
	var instance string
	instantiate := func(namespace string) (nf.Operation, error) {
		op, err := f.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: namespace, Name: "of-" + namespace, Spec: nf.Spec{Package: "four"}})
		instance = op.Subject.ID
		return op, err
	}
	terminate := func() (nf.Operation, error) { return f.Terminate(t.Context(), instance, nf.TerminateRequest{}) }
	cases := []struct {
		reason        string
		do            func() (nf.Operation, error)
		writes, reads int
	}{
		// Its acceptance, its begin, its namespace, all objects applied, the begin of its end, its end. A plan, a name, an
		// instance and a namespace that do not exist yet are read.
		{"a new instance", func() (nf.Operation, error) { return instantiate("new") }, 6, 4},
		{"the removal of an instance and its namespace", terminate, 7, 1},
		{"an instance after another one", func() (nf.Operation, error) { return instantiate("other") }, 6, 4},
	}
	for _, c := range cases {
		writes, reads := f.storeCost(t, c.do)
		t.Logf("%s: writes %v, reads %v", c.reason, writes, reads)
		if sum(writes) > c.writes || sum(reads) > c.reads {
			t.Errorf("%s has cost %d writes and %d reads, want at most %d and %d", c.reason, sum(writes), sum(reads), c.writes, c.reads)
		}
	}
}

func sum(counts map[string]int) (n int) {
	for _, each := range counts {
		n += each
	}
	return n
}

// storeCost returns the writes and reads of an operation, by method and table.
func (f *field) storeCost(t *testing.T, do func() (nf.Operation, error)) (writes, reads map[string]int) {
	t.Helper()
	f.ledger.mu.Lock()
	clear(f.ledger.calls)
	f.ledger.mu.Unlock()
	op, err := do()
	if err != nil {
		t.Fatal(err)
	}
	if op, err = f.Wait(context.WithValue(t.Context(), uncounted{}, true), op.ID); err != nil || op.State != nf.Succeeded {
		t.Fatalf("the operation is %s: %v, %v", op.State, op.Failure, err)
	}
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()
	writes, reads = map[string]int{}, map[string]int{}
	for what, n := range f.ledger.calls {
		switch method, _, _ := strings.Cut(what, " "); {
		case strings.HasSuffix(what, " replicas"), what == "list claims": // of the replica, by the clock
		case method == "get", method == "list":
			reads[what] = n
		default:
			writes[what] = n
		}
	}
	return writes, reads
}
