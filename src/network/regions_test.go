package network_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// TestServed checks that a driver learns what the region serves, also when the network
// changes.
func TestServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		w.serves = true
		op, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(*nf.Network) error { return nil }})
		must(t, err)
		w.end(t, op)
		n, err := s.Get(t.Context(), oam)
		must(t, err)
		if want := `{"wires":["a"],"wired":true}`; string(n.Spec) != want {
			t.Errorf("the spec is %s, want %s", n.Spec, want)
		}
		w.setAway(true)
		if _, err := s.Create(t.Context(), request()); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("a driver does not know what a region serves that does not answer: %v", err)
		}
	})
}

// TestPlaces creates objects that are cluster-scoped, or in the namespace of a
// controller.
func TestPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request(func(r *nf.SharedRequest) { r.Resource.Spec = json.RawMessage(`{"wires":["global","operated"]}`) }))
		if diff := cmp.Diff([]string{"Wire.test//oam-global", "Wire.test/operator/oam-operated"}, w.applied()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// TestFrozen refuses a change that the objects of a network cannot follow while pods
// are attached.
func TestFrozen(t *testing.T) {
	for name, tc := range map[string]struct {
		holder nf.Holder
		kind   nf.Kind
	}{
		"Instance": {instance("vnf-1"), nf.Conflict},
		"Orphans":  {shared.Named(nf.OrphansOf + "vnf-1"), nf.Conflict},
		"Name":     {shared.Named("bob"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				w.create(t, s, request())
				_, err := s.Use(t.Context(), oam, tc.holder)
				must(t, err)
				op, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error {
					n.Spec = json.RawMessage(`{"wires":["a"],"local":true}`)
					return nil
				}})
				w.end(t, op)
				v := nf.ViolationsOf(err)
				if tc.kind == 0 && err != nil || tc.kind != 0 && (nf.KindOf(err) != tc.kind || len(v) != 1 || v[0].Field != "spec.local") {
					t.Errorf("with this holder: %v", err)
				}
			})
		})
	}
}

// TestStuck ends a removal whose objects have a finalizer that nothing removes. The
// network names it, and a later removal succeeds.
func TestStuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		w.stuck = "its deletion waits for the finalizers example.org/f"
		op, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann", Timeout: time.Minute})
		must(t, err)
		op = w.end(t, op)
		n, err := s.Get(t.Context(), oam)
		must(t, err)
		if op.State != nf.OperationFailed || op.Failure.Kind != nf.Timeout || n.State != nf.SharedFailed || !strings.Contains(n.Failure.Message, w.stuck) {
			t.Errorf("the operation is %s: %+v; the network is %s: %s", op.State, op.Failure, n.State, n.Failure.Message)
		}
		w.stuck = ""
		op, err = s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		if op = w.end(t, op); op.State != nf.Succeeded || state(t, s) != "" {
			t.Errorf("the second removal is %s, and the network %q", op.State, state(t, s))
		}
	})
}
