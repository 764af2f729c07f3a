package operationtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// shakeVariable is the environment variable that has goroutines take turns at random at
// each call, so that rare schedules become likely. A failure need not come again with it.
const shakeVariable = "SHAKE"

// Process is one process of a test. It may die or stall at one of its calls to
// the store and to the outside parts.
type Process struct {
	fault  fault
	sole   bool
	lease  time.Duration
	meter  *meter
	shaken bool          // its goroutines take turns at random
	halted chan struct{} // closed when it dies or stalls
	woken  chan struct{} // closed when it continues after the stall

	mu        sync.Mutex
	counting  bool
	calls     []call // since it counts
	dead      bool
	stalled   bool
	lateCalls int // outside calls that were carried out after the stall
}

// call is a call of a process.
type call struct {
	what    string
	read    bool // of the store
	outside bool
	parts   bool // it can be carried out by half
}

// fault says at which call a process dies or stalls.
type fault struct {
	at            int // from 1; 0: it lives
	how           moment
	afterDeadline bool // the next process starts after the deadline
	accepting     bool // the request is not yet answered
}

func (f fault) String() string {
	text := fmt.Sprintf("%s call %d", f.how, f.at)
	if f.afterDeadline {
		text += ", and the deadline passes"
	}
	return text
}

// moment is a moment about a call.
type moment string

const (
	before  moment = "dies before"
	during  moment = "dies during"
	after   moment = "dies after"
	stalled moment = "stalls at"
)

func newProcess(f fault) *Process {
	return &Process{fault: f, meter: &meter{}, shaken: os.Getenv(shakeVariable) != "", halted: make(chan struct{}), woken: make(chan struct{})}
}

// Config returns the configuration of the process's workers, on the store as the
// process reaches it. NewID and Logger are not set.
func (p *Process) Config(kv store.KV) operation.Config {
	return operation.Config{KV: crashingKV{kv, p}, Sole: p.sole, Lease: p.lease, Meter: p.meter}
}

// Call makes a call that changes something outside the store. Whole carries it
// out; half carries out a part of it, and may be nil if the call has no parts.
// If the process dies, Call returns nf.Unreachable.
func (p *Process) Call(what string, whole, half func()) error {
	return p.call(call{what: what, outside: true, parts: half != nil}, whole, half)
}

// Call makes a call as Process.Call does, and returns its result.
func Call[T any](p *Process, what string, whole, half func() (T, error)) (out T, err error) {
	var part func()
	if half != nil {
		part = func() { _, _ = half() }
	}
	if dead := p.Call(what, func() { out, err = whole() }, part); dead != nil {
		var none T
		return none, dead
	}
	return out, err
}

func (p *Process) call(c call, whole, half func()) error {
	p.shake()
	defer p.shake()
	how, err := p.meet(c)
	switch how {
	case before:
		err = p.die()
	case during:
		if half != nil { // a cancellation may come a call earlier or later than in the run that was counted
			half()
		}
		err = p.die()
	case after:
		whole()
		err = p.die()
	case stalled:
		<-p.woken
	}
	if err == nil && how != after {
		if c.outside {
			p.countLate()
		}
		whole()
	}
	return err
}

// shake lets other goroutines run, or not.
func (p *Process) shake() {
	if !p.shaken {
		return
	}
	for range rand.IntN(6) {
		runtime.Gosched()
	}
}

// meet counts a call and returns what happens to the process at it.
func (p *Process) meet(c call) (moment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dead:
		return "", died()
	case p.stalled:
		return stalled, nil
	case !p.counting || strings.Contains(c.what, " replicas/"): // leases have no part in operations
		return "", nil
	}
	p.calls = append(p.calls, c)
	if len(p.calls) != p.fault.at {
		return "", nil
	}
	if p.fault.how == stalled {
		p.stalled = true
		close(p.halted)
	}
	return p.fault.how, nil
}

func (p *Process) countLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled {
		p.lateCalls++
	}
}

// Stalled reports whether the process has stalled: its calls may come after those of
// its successor.
func (p *Process) Stalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled
}

func (p *Process) die() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.dead = true
		close(p.halted)
	}
	return died()
}

func died() error { return nf.E(nf.Unreachable, "call", "from a process", errors.New("it is dead")) }

// begin begins to count calls.
func (p *Process) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counting = true
}

// seen returns the calls so far.
func (p *Process) seen() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// outsideCalls returns how many outside calls were carried out after the stall.
func (p *Process) outsideCalls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lateCalls
}

// crashingKV is the store as a process reaches it.
type crashingKV struct {
	store.KV

	process *Process
}

// Get implements store.KV.
func (k crashingKV) Get(ctx context.Context, key string) (e store.Entry, err error) {
	if dead := k.process.call(call{what: "get " + key, read: true}, func() { e, err = k.KV.Get(ctx, key) }, nil); dead != nil {
		return e, dead
	}
	return e, err
}

// List implements store.KV.
func (k crashingKV) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if dead := k.process.call(call{what: "list " + prefix, read: true}, func() {}, nil); dead != nil {
			yield(store.Entry{}, dead)
			return
		}
		k.KV.List(ctx, prefix, start)(yield)
	}
}

// Put implements store.KV.
func (k crashingKV) Put(ctx context.Context, key string, value []byte, expected store.Revision) (rev store.Revision, err error) {
	if dead := k.process.call(call{what: "put " + key}, func() { rev, err = k.KV.Put(ctx, key, value, expected) }, nil); dead != nil {
		return 0, dead
	}
	return rev, err
}

// Delete implements store.KV.
func (k crashingKV) Delete(ctx context.Context, key string, expected store.Revision) (err error) {
	if dead := k.process.call(call{what: "delete " + key}, func() { err = k.KV.Delete(ctx, key, expected) }, nil); dead != nil {
		return dead
	}
	return err
}

// meter counts how often a process has ended each operation.
type meter struct {
	mu    sync.Mutex
	ended map[string]int
}

// Finished implements operation.Meter.
func (m *meter) Finished(op nf.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		m.ended = map[string]int{}
	}
	m.ended[op.ID]++
}

// Resumed implements operation.Meter.
func (*meter) Resumed(nf.Operation) {}

// addTo adds the counts to others.
func (m *meter) addTo(counts map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, n := range m.ended {
		counts[id] += n
	}
}
