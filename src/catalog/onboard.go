package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

const (
	onboardingLease = 5 * time.Minute  // of a state after its last renewal
	onboardingRenew = time.Minute      // between renewals while content is received
	processingLease = 30 * time.Minute // a check of large content reads all of it

	maxFailure = 4 << 10 // bytes of the message of a failure
)

// Fetch passes the content of a package to into, which reads it to its end.
type Fetch = func(ctx context.Context, into func(context.Context, io.Reader) error) error

// Onboard gives the package as.ID its first content. While fetch runs, the package is
// nf.PackageUploading, and then nf.PackageProcessing until it is checked. If the content
// is not of as.Kind, Onboard returns nf.Invalid; an empty kind is any. It returns
// nf.NotFound; nf.Conflict if the package has content; nf.Busy if another attempt is in
// progress; the errors of fetch; and otherwise those of Upload. After an error of an
// attempt, the package has no content, as before, and the error is its Failure.
func (c *Catalog) Onboard(ctx context.Context, as nf.Package, fetch Fetch) (nf.Package, error) {
	a := &attempt{catalog: c, as: as, id: c.cfg.NewID()}
	if err := a.begin(ctx); err != nil {
		return nf.Package{}, err
	}
	p, err := a.receive(ctx, fetch)
	if err != nil {
		// Even if the caller has gone: otherwise the next attempt has to wait.
		err = nf.E(nf.KindOf(err), "onboard", "package "+as.ID, err)
		a.end(context.WithoutCancel(ctx), err)
		return nf.Package{}, err
	}
	return p, nil
}

// attempt is one attempt to give a package its content.
type attempt struct {
	catalog *Catalog
	as      nf.Package
	id      string
	renewed time.Time
}

// begin makes the package one that is uploading.
func (a *attempt) begin(ctx context.Context) error {
	now := a.catalog.cfg.Clock()
	a.renewed = now
	_, err := a.catalog.packages.Update(ctx, a.as.ID, func(p *nf.Package) error {
		subject := "package " + a.as.ID
		switch p.StateAt(now) {
		case nf.PackageCreated:
			p.Onboarding, p.Failure = a.state(nf.PackageUploading, now.Add(onboardingLease)), nil
			return nil
		case nf.PackageOnboarded:
			return nf.E(nf.Conflict, "onboard", subject, errors.New("it has content already"))
		case nf.PackageUploading, nf.PackageProcessing:
		}
		return nf.E(nf.Busy, "onboard", subject, errors.New("its content is being received or checked"))
	})
	return err
}

func (a *attempt) state(is nf.PackageState, until time.Time) *nf.Onboarding {
	return &nf.Onboarding{Attempt: a.id, State: is, Until: until.UTC()}
}

// own changes the package, or fails if the attempt is no longer its own one.
func (a *attempt) own(ctx context.Context, change func(p *nf.Package)) (nf.Package, error) {
	return a.catalog.packages.Update(ctx, a.as.ID, func(p *nf.Package) error {
		if p.State() != nf.PackageCreated || p.Onboarding == nil || p.Onboarding.Attempt != a.id {
			return nf.E(nf.Conflict, "onboard", "package "+a.as.ID, errors.New("another request has given it content, or has tried to"))
		}
		change(p)
		return nil
	})
}

// receive stores, checks and keeps the content.
func (a *attempt) receive(ctx context.Context, fetch Fetch) (nf.Package, error) {
	c := a.catalog
	var archive *store.Staged
	done := func() {}
	err := fetch(ctx, func(ctx context.Context, content io.Reader) (err error) {
		archive, done, err = c.blobs.Take(ctx, renewing{ctx, a, content}, c.cfg.Limits.Archive)
		if err != nil {
			done = func() {}
		}
		return err
	})
	defer func() { done() }()
	if err != nil {
		return nf.Package{}, err
	}
	if archive == nil {
		return nf.Package{}, errors.New("cannot onboard a package: nothing was fetched")
	}
	if _, err := a.own(ctx, func(p *nf.Package) {
		p.Onboarding = a.state(nf.PackageProcessing, c.cfg.Clock().Add(processingLease))
	}); err != nil {
		return nf.Package{}, err
	}
	checked, err := c.lint(ctx, archive)
	if err == nil && a.as.Kind != "" && checked.Kind != a.as.Kind {
		err = nf.Violations{{Message: fmt.Sprintf("the archive is a package of the kind %s, not %s", checked.Kind, a.as.Kind)}}
	}
	if err != nil {
		return nf.Package{}, err
	}
	return a.keep(ctx, checked, archive)
}

