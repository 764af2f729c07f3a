package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// busyNetworks cannot be left while an operation runs there.
type busyNetworks struct {
	fakeNetworks
	running string
}

func (n *busyNetworks) Leave(ctx context.Context, id string, holder nf.Holder) error {
	if n.running != "" {
		return &nf.Error{Kind: nf.Busy, Op: "leave", Subject: "network " + id, Operation: n.running}
	}
	return n.fakeNetworks.Leave(ctx, id, holder)
}

// TestShutdownWhileANetworkIsLeft ends the service while the last step of a change, or of
// its undo, waits for an operation of a network.
func TestShutdownWhileANetworkIsLeft(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pkg, network string // that the instance changes to
		end          nf.OperationState
		held         []string
	}{
		"Change": {"pods.web", "", nf.Succeeded, nil},
		"Undo":   {"pods.web_bad", "wan", nf.OperationFailed, []string{"east.oam"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				networks := &busyNetworks{fakeNetworks: fakeNetworks{s.kv}}
				use := func(c *config) { c.Networks = networks }
				e := s.start(use)
				id := e.up(t, "pods.web", named, attaching("oam")).Subject.ID
				s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
				s.cluster.status["slow"] = health{nf.InProgress, "pending"}
				other, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "other", Spec: nf.Spec{Package: "slow"}})
				if err != nil {
					t.Fatal(err)
				}
				networks.running = other.ID
				op, err := e.Upgrade(t.Context(), id, onNetworks(tc.pkg, nf.Undo, strings.Fields(tc.network)...))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				e.stop()
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("the shutdown waited %s", took)
				}
				if op, _ = e.Operation(t.Context(), op.ID); op.State != nf.Running || op.Steps[len(op.Steps)-1].Phase != nf.PhaseFinish {
					t.Errorf("the interrupted operation is %s, its steps are %+v", op.State, op.Steps)
				}
				networks.running = ""
				if op = s.start(use).end(t, op); op.State != tc.end {
					t.Errorf("the operation ended %s: %+v", op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.held, s.networksHeld()); diff != "" {
					t.Errorf("the networks held (-want +got):\n%s", diff)
				}
			})
		})
	}
}
