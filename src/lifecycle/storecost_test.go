package lifecycle_test

import (
	"maps"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/cache"
)

// TestStoreCost counts the requests to the store for one VNF instance with an object
// in each of four stages. Writes that are one transaction on etcd count as one. The
// counts do not depend on the machine. The store is the embedded one, whose records are
// kept in memory.
func TestStoreCost(t *testing.T) {
	f := newField(t, func(kv store.KV) store.KV { return cache.New(kv) })
	if _, _, err := f.catalog.Upload(t.Context(), nf.Package{ID: "four"}, tarOf(map[string]string{"list": "a/b/c/d"})); err != nil {
		t.Fatal(err)
	}
	cost := func(namespace string) (writes, reads map[string]int) {
		f.ledger.mu.Lock()
		clear(f.ledger.calls)
		f.ledger.mu.Unlock()
		op, err := f.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: namespace, Name: "of-" + namespace, Spec: nf.Spec{Package: "four"}})
		if err != nil {
			t.Fatal(err)
		}
		if op, err = f.Wait(t.Context(), op.ID); err != nil || op.State != nf.Succeeded {
			t.Fatalf("the operation is %s: %v, %v", op.State, op.Failure, err)
		}
		f.ledger.mu.Lock()
		defer f.ledger.mu.Unlock()
		writes, reads = map[string]int{}, maps.Clone(f.ledger.calls)
		for what, n := range f.ledger.calls {
			switch what {
			case "put replicas", "get replicas", "list replicas", "list claims": // of the replica, by the clock
				delete(reads, what)
			default:
				if what[0] != 'g' && what[0] != 'l' {
					writes[what] = n
					delete(reads, what)
				}
			}
		}
		return writes, reads
	}
	const (
		mostWrites = 6 // its acceptance, its begin, its namespace, all objects applied, the begin of its end, its end
		mostReads  = 4 // for a plan, a name, an instance and a namespace that do not exist yet
	)
	sum := func(counts map[string]int) (n int) {
		for _, each := range counts {
			n += each
		}
		return n
	}
	for _, namespace := range []string{"new", "other"} {
		writes, reads := cost(namespace)
		t.Logf("in namespace %s: writes %v, reads %v", namespace, writes, reads)
		if sum(writes) > mostWrites || sum(reads) > mostReads {
			t.Errorf("an instance has cost %d writes and %d reads, want at most %d and %d", sum(writes), sum(reads), mostWrites, mostReads)
		}
	}
}
