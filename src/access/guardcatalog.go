package access

import (
	"context"
	"io"
	"iter"
	"maps"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Register implements Regions. It takes region:write.
func (g *Guard) Register(ctx context.Context, r nf.Region) (nf.Region, error) {
	if err := g.May(ctx, nf.WriteRegion, regionScope(r.ID), r.ID); err != nil {
		return nf.Region{}, err
	}
	if err := g.own(ctx, &r.Request); err != nil {
		return nf.Region{}, err
	}
	made, err := g.cfg.Catalog.Register(ctx, r)
	return made, g.veiled(ctx, err)
}

// Enlist implements Catalog. It takes region:write.
func (g *Guard) Enlist(ctx context.Context, r nf.Region) (nf.Region, error) {
	if err := g.May(ctx, nf.WriteRegion, regionScope(r.ID), r.ID); err != nil {
		return nf.Region{}, err
	}
	made, err := g.cfg.Catalog.Enlist(ctx, r)
	return made, g.veiled(ctx, err)
}

// Region implements Regions. It takes region:read. A region belongs to no
// project, so a grant for any project counts.
func (g *Guard) Region(ctx context.Context, id string) (nf.Region, error) {
	r, err := g.region(ctx, id)
	if err != nil {
		return nf.Region{}, g.veiled(ctx, err)
	}
	return r, g.narrow(ctx, &r)
}

// narrow takes the tenants out of a region whose instances the identity may not
// see, unless it may write the region.
func (g *Guard) narrow(ctx context.Context, r *nf.Region) error {
	id, err := g.asker(ctx)
	if err != nil || len(r.Tenants) == 0 || g.cfg.Authorizer.Allow(ctx, id, nf.WriteRegion, regionScope(r.ID)) == nil {
		return err
	}
	visible := g.cfg.Authorizer.Visible(ctx, id, nf.ReadInstance)
	r.Tenants = maps.Clone(r.Tenants)
	maps.DeleteFunc(r.Tenants, func(project string, _ nf.Tenant) bool {
		return project != nf.AnyProject && !visible(nf.Scope{Project: project, Region: r.ID})
	})
	return nil
}

func (g *Guard) region(ctx context.Context, id string) (nf.Region, error) {
	gone := absent("cloud region", id)
	if err := g.see(ctx, nf.ReadRegion, regionScope(id), gone); err != nil {
		return nf.Region{}, err
	}
	r, err := g.cfg.Catalog.Region(ctx, id)
	return r, orAbsent(err, gone)
}

// Regions implements Regions.
func (g *Guard) Regions(ctx context.Context) ([]nf.Region, error) {
	visible, err := g.visible(ctx, nf.ReadRegion)
	if err != nil {
		return nil, err
	}
	all, err := g.cfg.Catalog.Regions(ctx)
	if err != nil {
		return nil, err
	}
	all = keep(all, func(r nf.Region) nf.Scope { return regionScope(r.ID) }, visible)
	for i := range all {
		if err := g.narrow(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// UpdateRegion implements Regions. It takes region:write.
func (g *Guard) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	if err := g.writable(ctx, id); err != nil {
		return nf.Region{}, err
	}
	r, err := g.cfg.Catalog.UpdateRegion(ctx, id, edit)
	return r, g.veiled(ctx, orAbsent(err, absent("cloud region", id)))
}

// RemoveRegion implements Regions. It takes region:write.
func (g *Guard) RemoveRegion(ctx context.Context, id string) error {
	if err := g.writable(ctx, id); err != nil {
		return err
	}
	return g.veiled(ctx, orAbsent(g.cfg.Catalog.RemoveRegion(ctx, id), absent("cloud region", id)))
}

func (g *Guard) writable(ctx context.Context, id string) error {
	if _, err := g.region(ctx, id); err != nil {
		return err
	}
	return g.May(ctx, nf.WriteRegion, regionScope(id), id)
}

// RegionState implements States. It takes region:read.
func (g *Guard) RegionState(ctx context.Context, id string) (nf.RegionState, error) {
	if _, err := g.region(ctx, id); err != nil {
		return nf.RegionState{}, err
	}
	return g.cfg.States.RegionState(ctx, id)
}

// Upload implements Packages. It takes package:write in the project, and in that
// of the package that is replaced. A package that one may not see is not
// replaced; that its id is taken cannot be kept secret.
func (g *Guard) Upload(ctx context.Context, as nf.Package, content io.Reader) (nf.Package, bool, error) {
	if err := g.replaceable(ctx, &as); err != nil {
		return nf.Package{}, false, err
	}
	if err := g.May(ctx, nf.WritePackage, packageScope(as), as.ID); err != nil {
		return nf.Package{}, false, err
	}
	if err := g.own(ctx, &as.Request); err != nil {
		return nf.Package{}, false, err
	}
	p, created, err := g.cfg.Catalog.Upload(ctx, as, content)
	nf.TrailOf(ctx).Ask(nf.WritePackage, packageScope(as), p.ID)
	return p, created, g.veiled(ctx, err)
}

// replaceable looks whether an upload would replace a package, and may.
func (g *Guard) replaceable(ctx context.Context, as *nf.Package) error {
	if as.ID == "" {
		return nil
	}
	old, err := g.cfg.Catalog.Package(ctx, as.ID)
	if err != nil {
		return orAbsent(err, nil)
	}
	as.Project = nf.ProjectOf(old.Project) // to replace the content is not to move it
	taken := nf.E(nf.Exists, "upload", "package "+as.ID, nf.Violations{{Field: "csar_id", Message: "is taken"}})
	if err := g.see(ctx, nf.ReadPackage, packageScope(old), taken); err != nil {
		return err
	}
	return g.May(ctx, nf.WritePackage, packageScope(old), as.ID)
}

// Package implements Packages. It takes package:read. A package belongs to no
// region, so a grant for any region counts.
func (g *Guard) Package(ctx context.Context, id string) (nf.Package, error) {
	p, err := g.pkg(ctx, id)
	return p, g.veiled(ctx, err)
}

func (g *Guard) pkg(ctx context.Context, id string) (nf.Package, error) {
	gone := absent("package", id)
	p, err := g.cfg.Catalog.Package(ctx, id)
	if err == nil {
		err = g.see(ctx, nf.ReadPackage, packageScope(p), gone)
	}
	if err != nil {
		return nf.Package{}, orAbsent(err, gone)
	}
	return p, nil
}

// Packages implements Packages.
func (g *Guard) Packages(ctx context.Context) ([]nf.Package, error) {
	visible, err := g.visible(ctx, nf.ReadPackage)
	if err != nil {
		return nil, err
	}
	all, err := g.cfg.Catalog.Packages(ctx)
	if err != nil {
		return nil, err
	}
	return keep(all, packageScope, visible), nil
}

// Content implements Packages. It takes package:read.
func (g *Guard) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	if _, err := g.pkg(ctx, id); err != nil {
		return nf.Package{}, nil, err
	}
	p, content, err := g.cfg.Catalog.Content(ctx, id)
	if err != nil {
		return nf.Package{}, content, orAbsent(err, absent("package", id))
	}
	// It may be another package by now, under the same id.
	if err := g.see(ctx, nf.ReadPackage, packageScope(p), absent("package", id)); err != nil {
		_ = content.Close() // it was not read
		return nf.Package{}, nil, err
	}
	return p, content, nil
}

// RemovePackage implements Packages. It takes package:write.
func (g *Guard) RemovePackage(ctx context.Context, id string) error {
	p, err := g.pkg(ctx, id)
	if err != nil {
		return err
	}
	if err := g.May(ctx, nf.WritePackage, packageScope(p), id); err != nil {
		return err
	}
	return g.veiled(ctx, orAbsent(g.cfg.Catalog.RemovePackage(ctx, id), absent("package", id)))
}

// Lint implements Catalog. It takes nothing, and tells of nothing but what it is
// given.
func (g *Guard) Lint(ctx context.Context, archive []byte) (nf.Package, error) {
	return g.cfg.Catalog.Lint(ctx, archive)
}

// Users implements Catalog. It takes region:read or package:read, and yields the
// instances that may be seen.
func (g *Guard) Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		hidden, err := g.hiddenUsers(ctx, of)
		if err != nil {
			yield("", err)
			return
		}
		for id, err := range g.cfg.Catalog.Users(ctx, of) {
			hide := false
			if err == nil {
				hide, err = hidden(id)
			}
			if hide {
				continue
			}
			if !yield(id, err) || err != nil {
				return
			}
		}
	}
}

// hiddenUsers returns what tells which users of a region or a package may not be
// seen. One that is about to come, or has just gone, may not.
func (g *Guard) hiddenUsers(ctx context.Context, of nf.Holding) (func(id string) (bool, error), error) {
	var err error
	if of.Region != "" {
		_, err = g.region(ctx, of.Region)
	} else {
		_, err = g.pkg(ctx, of.Package)
	}
	if err != nil {
		return nil, err
	}
	asker, err := g.asker(ctx)
	if err != nil {
		return nil, err
	}
	if g.cfg.Authorizer.view(ctx, asker).everywhere(nf.ReadInstance) {
		return func(string) (bool, error) { return false, nil }, nil
	}
	visible := g.cfg.Authorizer.Visible(ctx, asker, nf.ReadInstance)
	return func(id string) (bool, error) {
		in, err := g.cfg.Engine.Instance(ctx, id)
		if err != nil {
			return nf.KindOf(err) == nf.NotFound, nf.UnlessGone(err)
		}
		return !visible(instanceScope(in)), nil
	}, nil
}
