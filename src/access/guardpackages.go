package access

import (
	"context"
	"io"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Packages gives access to packages with the permissions of the identity in the
// context.
type Packages struct {
	guard   *guard
	keeper  PackageKeeper
	imports PackageImports // nil: packages are uploaded
}

var _ PackageKeeper = (*Packages)(nil)

// MayUpload implements native.Packages. It returns the error that Upload
// returns for an identity that may not upload. If the project is not known yet,
// upload permission in any project is enough.
func (ps *Packages) MayUpload(ctx context.Context, as nf.Package) error {
	inOwnProject(ctx, &as.Project)
	if err := ps.replaceable(ctx, &as); err != nil {
		return err
	}
	if as.Project == "" {
		id, err := ps.guard.asker(ctx)
		if err != nil || ps.guard.authorizer.anywhere(ctx, id, nf.WritePackage) {
			return err
		}
	}
	return ps.guard.may(ctx, nf.WritePackage, packageScope(as), as.ID)
}

// Upload implements PackageKeeper. It requires package:write in the project, and
// in the project of the package that it replaces. It does not replace a package
// that the caller may not see, but the error reveals that the id is taken.
func (ps *Packages) Upload(ctx context.Context, as nf.Package, content io.Reader) (nf.Package, bool, error) {
	if err := ps.writable(ctx, &as); err != nil {
		return nf.Package{}, false, err
	}
	p, created, err := ps.keeper.Upload(ctx, as, content)
	nf.TrailOf(ctx).Ask(nf.WritePackage, packageScope(as), p.ID)
	return p, created, ps.guard.shown(ctx, err)
}

// CreatePackage implements PackageKeeper. It requires the permissions of Upload.
func (ps *Packages) CreatePackage(ctx context.Context, as nf.Package) (nf.Package, error) {
	if err := ps.writable(ctx, &as); err != nil {
		return nf.Package{}, err
	}
	p, err := ps.keeper.CreatePackage(ctx, as)
	nf.TrailOf(ctx).Ask(nf.WritePackage, packageScope(as), p.ID)
	return p, ps.guard.shown(ctx, err)
}

// writable checks whether the identity may write the package, and makes the
// request's key its own.
func (ps *Packages) writable(ctx context.Context, as *nf.Package) error {
	inOwnProject(ctx, &as.Project)
	if err := ps.replaceable(ctx, as); err != nil {
		return err
	}
	if err := ps.guard.may(ctx, nf.WritePackage, packageScope(*as), as.ID); err != nil {
		return err
	}
	return ps.guard.own(ctx, &as.Request)
}

// inOwnProject sets the project of an object that a request creates without naming one,
// if the caller's token has a project.
func inOwnProject(ctx context.Context, project *string) {
	if id, found := nf.IdentityOf(ctx); found && *project == "" {
		*project = id.Project
	}
}

// replaceable checks whether the upload would replace a package, and whether
// the identity may do so.
func (ps *Packages) replaceable(ctx context.Context, as *nf.Package) error {
	if as.ID == "" {
		return nil
	}
	old, err := ps.keeper.Package(ctx, as.ID)
	if err != nil {
		return orAbsent(err, nil)
	}
	as.Project = nf.ProjectOf(old.Project) // replacing the content does not change the project
	taken := nf.E(nf.Exists, "upload", "package "+as.ID, nf.Violations{{Field: "csar_id", Message: "is taken"}})
	if err := ps.guard.see(ctx, nf.ReadPackage, packageScope(old), taken); err != nil {
		return err
	}
	return ps.guard.may(ctx, nf.WritePackage, packageScope(old), as.ID)
}

// Package implements PackageKeeper. It requires package:read. A package belongs
// to no region, so a grant for any region suffices.
func (ps *Packages) Package(ctx context.Context, id string) (nf.Package, error) {
	p, err := ps.pkg(ctx, id)
	return p, ps.guard.shown(ctx, err)
}

func (ps *Packages) pkg(ctx context.Context, id string) (nf.Package, error) {
	gone := absent("package", id)
	p, err := ps.keeper.Package(ctx, id)
	if err == nil {
		err = ps.guard.see(ctx, nf.ReadPackage, packageScope(p), gone)
	}
	if err != nil {
		return nf.Package{}, orAbsent(err, gone)
	}
	return p, nil
}

// usable checks that the identity may read the package that a request names.
func (ps *Packages) usable(ctx context.Context, id string) error {
	said := missing("csar_id", id)
	p, err := ps.keeper.Package(ctx, id)
	if err != nil {
		return orAbsent(err, said)
	}
	return ps.guard.see(ctx, nf.ReadPackage, packageScope(p), said)
}

// PackagesFrom implements PackageRecords.
func (ps *Packages) PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error] {
	visible, err := ps.guard.mayRead(ctx, nf.ReadPackage)
	if err != nil {
		return failed[nf.Package](err)
	}
	from.In = visible
	return list[nf.Package]{ps.keeper.PackagesFrom(ctx, from), packageScope, visible}.shown(func(p nf.Package) (nf.Package, error) { return p, nil })
}

// Content implements PackageKeeper. It requires package:read.
func (ps *Packages) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	if _, err := ps.pkg(ctx, id); err != nil {
		return nf.Package{}, nil, err
	}
	p, content, err := ps.keeper.Content(ctx, id)
	if err != nil {
		return nf.Package{}, content, orAbsent(err, absent("package", id))
	}
	// Another package may have been uploaded under this id since the first
	// check.
	if err := ps.guard.see(ctx, nf.ReadPackage, packageScope(p), absent("package", id)); err != nil {
		_ = content.Close() // only read from
		return nf.Package{}, nil, err
	}
	return p, content, nil
}

// UpdatePackage implements PackageKeeper. It requires package:write.
func (ps *Packages) UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error) {
	if err := ps.changeable(ctx, id); err != nil {
		return nf.Package{}, err
	}
	p, err := ps.keeper.UpdatePackage(ctx, id, func(p *nf.Package) error {
		// Another package may have been uploaded under this id since the check.
		if err := ps.guard.may(ctx, nf.WritePackage, packageScope(*p), id); err != nil {
			return err
		}
		return edit(p)
	})
	return p, ps.guard.shown(ctx, orAbsent(err, absent("package", id)))
}

// changeable checks that the identity may read and write a package.
func (ps *Packages) changeable(ctx context.Context, id string) error {
	p, err := ps.pkg(ctx, id)
	if err != nil {
		return err
	}
	return ps.guard.may(ctx, nf.WritePackage, packageScope(p), id)
}

// RemovePackage implements PackageKeeper. It requires package:write.
func (ps *Packages) RemovePackage(ctx context.Context, id string) error {
	if err := ps.changeable(ctx, id); err != nil {
		return err
	}
	return ps.guard.shown(ctx, orAbsent(ps.keeper.RemovePackage(ctx, id), absent("package", id)))
}
