package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Catalog is what the engine asks of the registered regions and packages.
type Catalog interface {
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Files returns a package and its files, or nf.NotFound.
	Files(ctx context.Context, id string) (nf.Package, render.Files, error)
	// Hold keeps a region and a package from being removed. Repeating it is
	// harmless; nf.NotFound when one is gone.
	Hold(ctx context.Context, instance, region, pkg string) error
	// ReleaseRegion and ReleasePackage take the holds off again.
	ReleaseRegion(ctx context.Context, instance, region string) error
	ReleasePackage(ctx context.Context, instance, pkg string) error
}

// Config is what an engine is made of. Fields without a default are required.
type Config struct {
	KV        store.KV
	Catalog   Catalog
	Renderers map[string]render.Renderer // by package kind
	Open      OpenCluster
	NewID     func() string // short, label-safe, never the same twice

	Clock     func() time.Time   // default time.Now
	Logger    *slog.Logger       // default: discard
	Workers   int                // operations run at once; default 32
	Timeout   time.Duration      // of an operation whose request names none; default 15 min
	Drain     time.Duration      // how long Run lets operations go on after its context ends; default 20 s
	Revisions int                // revisions kept for each instance; default 10
	Retention time.Duration      // how long operations are kept after their end; default 30 days
	Finished  func(nf.Operation) // told of every operation that ends; default: nobody
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
	if c.Finished == nil {
		c.Finished = func(nf.Operation) {}
	}
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
	namespaces store.Table[tenancy]
	blobs      store.Blobs
	queue      *queue
	feed       *feed
	stopped    chan struct{} // closed when Run returns

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // by operation id
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
		namespaces: store.NewTable[tenancy](cfg.KV, "namespaces/", "namespace"),
		blobs:      store.NewBlobs(cfg.KV),
		queue:      newQueue(),
		feed:       newFeed(),
		stopped:    make(chan struct{}),
		running:    map[string]context.CancelCauseFunc{},
	}, nil
}

// Recover puts the operations that a former process left unfinished back into
// the queue, and clears what requests left behind that were never accepted. It
// must return before the first request is taken.
func (e *Engine) Recover(ctx context.Context) error {
	known := map[string]bool{}
	for in, err := range e.instances.All(ctx, "") {
		if err != nil {
			return fmt.Errorf("cannot recover instances: %w", err)
		}
		known[in.ID] = true
		if err := e.unbind(ctx, in); err != nil {
			return fmt.Errorf("cannot recover VNF instance %s: %w", in.ID, err)
		}
	}
	for op, err := range e.operations.All(ctx, "") {
		if err != nil {
			return fmt.Errorf("cannot recover operations: %w", err)
		}
		if !op.State.Final() {
			e.cfg.Logger.InfoContext(ctx, "operation resumes", "operation", op.ID, "verb", op.Verb, "instance", op.Instance)
			known[op.Instance] = true
			e.queue.push(op.ID)
		}
	}
	return e.sweepNames(ctx, known)
}

// unbind frees an instance from an operation that will never finish it: one
// that was given up while a late write of the store still bound the instance.
func (e *Engine) unbind(ctx context.Context, in nf.Instance) error {
	if in.Operation == "" {
		return nil
	}
	op, err := e.operations.Get(ctx, in.Operation)
	if err == nil && !op.State.Final() || err != nil && nf.KindOf(err) != nf.NotFound {
		return err
	}
	_, err = e.instances.Update(ctx, in.ID, func(now *nf.Instance) error {
		now.Message = "operation " + now.Operation + " was given up"
		now.Operation, now.State, now.Updated = "", nf.Broken, e.now()
		return nil
	})
	return err
}

// Run carries out operations until the context ends. Then it starts no more,
// gives those that run Config.Drain to finish, stops the rest where they are,
// and returns; a later process resumes them. It is called once.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.stopped)
	// Operations outlive ctx by the drain time, and no longer.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var workers errgroup.Group
	for range e.cfg.Workers {
		workers.Go(func() error {
			for {
				id, err := e.queue.next(ctx)
				if err != nil {
					return nil //nolint:nilerr // the context's end is how Run is told to stop
				}
				e.carry(work, id)
			}
		})
	}
	workers.Go(func() error { e.retain(ctx); return nil })
	<-ctx.Done()
	timer := time.AfterFunc(e.cfg.Drain, func() { stop(errShutdown) })
	defer timer.Stop()
	return workers.Wait()
}

// errShutdown is the cause with which Run ends the operations that outlast the
// drain time; such an operation is not failed, only interrupted.
var errShutdown = errors.New("the service is shutting down")

func (e *Engine) now() time.Time { return e.cfg.Clock().UTC() }
