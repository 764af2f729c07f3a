package aaisync_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := aaisync.New(aaisync.Config{KV: memory.New()}); err == nil {
		t.Error("a keeper without a source has nothing to do, and must not start")
	}
}

func TestLifeOfASubject(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		if n := w.rows("aai/"); n != 0 {
			t.Errorf("there are %d rows before Run", n)
		}
		stop := w.run(k)
		defer stop()
		w.facts.set("a", "1")
		if got := w.state(k, "a").Condition; got != nf.ListingDirty {
			t.Errorf("a new subject is %s", got)
		}
		pass(time.Minute)
		if diff := cmp.Diff([]string{"1"}, w.names()); diff != "" {
			t.Fatalf("a new subject is written (-want +got):\n%s", diff)
		}
		if got := w.state(k, "a"); got.Condition != nf.ListingClean || len(got.Objects) != 1 || !got.Since.IsZero() {
			t.Errorf("it is not clean: %+v", got)
		}
		w.requests()
		pass(30 * time.Minute)
		if n, _ := w.requests(); n != 0 {
			t.Errorf("nothing changes, and there are %d requests", n)
		}

		w.facts.occupy("b", true)
		w.facts.set("b", "1")
		if got := w.state(k, "b"); got.ID != "b" || got.Condition != nf.ListingDirty {
			t.Errorf("a subject without a record is %+v", got)
		}
		w.facts.set("b", "")

		w.facts.set("a", "2")
		if got := w.state(k, "a").Condition; got != nf.ListingDirty {
			t.Errorf("a changed subject is %s", got)
		}
		k.Touch("a")
		pass(2 * time.Second)
		if diff := cmp.Diff([]string{"2"}, w.names()); diff != "" {
			t.Errorf("a changed subject is written soon (-want +got):\n%s", diff)
		}
		pass(time.Minute)
		if diff := cmp.Diff(map[nf.ListingState]int{"clean": 1, "dirty": 0, "waiting": 0, "parked": 0}, k.Counts()); diff != "" {
			t.Errorf("the counts differ (-want +got):\n%s", diff)
		}

		w.facts.set("a", "")
		pass(time.Minute)
		if got := w.names(); got != nil || w.rows("aai/subjects/") != 0 {
			t.Errorf("a removed subject leaves %q, and %d records", got, w.rows("aai/subjects/"))
		}
		if _, err := k.State(w.Context(), "a"); nf.KindOf(err) != nf.NotFound {
			t.Errorf("got %v for a subject of which nothing is left", err)
		}
	})
}

// TestOutage creates 1000 subjects while A&AI is away for 10 minutes.
func TestOutage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const subjects = 1000
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		for i := range subjects / 2 {
			w.facts.set(fmt.Sprint("a", i), "1")
		}
		w.simulator.Script(simulator.Fault{Times: 250}, // which does nothing
			simulator.Fault{Cut: true}, simulator.Fault{Status: 503, Times: -1})
		pass(time.Minute)
		for i := range subjects / 2 {
			w.facts.set(fmt.Sprint("b", i), "1")
		}
		for i := range 100 {
			w.facts.set(fmt.Sprint("a", i), "") // deletions during the outage
		}
		pass(10 * time.Minute)
		sent, before := w.requests()
		if failed := sent - 250; failed > 100 {
			t.Errorf("%d requests were sent during the outage, want those of a circuit breaker", failed)
		}
		w.simulator.Repair()
		pass(30 * time.Minute) // the longest pause, and the scan after it that counts
		if got := len(w.names()); got != subjects-100 || w.rows("aai/subjects/") != got {
			t.Errorf("A&AI has %d objects, and the store %d records, want %d", got, w.rows("aai/subjects/"), subjects-100)
		}
		if k.Counts()[nf.ListingClean] != subjects-100 {
			t.Errorf("not all subjects are clean: %v", k.Counts())
		}
		if _, after := w.requests(); before+after > (subjects+100)*12/10 {
			t.Errorf("there were %d transactions, want at most 1.2 for each change", before+after)
		}
	})
}

func TestWaitsForOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.facts.vnf = true
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.facts.set("a", "1")
		pass(time.Minute)
		got := w.state(k, "a")
		if got.Condition != nf.ListingWaiting || !slices.Equal(got.Missing, []string{vnfPath}) || got.Since.IsZero() || k.Counts()[nf.ListingWaiting] != 1 {
			t.Errorf("the VNF is not there, and the subject does not wait for it: %+v, %v", got, k.Counts())
		}
		w.requests()
		pass(3 * time.Hour)
		if n, _ := w.requests(); n > 80 {
			t.Errorf("%d requests were sent in 3 hours, want those of 17 attempts: after 30 s, twice as long, and at most 15 min", n)
		}
		w.as("PUT", vnfPath, `{"vnf-type":"x"}`)
		pass(16 * time.Minute)
		if got := w.state(k, "a"); got.Condition != nf.ListingClean || !got.Since.IsZero() {
			t.Errorf("the VNF is there, and the subject is not written: %+v", got)
		}
	})
}

