package drift_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/drift"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// region is a Source of one instance, with a journal of what it was asked for.
type region struct {
	mu       sync.Mutex
	in       nf.Instance
	drifted  map[string]nf.Drift // by key
	err      error               // of the next comparison
	journal  []string
	fights   bool // another client changes back what is corrected
	begun    time.Time
	watch    *drift.Census
	stamp    uint64
	refuses  error // of corrections
	compares int
}

func inEast(region string) bool { return region == "east" }

func ref(name string) nf.Ref {
	return nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: name}
}

func (r *region) Drift(_ context.Context, id string, keys []string) (nf.Instance, []nf.Drift, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compares++
	if err := r.err; err != nil {
		r.err = nil
		return nf.Instance{}, nil, err
	}
	var out []nf.Drift
	for key, d := range r.drifted {
		if keys == nil || slices.Contains(keys, key) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b nf.Drift) int { return a.Compare(b.Ref) })
	r.journal = append(r.journal, fmt.Sprint(time.Since(r.begun).Round(time.Second), " compare ", id, " ", len(keys)))
	return r.in, out, nil
}

func (r *region) Correct(_ context.Context, seen nf.Instance, refs []nf.Ref) (nf.Operation, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != nil {
		return nf.Operation{}, false, r.refuses
	}
	if seen.LastOperation != r.in.LastOperation {
		return nf.Operation{}, false, nf.E(nf.Conflict, "correct", "VNF instance", nil)
	}
	r.journal = append(r.journal, fmt.Sprint(time.Since(r.begun).Round(time.Second), " correct ", len(refs)))
	r.in.Corrections = nf.CountCorrections(r.in.Corrections, refs, time.Now())
	r.in.LastOperation += "+"
	for _, ref := range refs {
		if !r.fights {
			delete(r.drifted, ref.Key())
		}
	}
	return nf.Operation{ID: r.in.LastOperation}, true, nil
}

// meddle changes an object, and has the watch report it.
func (r *region) meddle(name string, missing bool) {
	r.mu.Lock()
	d := nf.Drift{Ref: ref(name), Missing: missing}
	if !missing {
		d.Fields = []nf.DriftField{{Path: "spec.replicas", Manager: "kubectl-edit"}}
	}
	r.drifted[d.Key()] = d
	r.stamp++
	m := drift.Mark{Owner: "vnf-1", Key: d.Key(), Stamp: r.stamp, Status: nf.Current}
	if missing {
		m.Status = nf.Absent
	}
	r.mu.Unlock()
	r.watch.See(m)
}

func (r *region) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.journal
	r.journal = nil
	return out
}

func (r *region) instance() nf.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in
}

// running returns a watcher that has compared the instance once.
func running(t *testing.T, mode nf.DriftMode) (*region, *drift.Watcher) {
	t.Helper()
	r := &region{drifted: map[string]nf.Drift{}, begun: time.Now(), in: nf.Instance{
		ID: "vnf-1", Region: "east", State: nf.Ready, LastOperation: "op", Drift: nf.DriftPolicy{Mode: mode},
		Inventory: []nf.Item{{Ref: ref("a")}, {Ref: ref("b")}},
	}}
	w, err := drift.New(drift.Config{Source: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		stop()
		over.Wait()
	})
	w.Follow([]nf.Instance{r.in})
	r.watch = w.Census(inEast, ref(""))
	for i, name := range []string{"a", "b"} {
		r.watch.See(drift.Mark{Owner: "vnf-1", Key: ref(name).Key(), Stamp: uint64(100 + i), Status: nf.Current})
	}
	r.watch.See(drift.Mark{Synced: true})
	pass(10 * time.Second)
	r.asked()
	return r, w
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWarn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := running(t, nf.DriftWarn)
		if got := w.InstanceDrift(r.in); got.State != nf.DriftNone || len(got.Objects) > 0 {
			t.Errorf("nothing has changed: %+v", got)
		}
		pass(24 * time.Hour)
		if got := r.asked(); len(got) > 0 {
			t.Errorf("without a change, nothing is compared: %v", got)
		}
		r.begun = time.Now()
		r.meddle("a", false)
		r.watch.See(drift.Mark{Owner: "vnf-1", Key: ref("b").Key(), Stamp: 101, Status: nf.InProgress}) // its status alone
		r.watch.See(drift.Mark{Owner: "vnf-2", Key: ref("a").Key(), Stamp: 7})
		pass(time.Second)
		if diff := cmp.Diff([]string{"1s compare vnf-1 1"}, r.asked()); diff != "" {
			t.Errorf("only what has changed is compared (-want +got):\n%s", diff)
		}
		got := w.InstanceDrift(r.in)
		if got.State != nf.Drifted || len(got.Objects) != 1 || got.Objects[0].Fields[0].Manager != "kubectl-edit" || got.Since != time.Now() {
			t.Errorf("drift: %+v", got)
		}
		r.meddle("b", true)
		pass(time.Second)
		if got := w.InstanceDrift(r.in); len(got.Objects) != 2 || !got.Objects[1].Missing {
			t.Errorf("a deleted object: %+v", got)
		}
		want := map[nf.DriftState]int{nf.DriftNone: 0, nf.Drifted: 1, nf.DriftContested: 0, nf.DriftUnknown: 0}
		counts := map[nf.DriftState]int{}
		for _, c := range w.DriftCounts() {
			counts[c.State] += c.Number
		}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		off := r.in
		off.Drift = nf.DriftPolicy{Mode: nf.DriftOff}
		w.Follow([]nf.Instance{off})
		if got := w.InstanceDrift(off); got.State != "" || len(w.DriftCounts()) > 0 {
			t.Errorf("off: %+v", got)
		}
	})
}

