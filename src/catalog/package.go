package catalog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// kindOf returns the kind whose renderer fits the files best; the first in
// alphabetical order of those that fit equally well; "" if none fits.
func kindOf(files render.Files, renderers map[string]render.Renderer) string {
	kind, best := "", render.NoFit
	for _, name := range slices.Sorted(maps.Keys(renderers)) {
		if fit := renderers[name].Fit(files); fit > best {
			kind, best = name, fit
		}
	}
	return kind
}

// Upload checks a package's archive and stores it in the project as.Project,
// under as.ID or, if that is empty, under a new id. If the id exists, Upload
// replaces the content; instances keep the content that they were created from.
// It returns nf.Exists if the id belongs to another project. If the check
// fails, nothing is stored, and it returns nf.Invalid with violations that name
// file and line, or nf.TooLarge. Repeating a request (as.Request) returns the
// package that it created, or nf.Conflict if the request differs.
//
// The content is read into memory of the catalog's budget, unless it is a
// budget.Buffer. Upload returns nf.TooManyRequests if no memory is available for 10
// seconds.
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
	archive, done, err := c.cfg.Memory.Take(ctx, content)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	defer done()
	p, err = c.lint(ctx, archive)
	if err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	// Each upload has its own hold on the content, so that a concurrent
	// replacement or removal releases only its own.
	p.ID, p.Upload, p.Project, p.Request = id, c.cfg.NewID(), nf.ProjectOf(as.Project), as.Request
	p.Source = as.Source
	if p.Digest, p.Size, err = c.blobs.Put(ctx, holder(p), bytes.NewReader(archive.Bytes()), c.cfg.Limits.Archive); err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p.Created = c.cfg.Clock().UTC()
	p.Updated = p.Created
	return c.keep(ctx, p)
}

// lint unpacks and checks an archive as soon as its files fit in memory.
func (c *Catalog) lint(ctx context.Context, archive *budget.Buffer) (nf.Package, error) {
	content := archive.Bytes()
	if len(content) == 0 {
		return nf.Package{}, nf.Violations{{Message: "the archive is empty"}}
	}
	files := c.cfg.Limits.MostUnpacked(int64(len(content)))
	if err := archive.Reserve(ctx, files); err != nil {
		return nf.Package{}, err
	}
	defer archive.Release(files)
	return Lint(ctx, content, c.cfg.Limits, c.cfg.Renderers)
}

// Lint checks a package's archive and describes its content. Its errors are
// those of Catalog.Upload.
func Lint(ctx context.Context, archive []byte, limits render.Limits, renderers map[string]render.Renderer) (nf.Package, error) {
	files, mediaType, err := render.Archive(archive, limits)
	if err != nil {
		return nf.Package{}, fmt.Errorf("cannot open the archive: %w", err)
	}
	kind := kindOf(files, renderers)
	if kind == "" {
		return nf.Package{}, nf.E(nf.Unsupported, "read", "package", errors.New("its kind is not supported"))
	}
	summary, err := renderers[kind].Check(ctx, files)
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
			return &nf.Error{Kind: nf.Conflict, Op: "upload", Subject: "package " + fresh.ID, Reason: nf.ReasonIdempotency,
				Err: errors.New("another request was made under this key")}
		}
		if nf.ProjectOf(stored.Project) != nf.ProjectOf(fresh.Project) {
			return nf.E(nf.Exists, "upload", "package "+fresh.ID, nil) // of another project
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
	return p, again, nf.IgnoreNotFound(c.blobs.Release(ctx, holder(old), old.Digest))
}

// requestedID returns the id of a package that was uploaded with an idempotency
// key. It is the same for each repetition of the request.
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

// Content returns a package and its archive, byte for byte as uploaded. The
// archive is streamed from the store while the caller reads it, as long as the
// context lasts. Reading fails with nf.NotFound if the package is replaced or
// removed in the meantime.
func (c *Catalog) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	p, err := c.packages.Get(ctx, id)
	if err != nil {
		return p, nil, err
	}
	content, _, err := c.blobs.Open(ctx, p.Digest)
	if err != nil {
		return p, nil, fmt.Errorf("cannot read the content of package %s: %w", id, err)
	}
	// Before the first byte, the caller can still respond with an error.
	begun := bufio.NewReader(content)
	if _, err := begun.Peek(1); err != nil {
		return p, nil, fmt.Errorf("cannot read the content of package %s: %w", id, err)
	}
	return p, io.NopCloser(begun), nil
}

// Files returns a package and the files in its archive. All files in use share
// a limited amount of memory, so the caller must call done when it no longer
// needs them; calling done twice is allowed. Files waits for memory, and
// returns nf.TooManyRequests if there is none for 10 seconds.
func (c *Catalog) Files(ctx context.Context, id string) (p nf.Package, files render.Files, done func(), err error) {
	if p, err = c.packages.Get(ctx, id); err != nil {
		return p, nil, nil, err
	}
	most := c.cfg.Limits.MostUnpacked(p.Size)
	memory := c.reads.Open(min(p.Size, c.cfg.Limits.Archive) + 1 + most)
	if files, err = c.unpack(ctx, p, memory, most); err != nil {
		memory.Close()
		return p, nil, nil, err
	}
	return p, files, memory.Close, nil
}

// unpack returns the files of a package and keeps memory reserved for them.
func (c *Catalog) unpack(ctx context.Context, p nf.Package, memory *budget.Buffer, most int64) (render.Files, error) {
	if err := memory.Reserve(ctx, most); err != nil {
		return nil, err
	}
	content, _, err := c.blobs.Open(ctx, p.Digest)
	if err == nil {
		err = memory.Grow(ctx, p.Size)
	}
	if err == nil {
		err = memory.Fill(ctx, content)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the content of package %s: %w", p.ID, err)
	}
	files, _, err := render.Archive(memory.Bytes(), c.cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("cannot open the archive of package %s: %w", p.ID, err)
	}
	memory.Drop()
	memory.Release(most - files.Size())
	return files, nil
}

// RemovePackage deletes a package and its content. It returns nf.Conflict while
// instances use it.
func (c *Catalog) RemovePackage(ctx context.Context, id string) error {
	p, err := c.packages.Remove(ctx, id)
	if err != nil {
		return c.inUse(ctx, "package "+id, nf.Holding{Package: id}, err)
	}
	return nf.IgnoreNotFound(c.blobs.Release(ctx, holder(p), p.Digest))
}

func holder(p nf.Package) string { return "package/" + p.ID + "/" + p.Upload }
