package aaisync_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestChanges changes a subject in each way, and looks at A&AI after some time.
func TestChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(w *world)
		within time.Duration
		want   []string
	}{
		"version":   {"what the store has is read every 30 s", func(w *world) { w.facts.set("a", "2") }, 31 * time.Second, []string{"2"}},
		"unread":    {"a subject that is not touched waits", func(w *world) { w.facts.set("a", "2") }, 5 * time.Second, []string{"1"}},
		"live":      {"what the region has changes without the store", func(w *world) { w.facts.see("a", "x") }, 31 * time.Second, []string{"1x"}},
		"busy":      {"a subject that is being changed is not written", func(w *world) { w.facts.set("a", "2"); w.facts.occupy("a", true) }, 10 * time.Minute, []string{"1"}},
		"deleted":   {"objects of a removed subject are deleted", func(w *world) { w.facts.set("a", "") }, 31 * time.Second, nil},
		"unwatched": {"a watch that has not begun tells nothing", func(w *world) { w.facts.see("a", "") }, 10 * time.Minute, []string{"1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				stop := w.run(w.keeper())
				defer stop()
				w.facts.set("a", "1")
				pass(time.Minute)
				if w.facts.watches.Load() != 1 {
					t.Error("the replica that writes must watch")
				}
				tc.change(w)
				pass(tc.within)
				if diff := cmp.Diff(tc.want, w.names()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestBusy ends a change: the subject is written once.
func TestBusy(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.facts.occupy("a", true)
		w.facts.set("a", "1")
		pass(time.Minute)
		w.facts.occupy("a", false)
		w.facts.set("a", "2")
		k.Touch("a")
		pass(time.Second)
		if n, transactions := w.requests(); n != 1 || transactions != 1 {
			t.Errorf("%d requests and %d transactions", n, transactions)
		}
		if diff := cmp.Diff([]string{"2"}, w.names()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestAskOtherReplica waits on one replica for what the other one writes.
func TestAskOtherReplica(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		writer, other := w.keeper(), w.keeper()
		stopWriter := w.run(writer)
		defer stopWriter()
		w.facts.set("a", "1")
		pass(time.Minute)
		stopOther := w.run(other)
		defer stopOther()
		if w.facts.watches.Load() != 1 {
			t.Errorf("%d replicas watch", w.facts.watches.Load())
		}
		w.facts.set("a", "")
		began := time.Now()
		if !other.Gone(w.Context(), "a") || time.Since(began) > 3*time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
		if got := w.names(); got != nil || w.rows("aai/requests/") != 0 {
			t.Errorf("A&AI has %q, and %d requests are left", got, w.rows("aai/requests/"))
		}
	})
}

// TestStates lists the subjects and what is wrong with them.
func TestStates(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.facts.set("a", "1")
		pass(time.Minute)
		w.simulator.Script(simulator.Fault{Method: http.MethodPost, Path: bulkPath, Code: 3000, Times: -1})
		w.facts.set("b", "1")
		pass(time.Minute)
		got := map[string]string{}
		for s, err := range k.States(w.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got[s.ID] = string(s.Condition)
		}
		if diff := cmp.Diff(map[string]string{"a": "clean", "b": "parked"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
