package operation_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	leases "github.com/multicloud-k8s/k8splugin/src/store/lease"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := operation.New(operation.Config{}); err == nil {
		t.Error("workers without a store are made")
	}
}

func TestPerform(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t).run(t)
		one.accept(t, "op-1", "east")
		if diff := cmp.Diff([]string{"claims/op-1"}, g.claimed(t)); diff != "" {
			t.Errorf("while it runs, the list of work has it (-want +got):\n%s", diff)
		}
		if !one.Tracks("op-1") || one.Replicas() > 1 {
			t.Errorf("owned: %t, replicas: %d", one.Tracks("op-1"), one.Replicas())
		}
		one.finish("op-1")
		if diff := cmp.Diff([]string{"op-1"}, one.performed()); diff != "" {
			t.Errorf("it is performed once (-want +got):\n%s", diff)
		}
		if left := g.claimed(t); left != nil || one.Tracks("op-1") {
			t.Errorf("after its end remain %v, owned: %t", left, one.Tracks("op-1"))
		}
	})
}

// TestTakeover checks that a claim of a replica that stops renewing its lease
// goes to another replica, with a new token and not before the lease has
// expired.
func TestTakeover(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t) // never renews its lease
		j := operation.Job{ID: "op-1", Subject: nf.Subject{Kind: kind, ID: "s"}, Region: "east", Token: "first"}
		if err := one.Reserve(t.Context(), j, nf.RequestKey{}); err != nil {
			t.Fatal(err)
		}
		two := g.join(t).run(t)
		pass(t, lease/2)
		if got := two.performed(); got != nil {
			t.Errorf("%v is taken over from a replica that may be alive", got)
		}
		pass(t, 2*lease)
		if diff := cmp.Diff([]string{"op-1"}, two.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if token := two.token("op-1"); token == "first" || token == "" {
			t.Errorf("the token is %q: the former replica's writes would still count", token)
		}
	})
}

// TestHeld checks that a job's claim is compared by its token.
func TestHeld(t *testing.T) {
	cases := map[string]struct {
		reason string
		lose   func(t *testing.T, g *group, one *replica)
		want   error
	}{
		"Held":      {"the claim is this replica's", func(*testing.T, *group, *replica) {}, nil},
		"TakenOver": {"another replica has claimed the operation", func(t *testing.T, g *group, _ *replica) { g.join(t).run(t); pass(t, 2*lease) }, operation.ErrTaken},
		"Ended": {"the operation has ended", func(t *testing.T, _ *group, one *replica) {
			if err := one.Drop(t.Context(), "op-1"); err != nil {
				t.Error(err)
			}
		}, operation.ErrTaken},
		"Away": {"the store does not respond", func(_ *testing.T, _ *group, one *replica) { one.cut.set(true) }, errAway},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				one := g.join(t)
				j := operation.Job{ID: "op-1", Subject: nf.Subject{Kind: kind, ID: "s"}, Region: "east", Token: "first"}
				if err := one.Reserve(t.Context(), j, nf.RequestKey{}); err != nil {
					t.Fatal(err)
				}
				tc.lose(t, g, one)
				if err := one.Held(t.Context(), j); !errors.Is(err, tc.want) {
					t.Errorf("%s: the error is %v, want %v", tc.reason, err, tc.want)
				}
			})
		})
	}
}

// TestLateStart starts an operation on a replica without a free place, after
// another replica has taken the operation over. Its claim stays the other's.
func TestLateStart(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t, places(1)) // never renews its lease
		j := operation.Job{ID: "op-1", Subject: nf.Subject{Kind: kind, ID: "s"}, Region: "east", Token: "first"}
		if err := one.Reserve(t.Context(), j, nf.RequestKey{}); err != nil {
			t.Fatal(err)
		}
		one.accept(t, "op-2", "east") // has the place
		two := g.join(t).run(t)
		pass(t, 2*lease)
		taken := j
		taken.Token = two.token("op-1")
		one.Start(t.Context(), j)
		if err := two.Held(t.Context(), taken); err != nil || one.Tracks("op-1") {
			t.Errorf("the claim of the other replica: %v; the late one handles the operation: %t", err, one.Tracks("op-1"))
		}
	})
}

