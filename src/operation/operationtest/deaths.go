// Package operationtest lets the processes that run a kind's operations die and
// stall, at every call that they make.
package operationtest

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Scenario is a request with one outcome.
type Scenario struct {
	// World returns a new world in which everything is prepared for the request.
	World func(t *testing.T) World
	// Deaths is the least number of deaths and stalls.
	Deaths int
}

// World is what outlives the processes of a test.
type World struct {
	KV store.KV
	// Start starts a process. Its workers have Process.Config, and it makes every
	// call that changes something outside the store through Process.Call.
	Start func(p *Process) Replica
	// Snapshot returns the records and the outside state, without what differs
	// between two runs, such as ids and times.
	Snapshot func() any
	// Unknown describes the outside state that no record names.
	Unknown func() []string
	// Stays reports whether a record that a stalled process writes late is not
	// collected. Nil: every one is.
	Stays func(key string) bool
}

// Replica is a process that was started.
type Replica struct {
	// Request makes the scenario's request.
	Request func(ctx context.Context, key nf.RequestKey) (nf.Operation, error)
	// Stop stops the process in good order.
	Stop func()
}

const (
	settling  = time.Minute      // for what has no operation to be followed
	deadline  = 3 * time.Hour    // longer than any operation may run
	scans     = 25 * time.Minute // for two scans of the collector
	soleScans = 13 * time.Minute // the same, from the start of a process
	longLease = 24 * time.Hour   // of a process that stalls: its own timers stand still
	slowLease = time.Minute      // of the process that takes over
)

// Deaths makes each scenario's request to a process that dies before, during and
// after each call that changes something, and repeats the request at another
// process, at once or after the deadline. The first leaves what an undisturbed
// run leaves; after the second, no outside state is unknown.
//
// It also makes the request to a process that stalls at each of its calls until
// another process has ended the operation. When it continues, it changes no
// record. What it inserts late is collected. It carries out at most the one
// outside call that it had begun, or was about to make.
//
// With the race detector, Deaths tries an eighth of the faults.
func Deaths(t *testing.T, scenarios map[string]Scenario) {
	t.Helper()
	for name, sc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc.test(t)
		})
	}
}

// test runs the scenario undisturbed, and then with every fault.
func (sc Scenario) test(t *testing.T) {
	t.Helper()
	var lived *run
	var want any
	synctest.Test(t, func(t *testing.T) {
		lived = sc.play(t, fault{})
		want = lived.world.Snapshot()
	})
	deaths, number := 0, 0
	for i, c := range lived.calls {
		for _, f := range c.faults(i+1, i < lived.accepting) {
			if number++; number%share != 0 {
				continue
			}
			t.Run(f.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if r := sc.play(t, f); len(r.calls) >= f.at {
						deaths++
						r.check(t, want)
					}
				})
			})
		}
	}
	t.Logf("%s: %d deaths", t.Name(), deaths)
	if least := sc.Deaths / share; deaths < least {
		t.Errorf("only %d deaths were tried, want at least %d", deaths, least)
	}
}

// faults returns what may happen to a process at its nth call.
func (c call) faults(n int, accepting bool) []fault {
	out := []fault{{at: n, how: stalled, accepting: accepting}}
	if c.read {
		return out
	}
	moments := []moment{before, after}
	if c.parts {
		moments = append(moments, during)
	}
	for _, how := range moments {
		out = append(out, fault{at: n, how: how}, fault{at: n, how: how, afterDeadline: true})
	}
	return out
}

// run is a scenario with one fault.
type run struct {
	fault         fault
	world         World
	first, second *Process
	calls         []call // of the first process
	accepting     int    // how many of them came before the request was answered
	wake          func() // lets the first process continue
}

// play makes the request to a process with the fault, and repeats it at another
// one. It returns when the operation has ended, and what the first process has
// left was taken over.
func (sc Scenario) play(t *testing.T, f fault) *run {
	t.Helper()
	r := &run{fault: f, world: sc.World(t), first: newProcess(f), second: newProcess(fault{})}
	pause, rest := r.configure()
	key := nf.RequestKey{Client: "client", Key: "the request", Digest: "of it"}
	first := r.world.Start(r.first)
	synctest.Wait()
	r.first.begin()
	lives, halt := context.WithCancel(t.Context())
	defer halt()
	ended := make(chan struct{})
	go func(ctx context.Context) {
		defer close(ended)
		op, err := first.Request(ctx, key)
		r.accepting = len(r.first.seen())
		if err == nil {
			follow(lives, t, r.world.KV, op)
		}
	}(t.Context())
	select {
	case <-ended:
	case <-r.first.halted:
	}
	halt()
	synctest.Wait()
	r.calls = r.first.seen()
	if f.how != stalled {
		first.Stop()
	}
	<-time.After(pause)
	second := r.world.Start(r.second)
	follow(t.Context(), t, r.world.KV, repeat(t, second, key))
	<-time.After(rest)
	synctest.Wait()
	wake := sync.OnceFunc(func() { close(r.first.woken) })
	t.Cleanup(wake)
	r.wake = func() {
		wake()
		<-ended
		<-time.After(settling)
		synctest.Wait()
	}
	return r
}

