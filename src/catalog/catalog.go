package catalog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures a catalog. Fields without a default are required.
type Config struct {
	KV        store.KV
	Renderers map[string]render.Renderer // by package kind
	Limits    render.Limits              // of an uploaded archive
	Probe     Probe
	Login     Login                 // nil: no regions of OpenStack
	Parse     Parse                 // nil: regions have no kubeconfigs
	Check     func(nf.Access) error // checks an access without connecting; nil: no check
	NewID     func() string         // creates ids of uploads, and of packages without one
	Clock     func() time.Time      // nil: time.Now
	Memory    *budget.Budget        // of checks of uploads; nil: a new budget
}

// Probe connects to an API server, authenticates, and reads its version and API
// list. It returns nf.Invalid if the access itself is rejected, and
// nf.Unreachable with a reason for any other failure.
type Probe func(context.Context, nf.Access) (nf.Probe, error)

// Login logs in at an OpenStack cloud. It returns nf.Unsupported if the cloud lacks a
// service, and nf.Unreachable with a reason for any other failure.
type Login func(context.Context, nf.OpenStack) error

// Parse returns the access that a kubeconfig describes, or nf.Invalid.
type Parse func(kubeconfig nf.Secret) (nf.Access, error)

// Catalog stores regions and packages. It is safe for concurrent use.
type Catalog struct {
	cfg      Config
	regions  store.HeldTable[nf.Region]
	packages store.HeldTable[nf.Package]
	blobs    store.Blobs
	reads    *budget.Budget // memory for reading packages; separate, so that uploads cannot exhaust it
}

// New returns a catalog, or an error if a required field is missing.
func New(cfg Config) (*Catalog, error) {
	if cfg.KV == nil || cfg.Probe == nil || cfg.NewID == nil || len(cfg.Renderers) == 0 {
		return nil, fmt.Errorf("cannot create a catalog: KV, Probe, NewID and Renderers are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Memory == nil {
		cfg.Memory = budget.New(cfg.Limits.Memory)
	}
	return &Catalog{
		cfg:      cfg,
		regions:  store.NewHeldTable(cfg.KV, "regions/", "cloud region", func(r *nf.Region) *string { return &r.Removing }),
		packages: store.NewHeldTable(cfg.KV, "packages/", "package", func(p *nf.Package) *string { return &p.Removing }),
		blobs:    store.NewBlobs(cfg.KV),
		reads:    budget.New(cfg.Limits.Memory),
	}, nil
}

// Hold prevents the removal of a region and a package while the holder uses
// them. It returns nf.NotFound if one of them does not exist. Repeating it has
// no effect.
func (c *Catalog) Hold(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if err := c.regions.Hold(ctx, h.Region, h.Holder); err != nil {
			return fmt.Errorf("cannot hold the region: %w", err)
		}
	}
	if h.Package != "" {
		if err := c.packages.Hold(ctx, h.Package, h.Holder); err != nil {
			return fmt.Errorf("cannot hold the package: %w", err)
		}
	}
	return nil
}

// HoldOps returns the ops of Hold, for a list with other writes. They fail if the
// region or the package changes before they are written. HoldOps returns
// nf.NotFound as Hold does.
func (c *Catalog) HoldOps(ctx context.Context, h nf.Holding) (ops []store.Op, err error) {
	if h.Region != "" {
		if ops, err = c.regions.HoldOps(ctx, h.Region, h.Holder); err != nil {
			return nil, fmt.Errorf("cannot hold the region: %w", err)
		}
	}
	if h.Package == "" {
		return ops, nil
	}
	pkg, err := c.packages.HoldOps(ctx, h.Package, h.Holder)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the package: %w", err)
	}
	return append(ops, pkg...), nil
}

// ReleaseOps returns the ops of Release, for a list with other writes. They fail if a
// hold is not the one that ReleaseOps has read.
func (c *Catalog) ReleaseOps(ctx context.Context, h nf.Holding) ([]store.Op, error) {
	var ops []store.Op
	for _, of := range []struct {
		holds store.Holds
		thing string
	}{{c.regions.Holds(), h.Region}, {c.packages.Holds(), h.Package}} {
		if of.thing == "" {
			continue
		}
		dropped, err := of.holds.DropOps(ctx, of.thing, h.Holder)
		if err != nil {
			return nil, fmt.Errorf("cannot release %s: %w", of.thing, err)
		}
		ops = append(ops, dropped...)
	}
	return ops, nil
}

// Release ends a hold on a region and a package. A missing hold is
// not an error.
func (c *Catalog) Release(ctx context.Context, h nf.Holding) error {
	if h.Region != "" {
		if err := c.regions.Release(ctx, h.Region, h.Holder); err != nil {
			return fmt.Errorf("cannot release the region: %w", err)
		}
	}
	if h.Package != "" {
		if err := c.packages.Release(ctx, h.Package, h.Holder); err != nil {
			return fmt.Errorf("cannot release the package: %w", err)
		}
	}
	return nil
}

// Users yields all holders of the region or, if that is empty, of the package, in
// the order of HoldersIn. There may be very many.
func (c *Catalog) Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for holder, err := range c.HoldersIn(ctx, of, nil) {
			if !yield(holder.Subject, err) {
				return
			}
		}
	}
}

// HoldersIn yields the holders of the package or, if that is empty, of the region
// or, if both are empty, of all regions. It yields only those of the kinds and scopes
// that in reports true for, and does not read the others; if in is nil, it yields
// all. They are ordered by region, kind, scope and id.
func (c *Catalog) HoldersIn(ctx context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool) iter.Seq2[nf.Holder, error] {
	if of.Package != "" {
		return c.packages.Holds().Holders(ctx, of.Package, in)
	}
	return c.regions.Holds().Holders(ctx, of.Region, in)
}

// HolderIDs yields the ids of the holders of HoldersIn that in reports true for, in
// the order of the ids.
func (c *Catalog) HolderIDs(ctx context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool, from nf.Cursor) iter.Seq2[string, error] {
	if of.Package != "" {
		return c.packages.Holds().HolderIDs(ctx, of.Package, in, from)
	}
	return c.regions.Holds().HolderIDs(ctx, of.Region, in, from)
}

// mostNamed is the maximum number of users that an error names.
const mostNamed = 20

// inUse adds the users of a held region or package to the error of its removal.
// It returns any other error unchanged.
func (c *Catalog) inUse(ctx context.Context, subject string, of nf.Holding, refusal error) error {
	if nf.ReasonOf(refusal) != nf.ReasonHeld {
		return refusal
	}
	var v nf.Violations
	for user, err := range c.Users(ctx, of) {
		if err != nil {
			return err
		}
		if len(v) == mostNamed {
			v = append(v, nf.Violation{Message: "is used by more objects"})
			break
		}
		v = append(v, nf.Violation{}.Saying(nf.Textf("is used by %s", user.Mention())))
	}
	if len(v) == 0 {
		v = nf.Violations{{Message: "was in use a moment ago"}}
	}
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: subject, Reason: nf.ReasonHeld, Err: v}
}