// TestRestore checks that an operation without a claim is performed, that a claim
// stays as it is, and that an operation that has ended or was deleted since it was
// read gets no claim.
func TestRestore(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t).run(t)
		one.accept(t, "op-1", "east")
		operations := store.NewTable[nf.Operation](g.kv, "operations/", "operation")
		for id, state := range map[string]nf.OperationState{"op-2": nf.Running, "op-3": nf.Succeeded} {
			if err := operations.Insert(t.Context(), id, nf.Operation{ID: id, State: state}); err != nil {
				t.Fatal(err)
			}
		}
		jobs := []operation.Job{
			{Subject: nf.Subject{Kind: kind}, ID: "op-1", Token: one.token("op-1")}, {Subject: nf.Subject{Kind: kind}, ID: "op-2", Token: "lost"},
			{Subject: nf.Subject{Kind: kind}, ID: "op-3", Token: "ended"}, {Subject: nf.Subject{Kind: kind}, ID: "op-4", Token: "deleted"},
		}
		if err := one.Restore(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		pass(t, lease)
		if diff := cmp.Diff([]string{"op-1", "op-2"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := one.Held(t.Context(), jobs[0]); err != nil {
			t.Errorf("the claim of the running operation: %v", err)
		}
		if err := one.Held(t.Context(), jobs[1]); !errors.Is(err, operation.ErrTaken) {
			t.Errorf("the lost token is as good as that of the new claim: %v", err)
		}
		one.cut.set(true)
		if err := one.Restore(t.Context(), jobs); err == nil {
			t.Error("a list of work that cannot be read has no missing claims")
		}
	})
}

// TestHandover checks that a replica that stops in good order leaves its work to
// others at once.
func TestHandover(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one, two := g.join(t, draining(time.Minute)).run(t), g.join(t).run(t)
		one.accept(t, "op-1", "east")
		began := time.Now()
		one.quit()
		if err := one.end("op-1"); !errors.Is(err, operation.ErrShutdown) {
			t.Errorf("it was stopped with %v", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it had %s to finish, want a minute", took)
		}
		pass(t, lease/2)
		if diff := cmp.Diff([]string{"op-1"}, two.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestLostLease checks that a replica that cannot renew its lease stops its
// operations before another may take them, and joins again under a new id.
func TestLostLease(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t).run(t)
		one.accept(t, "op-1", "east")
		two := g.join(t).run(t)
		one.cut.set(true)
		for one.Healthy(t.Context()) == nil {
			if got := two.performed(); got != nil {
				t.Fatal("it is taken over while the first replica runs it")
			}
			pass(t, lease/20)
			synctest.Wait()
		}
		if err := one.end("op-1"); !errors.Is(err, leases.ErrLost) {
			t.Errorf("it was stopped with %v", err)
		}
		if err := one.Reserve(t.Context(), operation.Job{Subject: nf.Subject{Kind: kind}, ID: "op-2"}, nf.RequestKey{}); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("a replica without a lease accepts: %v", err)
		}
		pass(t, 2*lease)
		if diff := cmp.Diff([]string{"op-1"}, two.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		one.cut.set(false)
		pass(t, lease)
		if err := one.Healthy(t.Context()); err != nil {
			t.Errorf("it does not join again: %v", err)
		}
		one.accept(t, "op-3", "east")
		if got := one.performed(); got[len(got)-1] != "op-3" {
			t.Errorf("after it has joined again, it performed %v", got)
		}
	})
}

// TestLostLeaseClaims checks that a replica that has lost its lease claims nothing while
// one of its operations is still to stop, although the store responds again.
func TestLostLeaseClaims(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		stopping := make(chan struct{})
		one := g.join(t, func(_ *operation.Config, k *operation.Kind) {
			k.Perform = func(context.Context, context.Context, operation.Job) error { <-stopping; return leases.ErrLost }
		}).run(t)
		one.accept(t, "op-1", "east")
		one.cut.set(true)
		pass(t, lease*3/4)
		one.cut.set(false)
		g.join(t, places(0)).accept(t, "op-2", "east")
		pass(t, lease)
		two := g.join(t).run(t)
		pass(t, 2*lease)
		if diff := cmp.Diff([]string{"op-1", "op-2"}, slices.Sorted(slices.Values(two.performed()))); diff != "" {
			t.Errorf("the other replica takes both (-want +got):\n%s", diff)
		}
		if err := one.Healthy(t.Context()); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("a replica without a lease can get requests: %v", err)
		}
		close(stopping)
	})
}