// configure sets the leases of the processes, and returns how long nothing
// happens before the second one starts, and after the end of the operation.
func (r *run) configure() (pause, rest time.Duration) {
	switch {
	case r.fault.how == stalled:
		r.second.lease = slowLease
		if !r.fault.accepting { // the writes that accept a request end in time by their context alone
			r.first.lease = longLease
		}
		return 0, scans
	case r.fault.afterDeadline:
		return deadline, settling
	}
	r.first.sole, r.second.sole, r.second.lease = true, true, slowLease
	return 0, soleScans
}

// repeat makes the request until no other one with its key is being accepted.
func repeat(t *testing.T, r Replica, key nf.RequestKey) nf.Operation {
	t.Helper()
	for {
		op, err := r.Request(t.Context(), key)
		if err == nil {
			return op
		}
		if nf.KindOf(err) != nf.Busy {
			t.Fatalf("the request cannot be repeated: %v", err)
		}
		<-time.After(max(nf.RetryAfterOf(err), time.Second))
	}
}

// ledger returns the operations of a store, without a replica that runs them.
func ledger(t *testing.T, kv store.KV) *operation.Ledger {
	t.Helper()
	w, err := operation.New(operation.Config{KV: kv, NewID: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return w.Ledger()
}

// follow waits until an operation or the context ends.
func follow(ctx context.Context, t *testing.T, kv store.KV, op nf.Operation) {
	t.Helper()
	for _, err := range ledger(t, kv).Follow(ctx, op.ID) {
		if err != nil && ctx.Err() == nil {
			t.Errorf("the operation cannot be followed: %v", err)
		}
	}
}

// check compares what the run has left with that of an undisturbed run.
func (r *run) check(t *testing.T, want any) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the process %s: %s", r.fault, r.calls[r.fault.at-1].what)
		}
	}()
	r.checkEnded(t)
	for _, what := range r.world.Unknown() {
		t.Errorf("no record names %s", what)
	}
	if !r.fault.afterDeadline {
		if diff := cmp.Diff(want, r.world.Snapshot()); diff != "" {
			t.Errorf("what is left differs (-undisturbed +resumed):\n%s", diff)
		}
	}
	if r.fault.how == stalled {
		r.checkStalled(t)
	}
	r.checkEnds(t)
}

// checkEnds checks that no operation was ended twice.
func (r *run) checkEnds(t *testing.T) {
	t.Helper()
	ends := map[string]int{}
	r.first.meter.addTo(ends)
	r.second.meter.addTo(ends)
	for id, n := range ends {
		if n > 1 {
			t.Errorf("operation %s was ended %d times", id, n)
		}
	}
	if len(ends) == 0 && r.fault.how == stalled {
		t.Error("no operation was ended")
	}
}

// checkEnded checks that every operation has ended, and is not in the list of
// work.
func (r *run) checkEnded(t *testing.T) {
	t.Helper()
	for op, err := range ledger(t, r.world.KV).All(t.Context()) {
		if err != nil || !op.State.Final() {
			t.Errorf("operation %s is %s: %v", op.ID, op.State, err)
		}
	}
	for key := range r.records(t) {
		if strings.HasPrefix(key, "claims/") {
			t.Errorf("the list of work has %s", key)
		}
	}
}

// checkStalled lets the stalled process continue after the end of the operation.
func (r *run) checkStalled(t *testing.T) {
	t.Helper()
	settled, snapshot := r.records(t), r.world.Snapshot()
	r.wake()
	now := r.records(t)
	for key, value := range settled {
		if there, ok := now[key]; !ok || there != value {
			t.Errorf("the stalled process has changed %s (-want +got):\n%s", key, cmp.Diff(value, there))
		}
	}
	late := r.first.outsideCalls()
	if late > 1 {
		t.Errorf("the stalled process has made %d outside calls", late)
	}
	if len(now) != len(settled) {
		<-time.After(scans)
		synctest.Wait()
	}
	if diff := cmp.Diff(settled, r.collected(t, settled)); diff != "" {
		t.Errorf("what the stalled process has written stays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(snapshot, r.world.Snapshot()); late == 0 && diff != "" {
		t.Errorf("what the stalled process leaves differs (-want +got):\n%s", diff)
	}
}

// collected returns the records of the store, without new ones that stay.
func (r *run) collected(t *testing.T, settled map[string]string) map[string]string {
	t.Helper()
	now := r.records(t)
	maps.DeleteFunc(now, func(key, _ string) bool {
		_, old := settled[key]
		return !old && r.world.Stays != nil && r.world.Stays(key)
	})
	return now
}

// records returns the records of the store, except leases.
func (r *run) records(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for e, err := range r.world.KV.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.Key, "replicas/") {
			out[e.Key] = string(e.Value)
		}
	}
	return out
}
