package access

import (
	"context"
	"io"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ArchiveKeeper stores the archives of packages, and knows the users of packages.
type ArchiveKeeper interface {
	Onboard(ctx context.Context, as nf.Package, fetch func(ctx context.Context, into func(context.Context, io.Reader) error) error) (nf.Package, error)
	File(ctx context.Context, id, name string) (nf.Package, io.ReadCloser, int64, error)
	ContentAt(ctx context.Context, id string) (nf.Package, io.ReaderAt, error)
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// Archives gives access to the archives of packages with the permissions of the identity
// in the context.
type Archives struct {
	packages *Packages
	keeper   ArchiveKeeper
}

// NewArchives returns the guarded archives of a keeper.
func NewArchives(guarded *Guarded, keeper ArchiveKeeper) *Archives {
	return &Archives{guarded.Packages, keeper}
}

// MayChange requires package:write.
func (as *Archives) MayChange(ctx context.Context, id string) error {
	return as.packages.changeable(ctx, id)
}

// Onboard gives a package its first content. It requires package:write, and calls fetch
// only then: other identities must not be able to make the service send requests.
func (as *Archives) Onboard(ctx context.Context, p nf.Package, fetch func(ctx context.Context, into func(context.Context, io.Reader) error) error) (nf.Package, error) {
	if err := as.packages.changeable(ctx, p.ID); err != nil {
		return nf.Package{}, err
	}
	made, err := as.keeper.Onboard(ctx, p, fetch)
	return made, as.packages.guard.shown(ctx, orAbsent(err, absent("package", p.ID)))
}

// File returns a file of a package. It requires package:read.
func (as *Archives) File(ctx context.Context, id, name string) (nf.Package, io.ReadCloser, int64, error) {
	if _, err := as.packages.pkg(ctx, id); err != nil {
		return nf.Package{}, nil, 0, err
	}
	p, file, size, err := as.keeper.File(ctx, id, name)
	if err != nil {
		return nf.Package{}, nil, 0, as.packages.guard.shown(ctx, err)
	}
	// Another package may have been created under this id since the first check.
	if err := as.packages.guard.see(ctx, nf.ReadPackage, packageScope(p), absent("package", id)); err != nil {
		_ = file.Close() // only read from
		return nf.Package{}, nil, 0, err
	}
	return p, file, size, nil
}

// ContentAt returns the archive of a package. It requires package:read.
func (as *Archives) ContentAt(ctx context.Context, id string) (nf.Package, io.ReaderAt, error) {
	if _, err := as.packages.pkg(ctx, id); err != nil {
		return nf.Package{}, nil, err
	}
	p, content, err := as.keeper.ContentAt(ctx, id)
	if err == nil {
		err = as.packages.guard.see(ctx, nf.ReadPackage, packageScope(p), absent("package", id))
	}
	if err != nil {
		return nf.Package{}, nil, as.packages.guard.shown(ctx, orAbsent(err, absent("package", id)))
	}
	return p, content, nil
}

// InUse reports whether anything uses a package, also if the identity may not see it: a
// deletion reveals that as well. It requires package:read.
func (as *Archives) InUse(ctx context.Context, id string) (bool, error) {
	if _, err := as.packages.pkg(ctx, id); err != nil {
		return false, err
	}
	for _, err := range as.keeper.Users(ctx, nf.Holding{Package: id}) {
		return err == nil, err
	}
	return false, nil
}
