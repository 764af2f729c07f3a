package access

import (
	"context"
	"errors"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// RegionImports imports cloud regions from an inventory.
type RegionImports interface {
	// Find returns a region, and imports it if it is not registered. The owner may be
	// empty. It returns nf.NotFound if the inventory does not have the region either.
	Find(ctx context.Context, owner, id string) (nf.Region, error)
	// Import imports a region, or compares it with the inventory now.
	Import(ctx context.Context, owner, id string) (nf.Region, error)
}

// noImports has no inventory.
type noImports struct{ regions RegionRecords }

// Find implements RegionImports.
func (n noImports) Find(ctx context.Context, _, id string) (nf.Region, error) {
	return n.regions.Region(ctx, id)
}

// Import implements RegionImports. Registered regions stay as they are.
func (n noImports) Import(ctx context.Context, _, id string) (nf.Region, error) {
	region, err := n.regions.Region(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.Unsupported, "import", "cloud region "+id, errors.New("this service imports no cloud regions; register it, or set --aai-url"))
	}
	return region, err
}

// Use returns a region for a new instance, and imports it if it is not registered. It
// requires region:read. Callers check before that the identity may create the instance.
func (rs *Regions) Use(ctx context.Context, owner, id string) (nf.Region, error) {
	gone := absent("cloud region", id)
	if err := rs.guard.see(ctx, nf.ReadRegion, regionScope(id), gone); err != nil {
		return nf.Region{}, err
	}
	region, err := rs.imports.Find(ctx, owner, id)
	if err != nil {
		return nf.Region{}, rs.guard.shown(ctx, orAbsent(err, gone))
	}
	return region, rs.narrow(ctx, &region)
}

// find imports a region that a request names and usable has not found. It returns said if
// there is none.
func (rs *Regions) find(ctx context.Context, id string, said error) error {
	if err := rs.guard.see(ctx, nf.ReadRegion, regionScope(id), said); err != nil {
		return err
	}
	_, err := rs.imports.Find(ctx, "", id)
	return orAbsent(err, said)
}

// Import imports a region, or compares it with its inventory now. It requires
// region:write.
func (rs *Regions) Import(ctx context.Context, owner, id string) (nf.Region, error) {
	if err := rs.guard.see(ctx, nf.ReadRegion, regionScope(id), absent("cloud region", id)); err != nil {
		return nf.Region{}, err
	}
	if err := rs.guard.may(ctx, nf.WriteRegion, regionScope(id), id); err != nil {
		return nf.Region{}, err
	}
	region, err := rs.imports.Import(ctx, owner, id)
	return region, rs.guard.shown(ctx, orAbsent(err, absent("cloud region", id)))
}

// Deregister removes a region that was imported, and is not used. It requires region:write.
// It returns nf.Conflict for another region.
func (rs *Regions) Deregister(ctx context.Context, id string) error {
	if err := rs.writable(ctx, id); err != nil {
		return err
	}
	region, err := rs.keeper.Region(ctx, id)
	if err == nil && region.Origin != nf.OriginAAI {
		err = nf.E(nf.Conflict, "remove", "cloud region "+id, errors.New("it was not imported; delete it where it was registered"))
	}
	if err == nil {
		err = rs.keeper.RemoveRegion(ctx, id)
	}
	return rs.guard.shown(ctx, orAbsent(err, absent("cloud region", id)))
}

// allows reports whether the identity has the permission.
func (g *guard) allows(ctx context.Context, p nf.Permission, s nf.Scope) bool {
	id, err := g.asker(ctx)
	return err == nil && g.authorizer.Allow(ctx, id, p, s) == nil
}

// PackageImports finds packages in a catalog of designs.
type PackageImports interface {
	// Fetch passes the content of the package that the UUID of a design names to into, with its source. It
	// returns nf.NotFound if the catalog does not have it.
	Fetch(ctx context.Context, id string, into func(ctx context.Context, source string, content io.Reader) error) error
}

// find uploads the package that a request names and usable has not found, into the
// project of the request. It requires package:write there. Without it, or if there is no
// such package, it returns said.
func (ps *Packages) find(ctx context.Context, id, project string, said error) error {
	as := nf.Package{ID: id, Project: nf.ProjectOf(project)}
	if ps.imports == nil || !ps.guard.allows(ctx, nf.WritePackage, packageScope(as)) {
		return said
	}
	err := ps.imports.Fetch(ctx, id, func(ctx context.Context, source string, content io.Reader) error {
		as.Source, as.Design = source, id
		_, _, err := ps.Upload(ctx, as, content)
		return err
	})
	return orAbsent(err, said)
}
