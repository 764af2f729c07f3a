package network_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFailedNetworkUsedBeforeItsRemoval lets an instance use a failed network whose removal
// was accepted, and has not begun: the network remains, and does not become sound by that.
func TestFailedNetworkUsedBeforeItsRemoval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t, func(c *config) { c.Parallel = 1 })
		w.create(t, s, request())
		w.refused = "a" // the former wire, too
		op, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error {
			n.Spec = json.RawMessage(`{"wires":["aa"]}`)
			return nil
		}})
		must(t, err)
		w.end(t, op)
		failed, err := s.Get(t.Context(), oam)
		must(t, err)
		w.refused, w.gate = "", make(chan struct{})
		_, err = s.Create(t.Context(), request(func(r *nf.SharedRequest) { r.Resource.Name = "wan" })) // takes the only place
		must(t, err)
		synctest.Wait()
		op, err = s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		_, busy := s.Use(t.Context(), oam, instance("vnf-1"))
		close(w.gate)
		op = w.end(t, op)
		now, err := s.Get(t.Context(), oam)
		must(t, err)
		if nf.KindOf(busy) != nf.Busy || !op.Network.Used || now.State != nf.SharedFailed || now.Failure.Message != failed.Failure.Message {
			t.Errorf("the network was used: %v; its removal found a holder: %t; it is %s: %q, want failed: %q", busy, op.Network.Used, now.State, now.Failure.Message, failed.Failure.Message)
		}
	})
}
