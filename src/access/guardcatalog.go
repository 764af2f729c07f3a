package access

import (
	"context"
	"io"

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
	return g.sharedRegion(ctx, made, err)
}

// Enlist implements Catalog. It takes region:write.
func (g *Guard) Enlist(ctx context.Context, r nf.Region) (nf.Region, error) {
	if err := g.May(ctx, nf.WriteRegion, regionScope(r.ID), r.ID); err != nil {
		return nf.Region{}, err
	}
	made, err := g.cfg.Catalog.Enlist(ctx, r)
	return g.sharedRegion(ctx, made, err)
}

// Region implements Regions. It takes region:read. A region belongs to no
// project, so a grant for any project counts.
func (g *Guard) Region(ctx context.Context, id string) (nf.Region, error) {
	r, err := g.region(ctx, id)
	return g.sharedRegion(ctx, r, err)
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
	veil := g.veil()
	for i := range all {
		if all[i].Users, err = veil.users(ctx, all[i].Users); err != nil {
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
	return g.sharedRegion(ctx, r, orAbsent(err, absent("cloud region", id)))
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
	p, err = g.sharedPackage(ctx, p, err)
	return p, created, err
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
	return g.sharedPackage(ctx, p, err)
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
	all = keep(all, packageScope, visible)
	veil := g.veil()
	for i := range all {
		if all[i].Users, err = veil.users(ctx, all[i].Users); err != nil {
			return nil, err
		}
	}
	return all, nil
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
	if p.Users, err = g.veil().users(ctx, p.Users); err != nil {
		_ = content.Close() // as above
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
func (g *Guard) Lint(archive []byte) (nf.Package, error) { return g.cfg.Catalog.Lint(archive) }

// sharedRegion returns a region without the users that are hidden, and an error
// without their ids.
func (g *Guard) sharedRegion(ctx context.Context, r nf.Region, err error) (nf.Region, error) {
	if err != nil {
		return nf.Region{}, g.veiled(ctx, err)
	}
	if r.Users, err = g.veil().users(ctx, r.Users); err != nil {
		return nf.Region{}, err
	}
	return r, nil
}

func (g *Guard) sharedPackage(ctx context.Context, p nf.Package, err error) (nf.Package, error) {
	if err != nil {
		return nf.Package{}, g.veiled(ctx, err)
	}
	if p.Users, err = g.veil().users(ctx, p.Users); err != nil {
		return nf.Package{}, err
	}
	return p, nil
}
