package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestTwinOfTheDead has a process come to again in the middle of accepting a
// request, long after it was taken for dead and the client has asked another:
// there is one instance, and the client hears of one operation.
func TestTwinOfTheDead(t *testing.T) {
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
		requests := store.NewTable[map[string]any](s.kv, "requests/", "request")
		for e, err := range s.kv.List(t.Context(), "requests/") {
			if err != nil {
				t.Fatal(err)
			}
			if err := requests.Delete(t.Context(), e.Key[len("requests/"):]); err != nil {
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
		if len(s.catalog.held) != 2 {
			t.Errorf("what the instance holds: %v", s.catalog.held)
		}
		gone, err := a.Terminate(t.Context(), first.Instance, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		a.end(t, gone)
	})
}
