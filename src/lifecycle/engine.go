package lifecycle

import (
	"context"
	"errors"
	"iter"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Catalog gives the engine access to the registered regions and packages.
type Catalog interface {
	// Region returns a region. It returns nf.NotFound if the region is not
	// registered.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Files returns a package and its files. It returns nf.NotFound if the package
	// does not exist. The files occupy memory that all packages share, until the
	// caller calls done; calling it twice is harmless. It returns nf.TooManyRequests if no
	// such memory becomes free in time.
	Files(ctx context.Context, id string) (p nf.Package, files render.Files, done func(), err error)
	Holds
}

// Holds prevent the removal of regions and packages.
type Holds interface {
	// Hold prevents a region and a package from being removed. It is idempotent.
	// It returns nf.NotFound if one of them does not exist.
	Hold(ctx context.Context, h nf.Holding) error
	// HoldOps returns the ops that hold a region and a package. They fail if one of
	// them changes before they are written. It returns nf.NotFound if one of them does
	// not exist.
	HoldOps(ctx context.Context, h nf.Holding) ([]store.Op, error)
	// ReleaseOps returns the ops that release the holds. They fail if a hold is not the
	// one that ReleaseOps has read.
	ReleaseOps(ctx context.Context, h nf.Holding) ([]store.Op, error)
	// Release releases the holds.
	Release(ctx context.Context, h nf.Holding) error
	// HolderIDs yields the ids of the holders of the region or, without one, of all
	// regions, in the order of the ids: of those kinds and scopes that in reports true
	// for. It does not read the others.
	HolderIDs(ctx context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool, from nf.Cursor) iter.Seq2[string, error]
}

// Config configures an engine. Fields without a default are required.
type Config struct {
	KV        store.KV
	Catalog   Catalog
	Renderers map[string]render.Renderer // by package kind
	Open      OpenCluster
	Workers   *operation.Workers // run the operations; New registers the engine's kind
	NewID     func() string      // returns short, label-safe ids, never the same one twice

	Places        int            // operations that run at once; default 32
	Timeout       time.Duration  // of an operation whose request sets none; default 15 min
	Networks      Networks       // default: instances cannot attach to networks
	Regions       Regions        // default: each new instance names its region, and workloads have no flavors
	Flavors       FlavorLabels   // default: workloads have no flavors
	Volumes       Volumes        // default: instances cannot use volumes
	Workloads     Workloads      // default: clusters of instances do not become regions
	Directory     Directory      // default: none
	Owners        Owners         // default: instances have no owner
	Plans         *budget.Budget // memory for the plans of all requests; default: 256 MiB
	Drain         time.Duration  // how long operations may run after the workers' context ends; default 20 s
	Revisions     int            // revisions kept per instance; default 10
	Retention     time.Duration  // how long ended operations are kept; default 30 days
	Apart         bool           // projects may use only what regions grant them (nf.Tenant); default: all of every region
	DeletionGuard DeletionGuard  // for its defaults see DeletionGuard
}

func (c *Config) complete() error {
	if c.KV == nil || c.Catalog == nil || c.Open == nil || c.Workers == nil || c.NewID == nil || len(c.Renderers) == 0 {
		return errors.New("cannot create an engine: KV, Catalog, Renderers, Open, Workers and NewID are required")
	}
	c.DeletionGuard.complete()
	if c.Plans == nil {
		c.Plans = budget.New(plansMemory)
	}
	c.Places = orDefault(c.Places, 32)
	c.Timeout = orDefault(c.Timeout, 15*time.Minute)
	c.Drain = orDefault(c.Drain, 20*time.Second)
	c.Revisions = orDefault(c.Revisions, 10)
	c.Retention = orDefault(c.Retention, 30*24*time.Hour)
	return nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Engine accepts requests, and returns the records of instances and their
// operations. It is safe for concurrent use.
type Engine struct {
	records  *records
	preparer *preparer
	acceptor *acceptor
	requests *requester
	open     OpenCluster
}

// New returns an engine on a store. It runs operations when the workers do.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	stored := newRecords(cfg.KV, cfg.Catalog, cfg.Workers.Ledger())
	p := &performer{records: stored, catalog: cfg.Catalog, networks: cfg.Networks, volumes: cfg.Volumes, workloads: cfg.Workloads, directory: cfg.Directory, open: cfg.Open, apart: cfg.Apart, kept: cfg.Revisions}
	operations := cfg.Workers.Register(operation.Kind{
		Name: nf.InstanceSubject, Places: cfg.Places, Drain: cfg.Drain, Timeout: cfg.Timeout, Perform: stored.ledger.Performer(false, p.work),
		Names: stored.locks.Names, Withdraw: stored.withdraw, Retention: cfg.Retention, Expire: stored.expire,
		Sweep: func() operation.Sweep { return newSweep(cfg.KV, stored) },
	})
	e := &Engine{
		records: stored, open: cfg.Open, acceptor: &acceptor{records: stored, operations: operations},
		preparer: &preparer{
			records: stored, catalog: cfg.Catalog, renderers: cfg.Renderers, open: cfg.Open, newID: cfg.NewID, apart: cfg.Apart, guard: cfg.DeletionGuard,
			networks: cfg.Networks, volumes: cfg.Volumes, regions: cfg.Regions, workloads: cfg.Workloads, flavors: cfg.Flavors, owners: cfg.Owners, memory: &planMemory{cfg.Plans, semaphore.NewWeighted(plansWaiting)},
		},
	}
	e.requests = &requester{e.records, e.preparer, e.acceptor}
	p.engine = e
	return e, nil
}
