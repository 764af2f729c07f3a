package catalog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// manifestKind is the kind of a package that holds Kubernetes manifests and a
// metadata.yaml.
const manifestKind = "manifest"

// Upload checks a package's archive and keeps it under the id, or under a new
// one when id is empty. With an id that is taken it replaces the content;
// instances keep what they were made from. Nothing is kept when the check
// fails: nf.Invalid with violations that name file and line, or nf.TooLarge.
func (c *Catalog) Upload(ctx context.Context, id string, content io.Reader) (p nf.Package, created bool, err error) {
	if id == "" {
		id = c.cfg.NewID()
	}
	subject := "package " + id
	if v := nf.CheckID("csar_id", id); v != nil {
		return p, false, nf.E(nf.Invalid, "upload", subject, v)
	}
	archive, err := c.read(content)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p, err = c.Lint(archive)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	// Each upload holds the content for itself: one that is being replaced or
	// removed beside this one lets go of its own hold only.
	p.ID, p.Upload = id, c.cfg.NewID()
	if p.Digest, p.Size, err = c.blobs.Put(ctx, holder(p), bytes.NewReader(archive), c.cfg.Limits.Archive); err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p.Created = c.cfg.Clock().UTC()
	p.Updated = p.Created
	return c.keep(ctx, p)
}

// Lint reads a package's archive as Upload does, and keeps nothing. The result
// has no id, digest or times.
func (c *Catalog) Lint(archive []byte) (nf.Package, error) {
	return Lint(archive, c.cfg.Limits, c.cfg.Renderers)
}

// Lint reads a package's archive and says what it holds. Its errors are those
// of Catalog.Upload.
func Lint(archive []byte, limits render.Limits, renderers map[string]render.Renderer) (nf.Package, error) {
	files, mediaType, err := render.Archive(archive, limits)
	if err != nil {
		return nf.Package{}, fmt.Errorf("cannot open the archive: %w", err)
	}
	renderer, ok := renderers[manifestKind]
	if !ok {
		return nf.Package{}, nf.E(nf.Unsupported, "read", "package", fmt.Errorf("no renderer for kind %s", manifestKind))
	}
	summary, err := renderer.Check(files)
	if err != nil {
		return nf.Package{}, fmt.Errorf("cannot use the package: %w", err)
	}
	return nf.Package{
		Name: summary.Name, Version: summary.Version, Description: summary.Description,
		Kind: manifestKind, Size: int64(len(archive)), MediaType: mediaType,
		Files:     slices.Sorted(maps.Keys(files)),
		Variables: summary.Variables, Warnings: summary.Warnings,
	}, nil
}

// read takes the whole archive, which must fit the limit: zip needs random
// access, and the check needs all of it before anything is kept.
func (c *Catalog) read(content io.Reader) ([]byte, error) {
	archive, err := io.ReadAll(io.LimitReader(content, c.cfg.Limits.Archive+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the archive: %w", err)
	case int64(len(archive)) > c.cfg.Limits.Archive:
		return nil, nf.E(nf.TooLarge, "read", "archive", fmt.Errorf("it is larger than %d bytes", c.cfg.Limits.Archive))
	case len(archive) == 0:
		return nil, nf.Violations{{Message: "the archive is empty"}}
	}
	return archive, nil
}

func (c *Catalog) keep(ctx context.Context, p nf.Package) (nf.Package, bool, error) {
	err := c.packages.Insert(ctx, p.ID, p)
	if err == nil {
		return p, true, nil
	}
	if nf.KindOf(err) != nf.Exists {
		return p, false, err
	}
	var old nf.Package
	p, err = c.packages.Update(ctx, p.ID, func(stored *nf.Package) error {
		old = *stored
		fresh := p
		fresh.Users, fresh.Created = stored.Users, stored.Created
		*stored = fresh
		return nil
	})
	if err != nil {
		return p, false, err
	}
	return p, false, unlessGone(c.blobs.Release(ctx, holder(old), old.Digest))
}

// Package returns one package.
func (c *Catalog) Package(ctx context.Context, id string) (nf.Package, error) {
	return c.packages.Get(ctx, id)
}

// Packages returns every package, ordered by id.
func (c *Catalog) Packages(ctx context.Context) ([]nf.Package, error) {
	return c.packages.List(ctx, "")
}

// Content returns a package's archive, byte for byte as it was uploaded.
func (c *Catalog) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	p, archive, err := c.archive(ctx, id)
	return p, io.NopCloser(bytes.NewReader(archive)), err
}

// Files returns a package and the files in its archive.
func (c *Catalog) Files(ctx context.Context, id string) (nf.Package, render.Files, error) {
	p, archive, err := c.archive(ctx, id)
	if err != nil {
		return p, nil, err
	}
	files, _, err := render.Archive(archive, c.cfg.Limits)
	if err != nil {
		return p, nil, fmt.Errorf("cannot open the archive of package %s: %w", id, err)
	}
	return p, files, nil
}

func (c *Catalog) archive(ctx context.Context, id string) (nf.Package, []byte, error) {
	p, err := c.packages.Get(ctx, id)
	if err != nil {
		return p, nil, err
	}
	archive, err := c.blobs.ReadAll(ctx, p.Digest)
	if err != nil {
		return p, nil, fmt.Errorf("cannot read the content of package %s: %w", id, err)
	}
	return p, archive, nil
}

// RemovePackage forgets a package and its content; nf.Conflict while instances
// use it.
func (c *Catalog) RemovePackage(ctx context.Context, id string) error {
	p, err := c.packages.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := c.packages.DeleteIf(ctx, id, func(now nf.Package) error {
		p = now
		return unused("remove", "package "+id, now.Users)
	}); err != nil {
		return err
	}
	return unlessGone(c.blobs.Release(ctx, holder(p), p.Digest))
}

func holder(p nf.Package) string { return "package/" + p.ID + "/" + p.Upload }