func TestParked(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.as("PUT", resourcePath+"/a", `{"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","data-owner":"CnfAdapter"}`)
		w.facts.set("a", "1")
		w.facts.set("b", "1")
		pass(time.Minute)
		if got := w.state(k, "a"); got.Condition != nf.ListingParked || got.Parked[resourcePath+"/a"] == "" {
			t.Errorf("the object belongs to another client, and the subject is not parked: %+v", got)
		}
		if got := w.state(k, "b"); got.Condition != nf.ListingClean {
			t.Errorf("another subject is held up: %+v", got)
		}
		w.requests()
		pass(30 * time.Minute)
		if n, _ := w.requests(); n != 0 {
			t.Errorf("nothing changes, and there are %d requests", n)
		}
		w.as("PATCH", resourcePath+"/a", `{"data-owner":"k8splugin"}`)
		if err := k.Refresh(w.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if got := w.state(k, "a"); got.Condition != nf.ListingClean {
			t.Errorf("a comparison was asked for, and the subject is still parked: %+v", got)
		}
		if n := w.rows("aai/requests/"); n != 0 {
			t.Errorf("%d requests for a comparison remain", n)
		}
		if err := k.Refresh(w.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		w.facts.set("b", "")
		pass(time.Minute)
		if n := w.rows("aai/requests/"); n != 0 {
			t.Errorf("%d requests for a comparison of a removed subject remain", n)
		}
		if err := k.Refresh(w.Context(), "c"); nf.KindOf(err) != nf.NotFound {
			t.Errorf("got %v for an unknown subject", err)
		}
	})
}

func TestDenied(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.password.Store("old")
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		for i := range 50 {
			w.facts.set(fmt.Sprint("a", i), "1")
		}
		pass(time.Hour)
		if n, _ := w.requests(); n > 30 {
			t.Errorf("A&AI denies everything, and %d requests were sent in an hour", n)
		}
		w.password.Store("p")
		pass(11 * time.Minute)
		if n := len(w.names()); n != 50 {
			t.Errorf("the password is right again, and A&AI has %d objects, want 50", n)
		}
	})
}

func TestDrift(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(w *world)
		want   []string
	}{
		"changed": {"an object is corrected", func(w *world) { w.as("PATCH", resourcePath+"/a", `{"name":"x"}`) }, []string{"1"}},
		"deleted": {"an object is created again", func(w *world) { w.delete(resourcePath + "/a") }, []string{"1"}},
		"stray": {"an object that no record names is deleted", func(w *world) {
			w.as("PUT", resourcePath+"/x", `{"name":"x","group":"","version":"","kind":"","namespace":"","selflink":"","data-owner":"k8splugin"}`)
		}, []string{"1"}},
		"others'": {"an object of others stays", func(w *world) {
			w.as("PUT", resourcePath+"/x", `{"name":"x","group":"","version":"","kind":"","namespace":"","selflink":"","data-owner":"CnfAdapter"}`)
		}, []string{"1", "x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				stop := w.run(w.keeper())
				defer stop()
				w.facts.set("a", "1")
				pass(time.Minute)
				tc.change(w)
				pass(2 * time.Hour)
				if diff := cmp.Diff(tc.want, w.names()); diff != "" {
					t.Errorf("%s: A&AI differs (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestUnreadableSubject(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper()
		stop := w.run(k)
		defer stop()
		w.facts.fail("a", errUnreachable)
		w.facts.set("a", "1")
		w.facts.set("b", "2")
		pass(time.Minute)
		if got := w.state(k, "a"); got.Condition != nf.ListingDirty || got.Reason != errUnreachable.Error() || got.Retry.IsZero() {
			t.Errorf("the state lacks the reason: %+v", got)
		}
		if diff := cmp.Diff([]string{"2"}, w.names()); diff != "" {
			t.Errorf("another subject is held up (-want +got):\n%s", diff)
		}
		w.facts.fail("a", nil)
		pass(6 * time.Minute)
		if diff := cmp.Diff([]string{"1", "2"}, w.names()); diff != "" {
			t.Errorf("the region is back (-want +got):\n%s", diff)
		}
	})
}
