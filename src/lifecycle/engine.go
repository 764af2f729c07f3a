package lifecycle

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// Catalog is what the engine asks of the registered regions and packages.
type Catalog interface {
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Files returns a package and its files, or nf.NotFound.
	Files(ctx context.Context, id string) (nf.Package, render.Files, error)
	// Hold keeps a region and a package from being removed. Repeating it is
	// harmless; nf.NotFound when one is gone.
	Hold(ctx context.Context, h nf.Holding) error
	// Release takes the holds off again.
	Release(ctx context.Context, h nf.Holding) error
	// Holdings yields every hold.
	Holdings(ctx context.Context) iter.Seq2[nf.Holding, error]
}

// Config is what an engine is made of. Fields without a default are required.
type Config struct {
	KV        store.KV
	Catalog   Catalog
	Renderers map[string]render.Renderer // by package kind
	Open      OpenCluster
	NewID     func() string // short, label-safe, never the same twice

	Clock     func() time.Time // default time.Now
	Logger    *slog.Logger     // default: discard
	Workers   int              // operations run at once; default 32
	Timeout   time.Duration    // of an operation whose request names none; default 15 min
	Drain     time.Duration    // how long Run lets operations go on after its context ends; default 20 s
	Revisions int              // revisions kept for each instance; default 10
	Retention time.Duration    // how long operations are kept after their end; default 30 days
	Lease     time.Duration    // after which a replica that stands still is taken for dead; default 10 s
	Sole      bool             // no other process can have the store open
	Apart     bool             // projects have only what regions let them use (nf.Tenant); default: every region is all theirs
	Brake     Brake            // of changes that delete; default: see there
	Meter     Meter            // default: nothing is counted
	Trace     Trace            // default: nothing is traced
}

// Meter is told what is worth counting.
type Meter interface {
	// Finished is told of every operation that ends.
	Finished(op nf.Operation)
	// LeaseEnded is told of every lease that ended by standing still: this
	// replica's own, or another's that this one has noticed.
	LeaseEnded(own bool)
	// Resumed is told of every operation that another replica, or a former
	// process, had begun.
	Resumed(op nf.Operation)
}

// Trace is told what belongs together.
type Trace interface {
	// Operation begins an operation's trace, or goes on with it.
	Operation(ctx context.Context, op nf.Operation) (context.Context, func(nf.Operation, error))
	// Step begins a step of the context's operation.
	Step(ctx context.Context, name string) (context.Context, func(error))
}

// silent is the default of Meter and Trace.
type silent struct{}

func (silent) Finished(nf.Operation) {}
func (silent) LeaseEnded(bool)       {}
func (silent) Resumed(nf.Operation)  {}

func (silent) Operation(ctx context.Context, _ nf.Operation) (context.Context, func(nf.Operation, error)) {
	return ctx, func(nf.Operation, error) {}
}

func (silent) Step(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (c *Config) complete() error {
	if c.KV == nil || c.Catalog == nil || c.Open == nil || c.NewID == nil || len(c.Renderers) == 0 {
		return errors.New("cannot make an engine: KV, Catalog, Renderers, Open and NewID are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = silent{}
	}
	if c.Trace == nil {
		c.Trace = silent{}
	}
	c.Lease = defaulted(c.Lease, 10*time.Second)
	c.Brake.complete()
	c.Workers = defaulted(c.Workers, 32)
	c.Timeout = defaulted(c.Timeout, 15*time.Minute)
	c.Drain = defaulted(c.Drain, 20*time.Second)
	c.Revisions = defaulted(c.Revisions, 10)
	c.Retention = defaulted(c.Retention, 30*24*time.Hour)
	return nil
}

func defaulted[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Engine accepts requests and runs their operations. It is safe for concurrent
// use.
type Engine struct {
	cfg        Config
	instances  store.Table[nf.Instance]
	revisions  store.Table[nf.Revision]
	operations store.Table[nf.Operation]
	changes    store.Table[[]nf.Change]
	names      store.Table[reservation]
	namespaces store.SharedTable[occupancy]
	claims     store.Table[claim]
	replicas   *lease.Group
	requests   store.Table[request]
	blobs      store.Blobs
	queue      *queue
	feed       *feed
	poked      chan struct{} // holds a token when there may be work
	stopped    chan struct{} // closed when Run returns

	mu     sync.Mutex
	tenure *tenure                            // nil while this replica holds no lease
	living map[string]bool                    // replicas seen last
	live   map[string]nf.Operation            // operations that run here, as last written
	owned  map[string]context.CancelCauseFunc // operations that this replica deals with, and what stops those that run
}

// New returns an engine on a store. It does nothing until Run.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Engine{
		cfg:        cfg,
		instances:  store.NewTable[nf.Instance](cfg.KV, "instances/", "VNF instance"),
		revisions:  store.NewTable[nf.Revision](cfg.KV, "revisions/", "revision"),
		operations: store.NewTable[nf.Operation](cfg.KV, "operations/", "operation"),
		changes:    store.NewTable[[]nf.Change](cfg.KV, "changes/", "changes of operation"),
		names:      store.NewTable[reservation](cfg.KV, "names/", "instance name"),
		namespaces: store.NewSharedTable(cfg.KV, "namespaces/", "namespace", func(o *occupancy) *string { return &o.Removing }),
		claims:     store.NewTable[claim](cfg.KV, "claims/", "claim on operation"),
		replicas:   lease.NewGroup(cfg.KV, "replicas/", "replica", cfg.Lease, cfg.Clock),
		requests:   store.NewTable[request](cfg.KV, "requests/", "request"),
		blobs:      store.NewBlobs(cfg.KV),
		queue:      newQueue(cfg.Workers),
		feed:       newFeed(),
		poked:      make(chan struct{}, 1),
		stopped:    make(chan struct{}),
		owned:      map[string]context.CancelCauseFunc{},
		live:       map[string]nf.Operation{},
	}, nil
}

// errShutdown is the cause with which Run ends the operations that outlast the
// drain time; such an operation is not failed, only interrupted.
var errShutdown = errors.New("the service is shutting down")

func (e *Engine) now() time.Time { return e.cfg.Clock().UTC() }
