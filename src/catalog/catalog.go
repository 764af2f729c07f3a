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
	regions  store.HeldTable[nf.Region]
	packages store.HeldTable[nf.Package]
	blobs    store.Blobs
	memory   *budget
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
		regions:  store.NewHeldTable(cfg.KV, "regions/", "cloud region", func(r *nf.Region) *string { return &r.Removing }),
		packages: store.NewHeldTable(cfg.KV, "packages/", "package", func(p *nf.Package) *string { return &p.Removing }),
		blobs:    store.NewBlobs(cfg.KV),
		memory:   newBudget(cfg.Limits),
	}, nil
}

// Hold keeps a region and a package from being removed while an instance uses
// them; nf.NotFound when one of them is gone. Holding again changes nothing.
func (c *Catalog) Hold(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if err := c.regions.Hold(ctx, h.Region, h.Instance); err != nil {
			return fmt.Errorf("cannot hold the region: %w", err)
		}
	}
	if h.Package != "" {
		if err := c.packages.Hold(ctx, h.Package, h.Instance); err != nil {
			return fmt.Errorf("cannot hold the package: %w", err)
		}
	}
	return nil
}

// Release ends an instance's hold on a region and a package. That there is none
// is no error.
func (c *Catalog) Release(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if err := c.regions.Release(ctx, h.Region, h.Instance); err != nil {
			return fmt.Errorf("cannot release the region: %w", err)
		}
	}
	if h.Package != "" {
		if err := c.packages.Release(ctx, h.Package, h.Instance); err != nil {
			return fmt.Errorf("cannot release the package: %w", err)
		}
	}
	return nil
}

// Holdings yields every hold, on a region or on a package.
func (c *Catalog) Holdings(ctx context.Context) iter.Seq2[nf.Holding, error] {
	return func(yield func(nf.Holding, error) bool) {
		for hold, err := range c.regions.Holds().All(ctx) {
			if !yield(nf.Holding{Instance: hold.User, Region: hold.Thing}, err) || err != nil {
				return
			}
		}
		for hold, err := range c.packages.Holds().All(ctx) {
			if !yield(nf.Holding{Instance: hold.User, Package: hold.Thing}, err) {
				return
			}
		}
	}
}

// Users yields the ids of the instances that hold a region, or else a package,
// in their order. There may be very many.
func (c *Catalog) Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error] {
	if of.Region != "" {
		return c.regions.Holds().Users(ctx, of.Region)
	}
	return c.packages.Holds().Users(ctx, of.Package)
}

// mostNamed is how many users a refusal names.
const mostNamed = 20

// inUse makes of a refusal to remove what is held one that names its users.
func (c *Catalog) inUse(ctx context.Context, subject string, of nf.Holding, refusal error) error {
	if nf.ReasonOf(refusal) != store.ReasonHeld {
		return refusal
	}
	var v nf.Violations
	for id, err := range c.Users(ctx, of) {
		if err != nil {
			return err
		}
		if len(v) == mostNamed {
			v = append(v, nf.Violation{Message: "is used by further VNF instances"})
			break
		}
		v = append(v, nf.Violation{Message: "is used by VNF instance " + id})
	}
	if len(v) == 0 {
		v = nf.Violations{{Message: "was used by a VNF instance a moment ago"}}
	}
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: subject, Reason: store.ReasonHeld, Err: v}
}