// TestSoleLease checks that the only process of a store goes on with its operations
// while its writes are late: no other process can take them over.
func TestSoleLease(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t, func(c *operation.Config, _ *operation.Kind) { c.Sole = true }).run(t)
		one.accept(t, "op-1", "east")
		one.cut.set(true)
		pass(t, 3*lease)
		if err := one.Healthy(t.Context()); err != nil {
			t.Errorf("it has lost its lease: %v", err)
		}
		one.cut.set(false)
		one.accept(t, "op-2", "east")
		if diff := cmp.Diff([]string{"op-1", "op-2"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestCancel checks that a cancellation reaches an operation on any replica, and that the
// end of a replica is none.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one, two := g.join(t).run(t), g.join(t).run(t)
		for _, id := range []string{"op-1", "op-2", "op-3", "op-4", "op-5"} {
			one.accept(t, id, "east")
		}
		for _, via := range []struct {
			id   string
			stop func(ctx context.Context, id string) error
			want error
		}{{"op-1", one.Cancel, operation.ErrCancelled}, {"op-2", two.Cancel, operation.ErrCancelled}, {"op-3", one.Stop, errStopped}, {"op-4", two.Stop, errStopped}} {
			if err := via.stop(t.Context(), via.id); err != nil {
				t.Fatal(err)
			}
			pass(t, lease)
			if err := one.end(via.id); !errors.Is(err, via.want) {
				t.Errorf("%s was stopped with %v, want %v", via.id, err, via.want)
			}
		}
		one.quit()
		if err := one.end("op-5"); errors.Is(err, errStopped) || errors.Is(err, operation.ErrCancelled) {
			t.Errorf("the end of its replica has stopped an operation: %v", err)
		}
		two.finish("op-5")
		pass(t, 2*lease)
		if left := g.claimed(t); left != nil {
			t.Errorf("the list of work still has %v", left)
		}
		if err := two.Cancel(t.Context(), "op-1"); err != nil {
			t.Errorf("an operation that has ended cannot be cancelled: %v", err)
		}
	})
}

// TestShare checks that a replica takes the operations for which another one
// has no place.
func TestShare(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one, two := g.join(t, places(1)).run(t), g.join(t).run(t)
		one.accept(t, "op-1", "east")
		one.accept(t, "op-2", "east")
		pass(t, lease)
		if diff := cmp.Diff([]string{"op-2"}, two.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if one.Queued() != 0 || two.Replicas() != 2 {
			t.Errorf("%d queued, %d replicas", one.Queued(), two.Replicas())
		}
	})
}

// TestYield checks that an operation that waits gives its place to another, and
// gets one before new operations do.
func TestYield(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t, places(1)).run(t)
		one.accept(t, "op-1", "east")
		resume := one.Yield(operation.Job{Subject: nf.Subject{Kind: kind}, Region: "east"})
		one.accept(t, "op-2", "east")
		if diff := cmp.Diff([]string{"op-1", "op-2"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		resumed := false
		go func() { resume(); resumed = true }()
		one.accept(t, "op-3", "east")
		pass(t, lease)
		if resumed {
			t.Error("the only place is taken twice")
		}
		one.finish("op-2")
		pass(t, lease)
		if got := one.performed(); !resumed || len(got) != 2 {
			t.Errorf("the one that waited has not got the place: resumed %t, performed %v", resumed, got)
		}
		one.finish("op-1")
		pass(t, lease)
		if diff := cmp.Diff([]string{"op-1", "op-2", "op-3"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestRetry checks that an operation that cannot go on is performed again, and
// leaves its place to others until then.
func TestRetry(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t, places(1)).run(t)
		one.fail("op-1")
		one.accept(t, "op-1", "east")
		one.accept(t, "op-2", "east")
		if diff := cmp.Diff([]string{"op-1", "op-2"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		one.fail("")
		one.finish("op-1", "op-2")
		pass(t, time.Minute)
		if diff := cmp.Diff([]string{"op-1", "op-2", "op-1"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if left := g.claimed(t); left != nil {
			t.Errorf("the list of work still has %v", left)
		}
	})
}

// TestUnknownKind checks that a replica leaves operations of a kind that it does
// not know, and performs the others.
func TestUnknownKind(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		newer := g.join(t, func(_ *operation.Config, k *operation.Kind) { k.Name = "newer" })
		if err := newer.Reserve(t.Context(), operation.Job{Subject: nf.Subject{Kind: "newer"}, ID: "op-1"}, nf.RequestKey{}); err != nil {
			t.Fatal(err)
		}
		one := g.join(t).run(t)
		one.accept(t, "op-2", "east")
		pass(t, 3*lease)
		if diff := cmp.Diff([]string{"op-2"}, one.performed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"claims/op-1", "claims/op-2"}, g.claimed(t)); diff != "" {
			t.Errorf("the claim waits for a replica that knows it (-want +got):\n%s", diff)
		}
	})
}
