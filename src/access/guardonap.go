package access

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// bundleScope is the scope of ONAP's resource bundles: they belong to the
// default project and to no region.
func bundleScope() nf.Scope { return nf.Scope{Project: nf.DefaultProject} }

// Bundles gives access to ONAP's resource bundles with the permissions of the
// identity in the context. Its methods return nf.Forbidden or
// nf.Unauthenticated, or the value that the permissions allow to use: R reads
// bundles, W changes them, and C composes packages from them.
type Bundles[R, W, C any] struct {
	guard    *guard
	reader   R
	writer   W
	composer C
}

// NewBundles returns the guarded bundles.
func NewBundles[R, W, C any](guarded *Guarded, reader R, writer W, composer C) Bundles[R, W, C] {
	return Bundles[R, W, C]{guarded.guard, reader, writer, composer}
}

// Read requires package:read. The names are those in the request, for the audit
// log.
func (b Bundles[R, W, C]) Read(ctx context.Context, names ...string) (R, error) {
	return granted(b.reader, b.guard.may(ctx, nf.ReadPackage, bundleScope(), auditable(names)...))
}

// Write requires package:write.
func (b Bundles[R, W, C]) Write(ctx context.Context, names ...string) (W, error) {
	return granted(b.writer, b.guard.may(ctx, nf.WritePackage, bundleScope(), auditable(names)...))
}

// ForNew returns the composer for a new instance of a project in a region. It requires
// instance:instantiate there, and package:read.
func (b Bundles[R, W, C]) ForNew(ctx context.Context, project, region string) (C, error) {
	err := b.guard.may(ctx, nf.CreateInstance, nf.Scope{Project: project, Region: region})
	if err == nil {
		err = b.guard.may(ctx, nf.ReadPackage, bundleScope())
	}
	return granted(b.composer, err)
}

// ForChange returns the composer for a change of an instance. It requires
// instance:change.
func (b Bundles[R, W, C]) ForChange(ctx context.Context, in nf.Instance) (C, error) {
	return granted(b.composer, b.guard.may(ctx, nf.ChangeInstance, instanceScope(in), in.ID))
}

// OfInstances gives access to what other packages than the engine store of
// instances, with the permissions of the identity in the context: R reads it, and
// W changes it.
type OfInstances[R, W any] struct {
	guard  *guard
	reader R
	writer W
}

// NewOfInstances returns the guarded records.
func NewOfInstances[R, W any](guarded *Guarded, reader R, writer W) OfInstances[R, W] {
	return OfInstances[R, W]{guarded.guard, reader, writer}
}

// Read requires instance:read, and returns nf.NotFound without it.
func (o OfInstances[R, W]) Read(ctx context.Context, in nf.Instance) (R, error) {
	return granted(o.reader, o.guard.readable(ctx, in))
}

// Change requires instance:change.
func (o OfInstances[R, W]) Change(ctx context.Context, in nf.Instance) (W, error) {
	return granted(o.writer, o.guard.may(ctx, nf.ChangeInstance, instanceScope(in), in.ID))
}

// ConnectionKeeper stores what ONAP's API knows of the connections to regions.
type ConnectionKeeper[C any] interface {
	// Connection returns the connection to a region, or nf.NotFound.
	Connection(ctx context.Context, r nf.Region) (C, error)
	PutConnection(ctx context.Context, c C) error
	RemoveConnection(ctx context.Context, region string) error
}

// Connections gives access to a ConnectionKeeper with the permissions of the
// identity in the context. A connection belongs to its region.
type Connections[C interface{ Masked() C }] struct {
	guard   *guard
	regions *Regions
	keeper  ConnectionKeeper[C]
}

// NewConnections returns the guarded connections of a keeper.
func NewConnections[C interface{ Masked() C }](guarded *Guarded, keeper ConnectionKeeper[C]) Connections[C] {
	return Connections[C]{guarded.guard, guarded.Regions, keeper}
}

// Connection returns a region and the connection to it, which is zero if none is
// stored. It requires region:read. An identity without region:write gets the
// region without its access, and the connection without its secrets.
func (cs Connections[C]) Connection(ctx context.Context, region string) (nf.Region, C, error) {
	var none C
	r, err := cs.regions.Region(ctx, region)
	if err != nil {
		return nf.Region{}, none, err
	}
	c, err := cs.keeper.Connection(ctx, r)
	if nf.IgnoreNotFound(err) != nil {
		return nf.Region{}, none, err
	}
	switch may := cs.guard.may(ctx, nf.WriteRegion, regionScope(region), region); {
	case nf.KindOf(may) == nf.Forbidden:
		r.Access, c = nf.Access{}, c.Masked()
	case may != nil:
		return nf.Region{}, none, may
	}
	return r, c, nil
}

// Put stores the connection to a region. It requires region:write.
func (cs Connections[C]) Put(ctx context.Context, region string, c C) error {
	if err := cs.guard.may(ctx, nf.WriteRegion, regionScope(region), region); err != nil {
		return err
	}
	return cs.keeper.PutConnection(ctx, c)
}

// Remove deletes the connection to a region. It requires region:write.
func (cs Connections[C]) Remove(ctx context.Context, region string) error {
	if err := cs.guard.may(ctx, nf.WriteRegion, regionScope(region), region); err != nil {
		return err
	}
	return cs.keeper.RemoveConnection(ctx, region)
}

// readable returns nf.NotFound if the identity may not read the instance.
func (g *guard) readable(ctx context.Context, in nf.Instance) error {
	return g.see(ctx, nf.ReadInstance, instanceScope(in), absent("VNF instance", in.ID))
}

// granted returns the value, or the error that denies it.
func granted[T any](v T, denied error) (T, error) {
	if denied != nil {
		var none T
		return none, denied
	}
	return v, nil
}

// auditable returns the names that are valid as subjects in the audit log.
func auditable(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return nf.CheckID("", name) != nil })
}