func TestCorrect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := running(t, nf.DriftCorrect)
		r.begun = time.Now()
		r.meddle("a", false)
		r.meddle("b", true)
		pass(time.Minute)
		w.Follow([]nf.Instance{r.instance()})
		pass(time.Second)
		if diff := cmp.Diff([]string{"1s compare vnf-1 2", "1s correct 2", "3s compare vnf-1 2", "3s compare vnf-1 0", "1m0s compare vnf-1 0"}, r.asked()); diff != "" {
			t.Errorf("both are corrected at once (-want +got):\n%s", diff)
		}
		if got := w.InstanceDrift(r.instance()); got.State != nf.DriftNone {
			t.Errorf("after the correction: %+v", got)
		}
	})
}

// TestFighter is about a client that changes an object back each time.
func TestFighter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := running(t, nf.DriftCorrect)
		r.fights, r.begun = true, time.Now()
		r.meddle("a", false)
		pass(48 * time.Hour)
		var corrections []string
		for _, what := range r.asked() {
			if what[len(what)-9:] == "correct 1" {
				corrections = append(corrections, what)
			}
		}
		if diff := cmp.Diff([]string{"1s correct 1", "11s correct 1", "31s correct 1", "1m11s correct 1", "2m31s correct 1"}, corrections); diff != "" {
			t.Errorf("the service waits longer each time, and gives up (-want +got):\n%s", diff)
		}
		if got := w.InstanceDrift(r.instance()); got.State != nf.DriftContested || len(got.Objects) != 1 {
			t.Errorf("drift: %+v", got)
		}
		r.fights = false
		r.meddle("b", false)
		pass(time.Minute)
		if got := w.InstanceDrift(r.instance()); got.State != nf.DriftContested || len(got.Objects) != 1 {
			t.Errorf("another object is corrected: %+v", got)
		}
		r.mu.Lock()
		r.in.Corrections, r.in.LastOperation = nil, "upgrade" // as a change of the instance leaves it
		r.mu.Unlock()
		w.Follow([]nf.Instance{r.instance()})
		pass(time.Minute)
		w.Follow([]nf.Instance{r.instance()})
		pass(time.Minute)
		if got := w.InstanceDrift(r.instance()); got.State != nf.DriftNone {
			t.Errorf("a change of the instance starts again: %+v", got)
		}
	})
}

// TestInterrupted is about objects that are deleted while nothing is watched, and about
// an instance that cannot be compared.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := running(t, nf.DriftWarn)
		r.drifted[ref("b").Key()] = nf.Drift{Ref: ref("b"), Missing: true}
		again := w.Census(inEast, ref(""))
		again.See(drift.Mark{Owner: "vnf-1", Key: ref("a").Key(), Stamp: 100, Status: nf.Current})
		again.See(drift.Mark{Synced: true})
		w.Census(inEast, nf.Ref{Version: "v1", Kind: "Secret"}).See(drift.Mark{Synced: true})
		pass(time.Second)
		if got := w.InstanceDrift(r.in); len(got.Objects) != 1 || got.Objects[0].Name != "b" {
			t.Errorf("a deletion that no watch has reported: %+v", got)
		}
		r.asked()
		r.err, r.begun, r.watch = nf.E(nf.Unreachable, "reach", "region", errors.New("its own words")), time.Now(), again
		r.meddle("a", false)
		pass(1500 * time.Millisecond)
		if got := w.InstanceDrift(r.in); got.State != nf.DriftUnknown || got.Message != nf.Unreachable.String() {
			t.Errorf("an unreachable region: %+v", got)
		}
		pass(5 * time.Second)
		if got := w.InstanceDrift(r.in); got.State != nf.Drifted || len(got.Objects) != 2 {
			t.Errorf("it is tried again: %+v", got)
		}
		r.err = nf.E(nf.NotFound, "get", "VNF instance", nil)
		r.meddle("a", true)
		pass(time.Minute)
		if len(w.DriftCounts()) > 0 {
			t.Error("a terminated instance is still counted")
		}
	})
}

// TestRefused is about corrections that are not accepted.
func TestRefused(t *testing.T) {
	for _, kind := range []nf.Kind{nf.Busy, nf.Failed} {
		synctest.Test(t, func(t *testing.T) {
			r, w := running(t, nf.DriftCorrect)
			r.mu.Lock()
			r.refuses, r.compares = nf.E(kind, "correct", "VNF instance", nil), 0
			r.mu.Unlock()
			r.meddle("a", false)
			pass(time.Hour)
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := w.InstanceDrift(r.in); got.State != nf.Drifted || r.compares < 10 || r.compares > 30 {
				t.Errorf("%s: %d comparisons in an hour, %+v", kind, r.compares, got)
			}
		})
	}
}
