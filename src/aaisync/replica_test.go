package aaisync_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestReplicas stops the replica that writes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		first, second := w.keeper(), w.keeper()
		stopFirst := w.run(first)
		pass(20 * time.Second)
		stopSecond := w.run(second)
		defer stopSecond()
		w.facts.set("a", "1")
		pass(time.Minute)
		if len(first.Counts()) == 0 || len(second.Counts()) != 0 {
			t.Errorf("one replica writes: %v, %v", first.Counts(), second.Counts())
		}
		stopFirst()
		w.facts.set("b", "2")
		pass(time.Minute)
		if diff := cmp.Diff([]string{"1", "2"}, w.names()); diff != "" || len(second.Counts()) == 0 {
			t.Errorf("the other replica takes over (-want +got):\n%s", diff)
		}
	})
}

// TestBlockedDeletion removes a subject whose object A&AI does not delete.
func TestBlockedDeletion(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.facts.set("a", "1")
		pass(time.Minute)
		w.simulator.Script(simulator.Fault{Path: bulkPath, Code: 6110, Times: -1})
		w.facts.set("a", "")
		pass(time.Minute)
		if got := w.state(k, "a"); got.Condition != nf.ListingParked || k.Counts()[nf.ListingParked] != 1 {
			t.Errorf("the record must remain, and tell why: %+v, %v", got, k.Counts())
		}
		w.requests()
		pass(30 * time.Minute)
		if n, _ := w.requests(); n != 0 {
			t.Errorf("nothing changes, and there are %d requests", n)
		}
		w.simulator.Repair()
		pass(time.Hour)
		if got := w.names(); got != nil || w.rows("aai/subjects/") != 0 {
			t.Errorf("A&AI still has %q", got)
		}
	})
}

// TestGone waits for the deletion of a subject's objects, as an operation does.
func TestGone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		fault  *simulator.Fault
		want   bool
		within time.Duration
	}{
		"soon":  {"A&AI deletes the objects at once", nil, true, 3 * time.Second},
		"never": {"an operation waits for at most as long as it wants", &simulator.Fault{Status: 503, Times: -1}, false, 30 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				k := w.keeper()
				stop := w.run(k)
				defer stop()
				w.facts.set("a", "1")
				pass(time.Minute)
				if tc.fault != nil {
					w.simulator.Script(*tc.fault)
				}
				w.facts.set("a", "")
				began := time.Now()
				ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
				defer cancel()
				if got := k.Gone(ctx, "a"); got != tc.want || time.Since(began) > tc.within {
					t.Errorf("%s: got %t after %v", tc.reason, got, time.Since(began))
				}
			})
		})
	}
	inWorld(t, func(w *world) {
		if !w.keeper().Gone(w.Context(), "x") {
			t.Error("A&AI has nothing of an unknown subject")
		}
	})
}

// TestTakeover has another replica write what the first one has written.
func TestTakeover(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		stop := w.run(w.keeper())
		w.facts.set("a", "1")
		w.facts.set("b", "1")
		pass(time.Minute)
		stop()
		w.requests()
		w.facts.set("b", "2")
		stop = w.run(w.keeper())
		defer stop()
		pass(time.Minute)
		if n, transactions := w.requests(); n != 2 || transactions != 1 {
			t.Errorf("%d requests and %d transactions for one change", n, transactions)
		}
	})
}

// TestCrash ends a replica between a change in A&AI and its record.
func TestCrash(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var stop func()
		crash := make(chan struct{})
		w.simulator.Script(simulator.Fault{Method: http.MethodPost, Path: bulkPath, Cut: true, Before: func() { close(crash) }})
		stop = w.run(w.keeper())
		w.facts.set("a", "1")
		<-crash
		stop()
		w.facts.set("a", "") // while no replica runs
		if len(w.names()) != 1 {
			t.Fatal("the change was made, and the client does not know")
		}
		stop = w.run(w.keeper())
		defer stop()
		pass(time.Minute)
		if got := w.names(); got != nil || w.rows("aai/subjects/") != 0 {
			t.Errorf("A&AI still has %q", got)
		}
	})
}

// TestDirtyWhileAway checks that a record says that it names objects of unknown state.
func TestDirtyWhileAway(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.simulator.Script(simulator.Fault{Status: 503, Times: -1})
		w.facts.set("a", "1")
		pass(time.Minute)
		got := w.state(k, "a")
		if diff := cmp.Diff(aai.Written{resourcePath + "/a": ""}, got.Objects); diff != "" || got.Condition != nf.ListingDirty || got.Reason == "" {
			t.Errorf("got %+v", got)
		}
	})
}
