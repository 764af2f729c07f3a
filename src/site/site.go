package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config is what Sites is made of. The fields of the first group are required.
type Config struct {
	KV        store.KV
	Regions   Regions
	Terminate Terminate
	Reach     Reach
	Runners   map[nf.SiteDriver]Runner
	NewID     func() string // short, never the same twice

	Usable    func(nf.SiteMaterial) error // says whether a credential can be used, without trying; default: every one can
	Finished  func(nf.SiteOperation)      // is told of every operation that has ended here; it must return at once
	Resumed   func(nf.SiteOperation)      // and of every one that somebody else had begun
	Trace     Trace                       // default: nothing is traced
	Clock     func() time.Time            // default time.Now
	Logger    *slog.Logger                // default: discard
	Parallel  int                         // operations that run at once; default 4
	Timeout   time.Duration               // of an operation whose request names none; default 2 h
	Retention time.Duration               // how long operations are kept after their end; default 30 days
	Lease     time.Duration               // after which a replica that stands still is taken for dead; default 10 s
	Sole      bool                        // no other process can have the store open
}

// Trace is told what belongs together.
type Trace interface {
	// SiteOperation begins an operation's trace, or goes on with it.
	SiteOperation(ctx context.Context, op nf.SiteOperation) (context.Context, func(nf.SiteOperation, error))
	// Step begins a step of the context's operation.
	Step(ctx context.Context, name string) (context.Context, func(error))
}

// untraced is the default of Trace.
type untraced struct{}

func (untraced) SiteOperation(ctx context.Context, _ nf.SiteOperation) (context.Context, func(nf.SiteOperation, error)) {
	return ctx, func(nf.SiteOperation, error) {}
}

func (untraced) Step(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (c *Config) complete() error {
	if c.KV == nil || c.Regions == nil || c.Terminate == nil || c.Reach == nil || c.NewID == nil || len(c.Runners) == 0 {
		return errors.New("cannot look after sites: KV, Regions, Terminate, Reach, NewID and Runners are required")
	}
	if c.Usable == nil {
		c.Usable = func(nf.SiteMaterial) error { return nil }
	}
	if c.Finished == nil {
		c.Finished = func(nf.SiteOperation) {}
	}
	if c.Resumed == nil {
		c.Resumed = func(nf.SiteOperation) {}
	}
	if c.Trace == nil {
		c.Trace = untraced{}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 2 * time.Hour}, {&c.Retention, 30 * 24 * time.Hour}, {&c.Lease, 10 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return nil
}

// Sites keeps sites and carries out their operations. It is safe for concurrent
// use.
type Sites struct {
	cfg     Config
	replica string

	sites      store.Table[nf.Site]
	materials  store.Table[material]
	operations store.Table[nf.SiteOperation]
	events     store.Table[chunk]
	leases     store.Table[claimRecord]

	poked   chan struct{} // holds a token when there may be work
	stopped chan struct{} // closed when Run returns

	mu      sync.Mutex
	running map[string]nf.SiteOperation // operations that run here, as they were last seen
	changed chan struct{}               // closed when something of an operation is written here
}

// New returns the sites of a store. It does nothing before Run.
func New(cfg Config) (*Sites, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Sites{
		cfg:        cfg,
		replica:    cfg.NewID(),
		sites:      store.NewTable[nf.Site](cfg.KV, "sites/", "site"),
		materials:  store.NewTable[material](cfg.KV, "sitematerials/", "material of site"),
		operations: store.NewTable[nf.SiteOperation](cfg.KV, "siteoperations/", "operation of a site"),
		events:     store.NewTable[chunk](cfg.KV, "siteevents/", "events of a site's operation"),
		leases:     store.NewTable[claimRecord](cfg.KV, "siteleases/", "lease of a site's operation"),
		poked:      make(chan struct{}, 1),
		stopped:    make(chan struct{}),
		running:    map[string]nf.SiteOperation{},
		changed:    make(chan struct{}),
	}, nil
}

func (s *Sites) now() time.Time { return s.cfg.Clock().UTC() }

// material is what is secret of a site, as one operation has brought it.
type material struct {
	nf.SiteMaterial

	ID string `json:"id"`
}

// operationID has the operations of a site in the order in which they were
// accepted.
func (s *Sites) operationID() string {
	return fmt.Sprintf("%012x-%s", s.now().UnixMilli(), s.cfg.NewID())
}

// under is where an operation of a site is kept.
func under(site, operation string) string { return site + "/" + operation }

// poke makes Run look for work soon.
func (s *Sites) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}
