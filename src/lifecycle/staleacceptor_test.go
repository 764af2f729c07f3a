package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestStaleAcceptor repeats a request at a second replica after the record of its
// key was deleted, as if a replica that was considered dead had accepted the
// request late. There is one instance, and both replicas return one operation.
func TestStaleAcceptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var one, two meter
		a := s.replica(&one)
		b := s.replica(&two)
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: "a"},
			Options: nf.Options{Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}}
		first, err := a.Instantiate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		a.end(t, first)
		// As if the key's record had gone with the dead.
		requests := store.NewTable[map[string]any](s.kv, "idempotency/", "request")
		for e, err := range s.kv.List(t.Context(), "idempotency/", "") {
			if err != nil {
				t.Fatal(err)
			}
			if err := requests.Delete(t.Context(), e.Key[len("idempotency/"):]); err != nil {
				t.Fatal(err)
			}
		}
		second, err := b.Instantiate(t.Context(), req)
		if err != nil || second.ID != first.ID {
			t.Errorf("the second answer speaks of operation %q, the first of %q; error %v", second.ID, first.ID, err)
		}
		synctest.Wait()
		all, err := a.Instances(t.Context())
		if err != nil || len(all) != 1 || all[0].State != nf.Ready {
			t.Errorf("instances: %+v, %v", all, err)
		}
		if len(s.catalog.held()) != 2 {
			t.Errorf("what the instance holds: %v", s.catalog.held())
		}
		gone, err := a.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		a.end(t, gone)
	})
}
