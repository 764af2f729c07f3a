package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The kinds of packages: Kubernetes manifests with a metadata.yaml, and Helm
// charts.
const (
	manifestKind = "manifest"
	helmKind     = "helm"
)

// kindOf tells what a package is by its files. What is neither is read as
// manifests, whose renderer says what it misses.
func kindOf(files render.Files) string {
	for _, name := range [...]string{"metadata.yaml", "metadata.yml"} {
		if _, found := files[name]; found {
			return manifestKind
		}
	}
	for name := range files {
		if folder, file := path.Split(name); file == "Chart.yaml" && strings.Count(folder, "/") <= 1 {
			return helmKind
		}
	}
	return manifestKind
}

// Upload checks a package's archive and keeps it under as.ID, or under a new one
// when that is empty, in the project as.Project. With an id that is taken it
// replaces the content; instances keep what they were made from. An id of another
// project is taken (nf.Exists). Nothing is kept when the check fails: nf.Invalid with
// violations that name file and line, or nf.TooLarge. A request that is repeated
// (as.Request) gives the package that it made before.
//
// All uploads together use a limited amount of memory. An upload that gets no memory
// for its next bytes within 10 seconds fails with nf.TooMany.
func (c *Catalog) Upload(ctx context.Context, as nf.Package, content io.Reader) (p nf.Package, created bool, err error) {
	id := as.ID
	if id == "" {
		if id = c.cfg.NewID(); as.Request.Key != "" {
			id = requestedID(as.Request)
		}
	}
	subject := "package " + id
	v := nf.CheckID("csar_id", id)
	if as.Project != "" {
		v = append(v, nf.CheckID("project", as.Project)...)
	}
	if v != nil {
		return p, false, nf.E(nf.Invalid, "upload", subject, v)
	}
	memory := c.memory.open()
	defer memory.close()
	archive, err := c.read(ctx, memory, content)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p, err = c.lint(ctx, memory, archive)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	// Each upload holds the content for itself: one that is being replaced or
	// removed beside this one lets go of its own hold only.
	p.ID, p.Upload, p.Project, p.Request = id, c.cfg.NewID(), nf.ProjectOf(as.Project), as.Request
	p.Source = as.Source
	if p.Digest, p.Size, err = c.blobs.Put(ctx, holder(p), bytes.NewReader(archive), c.cfg.Limits.Archive); err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p.Created = c.cfg.Clock().UTC()
	p.Updated = p.Created
	return c.keep(ctx, p)
}

// Lint reads a package's archive as Upload does, and keeps nothing. The result
// has no id, digest or times.
func (c *Catalog) Lint(ctx context.Context, archive []byte) (nf.Package, error) {
	memory := c.memory.open()
	defer memory.close()
	return c.lint(ctx, memory, archive)
}

// lint unpacks and checks an archive once there is memory for its files.
func (c *Catalog) lint(ctx context.Context, memory *reservation, archive []byte) (nf.Package, error) {
	l := c.cfg.Limits
	files := min(l.Unpacked, max(1<<20, int64(l.Ratio)*int64(len(archive))))
	if err := memory.reserve(ctx, files); err != nil {
		return nf.Package{}, err
	}
	defer memory.release(files)
	return Lint(ctx, archive, l, c.cfg.Renderers)
}

// Lint reads a package's archive and says what it holds. Its errors are those
// of Catalog.Upload.
func Lint(ctx context.Context, archive []byte, limits render.Limits, renderers map[string]render.Renderer) (nf.Package, error) {
	files, mediaType, err := render.Archive(archive, limits)
	if err != nil {
		return nf.Package{}, fmt.Errorf("cannot open the archive: %w", err)
	}
	kind := kindOf(files)
	renderer, ok := renderers[kind]
	if !ok {
		return nf.Package{}, nf.E(nf.Unsupported, "read", "package", fmt.Errorf("no renderer for kind %s", kind))
	}
	summary, err := renderer.Check(ctx, files)
	if err != nil {
		return nf.Package{}, fmt.Errorf("cannot use the package: %w", err)
	}
	return nf.Package{
		Name: summary.Name, Version: summary.Version, Description: summary.Description,
		Kind: kind, Size: int64(len(archive)), MediaType: mediaType,
		Files:     slices.Sorted(maps.Keys(files)),
		Variables: summary.Variables, Namespaces: summary.Namespaces, Warnings: summary.Warnings,
	}, nil
}

// read reads the whole archive, which must fit the limit: zip needs random access,
// and the check needs all of it before anything is stored. The buffer grows as
// memory is reserved.
func (c *Catalog) read(ctx context.Context, memory *reservation, content io.Reader) ([]byte, error) {
	most := int(c.cfg.Limits.Archive) + 1
	var archive []byte
	for {
		if len(archive) == cap(archive) {
			grown := min(max(firstBuffer, 2*cap(archive)), most)
			if err := memory.reserve(ctx, int64(grown)); err != nil {
				return nil, err
			}
			old := int64(cap(archive))
			archive = append(make([]byte, 0, grown), archive...)
			memory.release(old)
		}
		n, err := content.Read(archive[len(archive):cap(archive)])
		archive = archive[:len(archive)+n]
		switch {
		case len(archive) == most:
			return nil, nf.E(nf.TooLarge, "read", "archive", fmt.Errorf("it is larger than %d bytes", c.cfg.Limits.Archive))
		case errors.Is(err, io.EOF) && len(archive) == 0:
			return nil, nf.Violations{{Message: "the archive is empty"}}
		case errors.Is(err, io.EOF):
			return archive, nil
		case err != nil:
			return nil, fmt.Errorf("cannot read the archive: %w", err)
		}
	}
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
	fresh := p
	p, err = c.packages.Update(ctx, p.ID, func(stored *nf.Package) error {
		if fresh.Request.Same(stored.Request) && fresh.Request.Digest != stored.Request.Digest {
			return &nf.Error{Kind: nf.Conflict, Op: "upload", Subject: "package " + fresh.ID, Reason: "idempotency",
				Err: errors.New("another request was made under this key")}
		}
		if nf.ProjectOf(stored.Project) != nf.ProjectOf(fresh.Project) {
			return nf.E(nf.Exists, "upload", "package "+fresh.ID, nil) // another's
		}
		old = *stored
		next := fresh
		next.Removing, next.Created, next.Project = stored.Removing, stored.Created, stored.Project
		*stored = next
		return nil
	})
	if err != nil {
		return p, false, errors.Join(err, c.blobs.Release(ctx, holder(fresh), fresh.Digest))
	}
	again := p.Request.Same(old.Request) && p.Digest == old.Digest
	return p, again, nf.UnlessGone(c.blobs.Release(ctx, holder(old), old.Digest))
}

// requestedID is the id of a package that a request with a key made: the same
// for each repetition.
func requestedID(k nf.RequestKey) string {
	sum := sha256.Sum256([]byte(k.Client + "\x00" + k.Key))
	return hex.EncodeToString(sum[:8])
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
	p, err := c.packages.Remove(ctx, id)
	if err != nil {
		return c.inUse(ctx, "package "+id, nf.Holding{Package: id}, err)
	}
	return nf.UnlessGone(c.blobs.Release(ctx, holder(p), p.Digest))
}

func holder(p nf.Package) string { return "package/" + p.ID + "/" + p.Upload }
