package catalog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config is what a catalog is made of. Every field but Clock is required.
type Config struct {
	KV        store.KV
	Renderers map[string]render.Renderer // by package kind
	Limits    render.Limits              // of an uploaded archive
	Probe     Probe
	Check     func(kubeconfig []byte) error // says whether a kubeconfig can be used, without trying; nil: every one can
	NewID     func() string                 // ids for packages that come without one
	Clock     func() time.Time              // nil: time.Now
}

// Probe connects to the API server of a kubeconfig, authenticates, and reads
// its version and API list. It fails with nf.Invalid when the kubeconfig itself
// is refused, and with nf.Unreachable and a reason otherwise.
type Probe func(ctx context.Context, kubeconfig []byte) (nf.Probe, error)

// Catalog is the regions and packages of one store. It is safe for concurrent
// use.
type Catalog struct {
	cfg      Config
	regions  store.Table[nf.Region]
	packages store.Table[nf.Package]
	blobs    store.Blobs
}

// New returns the catalog of a store.
func New(cfg Config) (*Catalog, error) {
	if cfg.KV == nil || cfg.Probe == nil || cfg.NewID == nil || len(cfg.Renderers) == 0 {
		return nil, fmt.Errorf("cannot make a catalog: KV, Probe, NewID and Renderers are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Catalog{
		cfg:      cfg,
		regions:  store.NewTable[nf.Region](cfg.KV, "regions/", "cloud region"),
		packages: store.NewTable[nf.Package](cfg.KV, "packages/", "package"),
		blobs:    store.NewBlobs(cfg.KV),
	}, nil
}

// Hold marks a region and a package as used by an instance; nf.NotFound when
// one of them is gone. Holding again changes nothing.
func (c *Catalog) Hold(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if _, err := c.regions.Update(ctx, h.Region, func(r *nf.Region) error {
			r.Users = nf.Hold(r.Users, h.Instance)
			return nil
		}); err != nil {
			return fmt.Errorf("cannot hold the region: %w", err)
		}
	}
	if h.Package != "" {
		if _, err := c.packages.Update(ctx, h.Package, func(p *nf.Package) error {
			p.Users = nf.Hold(p.Users, h.Instance)
			return nil
		}); err != nil {
			return fmt.Errorf("cannot hold the package: %w", err)
		}
	}
	return nil
}

// Release takes an instance's hold off a region and a package. One that is gone
// is no error: there is nothing to release.
func (c *Catalog) Release(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if _, err := c.regions.Update(ctx, h.Region, func(r *nf.Region) error {
			r.Users = nf.Release(r.Users, h.Instance)
			return nil
		}); nf.UnlessGone(err) != nil {
			return fmt.Errorf("cannot release the region: %w", err)
		}
	}
	if h.Package != "" {
		if _, err := c.packages.Update(ctx, h.Package, func(p *nf.Package) error {
			p.Users = nf.Release(p.Users, h.Instance)
			return nil
		}); nf.UnlessGone(err) != nil {
			return fmt.Errorf("cannot release the package: %w", err)
		}
	}
	return nil
}

// Holdings yields every hold, on a region or on a package.
func (c *Catalog) Holdings(ctx context.Context) iter.Seq2[nf.Holding, error] {
	return func(yield func(nf.Holding, error) bool) {
		for r, err := range c.regions.All(ctx, "") {
			if !yieldEach(yield, r.Users, nf.Holding{Region: r.ID}, err) {
				return
			}
		}
		for p, err := range c.packages.All(ctx, "") {
			if !yieldEach(yield, p.Users, nf.Holding{Package: p.ID}, err) {
				return
			}
		}
	}
}

// yieldEach yields a hold of each user, or the error; false when that was the
// last.
func yieldEach(yield func(nf.Holding, error) bool, users []string, h nf.Holding, err error) bool {
	if err != nil {
		yield(nf.Holding{}, err)
		return false
	}
	for _, h.Instance = range users {
		if !yield(h, nil) {
			return false
		}
	}
	return true
}

// unused refuses a removal while instances hold the thing, naming each.
func unused(op, subject string, users []string) error {
	if len(users) == 0 {
		return nil
	}
	v := make(nf.Violations, len(users))
	for i, id := range users {
		v[i] = nf.Violation{Message: "is used by VNF instance " + id}
	}
	return nf.E(nf.Conflict, op, subject, v)
}
