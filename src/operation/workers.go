package operation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// Config configures Workers. KV and NewID are required.
type Config struct {
	KV    store.KV
	NewID func() string // returns short ids, never the same one twice

	Clock      func() time.Time // default time.Now
	Logger     *slog.Logger     // default: discard
	Lease      time.Duration    // time without a heartbeat before a replica is considered dead; default 10 s
	Sole       bool             // no other process can have the store open
	Meter      Meter            // default: no metrics
	Trace      Trace            // default: no traces
	LeaseEnded func(own bool)   // called for each lease that expires: this replica's own, or another's; default: nothing
}

// Meter records metrics of operations.
type Meter interface {
	// Finished records an operation that has ended.
	Finished(op nf.Operation)
	// Resumed records an operation that another replica, or an earlier process,
	// had started.
	Resumed(op nf.Operation)
}

// Trace creates the trace spans of operations and steps.
type Trace interface {
	// Operation starts an operation's trace, or continues it.
	Operation(ctx context.Context, op nf.Operation) (context.Context, func(nf.Operation, error))
	// Step starts a span for a step of the context's operation.
	Step(ctx context.Context, step nf.Step) (context.Context, func(error))
}

// noTelemetry is the default Meter and Trace. It records nothing.
type noTelemetry struct{}

func (noTelemetry) Finished(nf.Operation) {}
func (noTelemetry) Resumed(nf.Operation)  {}

func (noTelemetry) Operation(ctx context.Context, _ nf.Operation) (context.Context, func(nf.Operation, error)) {
	return ctx, func(nf.Operation, error) {}
}

func (noTelemetry) Step(ctx context.Context, _ nf.Step) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// Kind is one kind of operations.
type Kind struct {
	Name   nf.SubjectKind
	Places int           // operations that run at once here
	Drain  time.Duration // how long operations may run after Run's context ends
	// Timeout is the time limit of an operation whose request sets none.
	Timeout time.Duration
	// Names reports whether the operation is the last one of its subject
	// (Locks.Names).
	Names func(ctx context.Context, op nf.Operation) (bool, error)
	// Withdraw deletes what was stored for an operation whose request was not
	// accepted, except the operation.
	Withdraw func(ctx context.Context, op nf.Operation) error
	// Perform runs a claimed operation. The first context ends with the service
	// or this replica's lease, the second also when the operation is cancelled,
	// with the cause ErrCancelled. Perform returns nil when the operation has
	// ended, or was never accepted and its records are gone; ErrTaken when a
	// token did not match. After any other error it is called again: on this
	// replica, or on another one if this one ends.
	Perform func(ctx, cancellable context.Context, j Job) error
	// Sweep begins a search for stale records of the kind. Nil: it has none of its
	// own, and its operations are kept.
	Sweep     func() Sweep
	Retention time.Duration // how long an ended operation is kept, unless it is the last one of its subject
	// Expire deletes what only the kind stores for an operation that is past its
	// retention. Nil: there is nothing.
	Expire func(ctx context.Context, op nf.Operation) error
}

// Job is an operation that this replica has claimed.
type Job struct {
	ID      string     // of the operation
	Subject nf.Subject // what the operation changes
	Project string     // the operation's
	Region  string     // for the fair use of places
	Token   string     // fencing token of the claim

	Stopping <-chan struct{} // closed when the operation is to stop before its next step; nil: never
}

var (
	// ErrTaken says that another replica has claimed the operation.
	ErrTaken = errors.New("another replica has claimed the operation")
	// ErrCancelled is the cause with which a cancelled operation is stopped.
	ErrCancelled = errors.New("it was cancelled")
	// ErrShutdown is the cause with which Run stops operations that outlast the
	// drain time. Such an operation has not failed; a replica resumes it.
	ErrShutdown = errors.New("the service is shutting down")
)

// Workers is this replica's share in the work. It is safe for concurrent use.
type Workers struct {
	cfg       Config
	claims    store.Table[claim]
	requests  store.Table[request]
	ledger    *Ledger
	replicas  *lease.Group
	kinds     map[nf.SubjectKind]*pool
	wakeCh    delay.Signal  // holds a token when there may be work to claim
	stopped   chan struct{} // closed when Run returns
	collector *collector

	mu         sync.Mutex
	membership *membership       // nil while this replica holds no lease
	living     map[string]bool   // replicas that were alive at the last scan
	tracked    map[string]*stops // operations that this replica handles, and what stops those that run
}

// pool is a kind with its places.
type pool struct {
	Kind

	queue *queue
}

// New returns workers for a store. They do nothing until Join and Run.
func New(cfg Config) (*Workers, error) {
	if cfg.KV == nil || cfg.NewID == nil {
		return nil, errors.New("cannot make workers: KV and NewID are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease <= 0 {
		cfg.Lease = 10 * time.Second
	}
	if cfg.LeaseEnded == nil {
		cfg.LeaseEnded = func(bool) {}
	}
	if cfg.Meter == nil {
		cfg.Meter = noTelemetry{}
	}
	if cfg.Trace == nil {
		cfg.Trace = noTelemetry{}
	}
	w := &Workers{
		cfg:      cfg,
		claims:   store.NewTable[claim](cfg.KV, "claims/", "claim on operation"),
		requests: store.NewTable[request](cfg.KV, "idempotency/", "request"),
		replicas: lease.NewGroup(cfg.KV, "replicas/", "replica", cfg.Lease, cfg.Clock),
		kinds:    map[nf.SubjectKind]*pool{},
		wakeCh:   delay.NewSignal(),
		stopped:  make(chan struct{}),
		tracked:  map[string]*stops{},
	}
	w.ledger, w.collector = newLedger(cfg.KV, w), &collector{workers: w}
	return w, nil
}

// Ledger returns the records of the operations.
func (w *Workers) Ledger() *Ledger { return w.ledger }

// Register adds a kind, and returns the acceptor of its requests. It must be
// called before Join, once for each kind.
func (w *Workers) Register(k Kind) *Acceptor {
	if k.Expire == nil {
		k.Expire = func(context.Context, nf.Operation) error { return nil }
	}
	w.kinds[k.Name] = &pool{Kind: k, queue: newQueue(k.Places, w.wakeCh)}
	return &Acceptor{w, k}
}

// Replicas returns how many replicas held a lease at this replica's last scan.
func (w *Workers) Replicas() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.living)
}

// Queued returns how many operations wait here for a place.
func (w *Workers) Queued() int {
	n := 0
	for _, p := range w.kinds {
		n += p.queue.depth()
	}
	return n
}

// Healthy returns nf.Unreachable while this replica holds no lease. In that
// state it accepts no operation.
func (w *Workers) Healthy(context.Context) error {
	if t := w.currentMembership(); t == nil || t.lost.Load() {
		return nf.E(nf.Unreachable, "run", "operations", errNoLease)
	}
	return nil
}

// Stopped returns a channel that is closed when Run returns.
func (w *Workers) Stopped() <-chan struct{} { return w.stopped }

// Yield gives back the place of a running operation that only waits. The
// operation takes a place again by calling resume, which waits for one.
func (w *Workers) Yield(j Job) (resume func()) {
	q := w.kinds[j.Subject.Kind].queue
	q.releaseSlot(j.Region)
	return func() { q.reacquireSlot(j.Region) }
}
