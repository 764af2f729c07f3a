package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestHoldsOfAnUndo has the holds released before an operation is undone, as they are when
// its end is interrupted.
func TestHoldsOfAnUndo(t *testing.T) {
	s := newSite(t)
	e := s.start()
	id := e.up(t, "pods.web", named, attaching("oam", "lan")).Subject.ID
	for _, network := range []string{"east.oam", "east.lan"} {
		if err := (fakeNetworks{s.kv}).Leave(t.Context(), network, nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	e.upgrade(t, id, onNetworks("pods.web_bad", nf.Undo, "dmz"))
	if diff := cmp.Diff([]string{"east.lan", "east.oam"}, s.networksHeld()); diff != "" {
		t.Errorf("the networks in force are held (-want +got):\n%s", diff)
	}
}

// TestUsingBeforeTheFirstRevision asks for the workloads of an instance whose
// instantiation has failed.
func TestUsingBeforeTheFirstRevision(t *testing.T) {
	s := newSite(t)
	e := s.start()
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	id := e.up(t, "pods.web_bad", named, attaching("oam"), func(r *nf.InstantiateRequest) { r.OnFailure = nf.Keep }).Subject.ID
	if in := e.only(t.Context()); in.Revision != 0 || in.State != nf.Broken {
		t.Fatalf("the instance is %s, with revision %d", in.State, in.Revision)
	}
	got, err := e.Using(t.Context(), id, "oam")
	if err != nil || len(got) == 0 {
		t.Errorf("its workloads are %v, %v", got, err)
	}
}