// keep makes checked content that of the package.
func (a *attempt) keep(ctx context.Context, checked nf.Package, archive *store.Staged) (nf.Package, error) {
	c := a.catalog
	checked.ID, checked.Upload, checked.Source, checked.Digest = a.as.ID, c.cfg.NewID(), a.as.Source, archive.Digest()
	if err := archive.Keep(ctx, holder(checked)); err != nil {
		return nf.Package{}, err
	}
	p, err := a.own(ctx, func(p *nf.Package) {
		next := checked
		next.Project, next.UserData, next.Request, next.Disabled = p.Project, p.UserData, p.Request, p.Disabled
		next.Removing, next.Created, next.Updated = p.Removing, p.Created, c.cfg.Clock().UTC()
		if next.Name == "" {
			next.Name = p.Name
		}
		*p = next
	})
	if err != nil {
		return p, errors.Join(err, c.releaseContent(context.WithoutCancel(ctx), checked)) // nothing else would soon
	}
	return p, nil
}

// end makes the package one without content and records why, unless another attempt has
// begun. If that fails, the attempt ends by itself.
func (a *attempt) end(ctx context.Context, cause error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	failure := &nf.OnboardingFailure{Kind: nf.KindOf(cause), Message: nf.Clip(cause.Error(), maxFailure)}
	if failure.Kind == nf.Internal {
		failure.Message = "unexpected error; the service's log contains the cause"
	}
	_, _ = a.own(ctx, func(p *nf.Package) { p.Onboarding, p.Failure = nil, failure })
}

// renewing reads content, and renews the attempt while there is progress.
type renewing struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one upload
	attempt *attempt
	from    io.Reader
}

// Read implements io.Reader. It fails if the attempt has ended.
func (r renewing) Read(b []byte) (int, error) {
	a := r.attempt
	if now := a.catalog.cfg.Clock(); now.Sub(a.renewed) >= onboardingRenew {
		if _, err := a.own(r.ctx, func(p *nf.Package) { p.Onboarding.Until = now.Add(onboardingLease).UTC() }); err != nil {
			return 0, err
		}
		a.renewed = now
	}
	return r.from.Read(b) // callers compare with io.EOF
}

// File returns a package and one file in its archive, with its size in bytes. It is read
// as a stream, as long as the context lasts; the caller closes it. It returns
// nf.NotFound, nf.Conflict if the package has no content yet, and nf.Invalid if the
// archive is not a zip.
func (c *Catalog) File(ctx context.Context, id, name string) (nf.Package, io.ReadCloser, int64, error) {
	p, content, err := c.ContentAt(ctx, id)
	if err != nil {
		return p, nil, 0, err
	}
	zip, err := render.OpenZip(content, p.Size, c.cfg.Limits)
	if err != nil {
		return p, nil, 0, fmt.Errorf("cannot open the archive of package %s: %w", id, err)
	}
	file, size, err := zip.Open(name)
	if err != nil {
		return p, nil, 0, fmt.Errorf("cannot open a file of package %s: %w", id, err)
	}
	return p, file, size, nil
}

// ContentAt returns a package and its archive, as Content does, for reading at any
// offset.
func (c *Catalog) ContentAt(ctx context.Context, id string) (nf.Package, io.ReaderAt, error) {
	p, err := c.onboarded(ctx, id)
	if err != nil {
		return p, nil, err
	}
	content, err := c.blobs.Content(ctx, p.Digest)
	if err != nil {
		return p, nil, fmt.Errorf("cannot read the content of package %s: %w", id, err)
	}
	return p, content, nil
}
