package catalog

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
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

// CreatePackage stores a package without content in the project as.Project,
// with the name and the user data of as, under as.ID or, if that is empty, under
// a new id. It returns nf.Invalid, and nf.Exists if the id is taken. Repeating a
// request (as.Request) returns the package that it created, as it is now, or
// nf.Conflict if the request differs.
func (c *Catalog) CreatePackage(ctx context.Context, as nf.Package) (nf.Package, error) {
	id := c.idFor(as)
	v := append(checkPackage(id, as), nf.CheckText("name", as.Name)...)
	if v = append(v, nf.CheckUserData("user_data", as.UserData)...); v != nil {
		return nf.Package{}, nf.E(nf.Invalid, "create", "package "+id, v)
	}
	p := nf.Package{
		ID: id, Project: nf.ProjectOf(as.Project), Name: as.Name, UserData: as.UserData, Request: as.Request, Created: c.cfg.Clock().UTC(),
	}
	p.Updated = p.Created
	err := c.packages.Insert(ctx, id, p)
	if nf.KindOf(err) != nf.Exists {
		return p, err
	}
	there, err := c.packages.Get(ctx, id)
	if err != nil {
		return nf.Package{}, err
	}
	repeated, err := p.Request.Repeats(there.Request, "create", "package "+id)
	if err == nil && (!repeated || nf.ProjectOf(there.Project) != p.Project) {
		err = nf.E(nf.Exists, "create", "package "+id, nf.Violations{{Field: "csar_id", Message: "already exists"}})
	}
	if err != nil {
		return nf.Package{}, err
	}
	return there, nil
}

// idFor returns the id of a new package.
func (c *Catalog) idFor(as nf.Package) string {
	switch {
	case as.ID != "":
		return as.ID
	case as.Request.Key != "":
		return requestedID(as.Request)
	}
	return c.cfg.NewID()
}

func checkPackage(id string, as nf.Package) nf.Violations {
	v := nf.CheckID("csar_id", id)
	if as.Project != "" {
		v = append(v, nf.CheckID("project", as.Project)...)
	}
	return v
}

// Upload checks a package's archive and stores it in the project as.Project,
// under as.ID or, if that is empty, under a new id. If the id exists, Upload
// stores the content in that package: it replaces the earlier one, if any.
// Instances keep the content that they were created from. A disabled package
// stays disabled. If the content declares no name, the package keeps its name. It returns nf.Exists if the id
// belongs to another project. If the check fails, nothing is stored, and it
// returns nf.Invalid with violations that name file and line, or nf.TooLarge.
// Repeating a request (as.Request) returns the package that it created, as it is
// now, or nf.Conflict if the request differs.
//
// The content is written to the store while it is read, before the check, unless it
// is store.Staged. Only the files that the check reads are held in memory of the
// catalog's budget. Upload returns nf.TooManyRequests if no memory is available for
// 10 seconds, and nf.Timeout if the content stalls for so long that what is stored of
// it was deleted.
func (c *Catalog) Upload(ctx context.Context, as nf.Package, content io.Reader) (p nf.Package, created bool, err error) {
	id := c.idFor(as)
	subject := "package " + id
	if v := checkPackage(id, as); v != nil {
		return p, false, nf.E(nf.Invalid, "upload", subject, v)
	}
	archive, done, err := c.blobs.Take(ctx, content, c.cfg.Limits.Archive)
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
	p.Source, p.Design, p.Digest = as.Source, as.Design, archive.Digest()
	if err = archive.Keep(ctx, holder(p)); err != nil {
		return p, false, nf.E(nf.KindOf(err), "upload", subject, err)
	}
	p.Created = c.cfg.Clock().UTC()
	p.Updated = p.Created
	return c.keep(ctx, p)
}

// lint checks an archive as soon as its files fit in memory.
func (c *Catalog) lint(ctx context.Context, archive *store.Staged) (nf.Package, error) {
	if archive.Size() == 0 {
		return nf.Package{}, nf.Violations{{Message: "the archive is empty"}}
	}
	files := c.cfg.Limits.MostRead(archive.Size())
	memory := c.cfg.Memory.Open(files)
	defer memory.Close()
	if err := memory.Reserve(ctx, files); err != nil {
		return nf.Package{}, err
	}
	return Lint(ctx, archive, archive.Size(), c.cfg.Limits, c.cfg.Renderers)
}

// Lint checks a package's archive of the given size and describes its content. Its
// errors are those of Catalog.Upload.
func Lint(ctx context.Context, archive io.ReaderAt, size int64, limits render.Limits, renderers map[string]render.Renderer) (nf.Package, error) {
	files, mediaType, err := render.Open(archive, size, limits)
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
	if v, ok := renderers[kind].(render.Verifier); ok {
		if err := verify(ctx, v, files, io.NewSectionReader(archive, 0, size), limits); err != nil {
			return nf.Package{}, fmt.Errorf("cannot use the package: %w", err)
		}
	}
	return nf.Package{
		Name: summary.Name, Version: summary.Version, Description: summary.Description,
		Kind: kind, Size: size, MediaType: mediaType,
		Files:     slices.Sorted(maps.Keys(files)),
		Variables: summary.Variables, Namespaces: summary.Namespaces, Warnings: summary.Warnings,
		VNFD: summary.VNFD,
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
	var unused nf.Package // whose content is released
	repeated := false
	fresh := p
	p, err = c.packages.Update(ctx, p.ID, func(stored *nf.Package) error {
		var differs error
		if repeated, differs = fresh.Request.Repeats(stored.Request, "upload", "package "+fresh.ID); differs != nil {
			return differs
		}
		if nf.ProjectOf(stored.Project) != nf.ProjectOf(fresh.Project) {
			return nf.E(nf.Exists, "upload", "package "+fresh.ID, nil) // of another project
		}
		if repeated {
			return nil
		}
		unused = *stored
		next := fresh
		next.Name, next.UserData = cmp.Or(fresh.Name, stored.Name), stored.UserData
		next.Request, next.Disabled = cmp.Or(fresh.Request, stored.Request), stored.Disabled
		next.Removing, next.Created, next.Project = stored.Removing, stored.Created, stored.Project
		*stored = next
		return nil
	})
	if err != nil || repeated {
		unused = fresh
	}
	return p, repeated, errors.Join(err, c.releaseContent(ctx, unused))
}

// releaseContent ends a package's hold on its content, if it has any.
func (c *Catalog) releaseContent(ctx context.Context, p nf.Package) error {
	if p.State() == nf.PackageCreated {
		return nil
	}
	return nf.IgnoreNotFound(c.blobs.Release(ctx, holder(p), p.Digest))
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

// PackagesFrom yields the packages after the cursor, ordered by id.
func (c *Catalog) PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error] {
	return c.packages.After(ctx, from)
}

// onboarded returns a package that has content.
func (c *Catalog) onboarded(ctx context.Context, id string) (nf.Package, error) {
	p, err := c.packages.Get(ctx, id)
	if err == nil && p.State() == nf.PackageCreated {
		err = &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "package " + id, Reason: nf.ReasonNoContent,
			Err: errors.New("it has no content yet; upload its archive first")}
	}
	return p, err
}

// Content returns a package and its archive, byte for byte as uploaded. The
// archive is streamed from the store while the caller reads it, as long as the
// context lasts. It returns nf.Conflict if the package has no content yet.
// Reading fails with nf.NotFound if the package is replaced or removed in the
// meantime.
func (c *Catalog) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	p, err := c.onboarded(ctx, id)
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

// Files returns a package and the files in its archive, without the content of
// those that are too large to be read (see render.Open). All files in use share
// a limited amount of memory, so the caller must call done when it no longer
// needs them; calling done twice is allowed. Files waits for memory, and
// returns nf.TooManyRequests if there is none for 10 seconds. It returns
// nf.Conflict if the package has no content yet.
func (c *Catalog) Files(ctx context.Context, id string) (p nf.Package, files render.Files, done func(), err error) {
	if p, err = c.onboarded(ctx, id); err != nil {
		return p, nil, nil, err
	}
	most := c.cfg.Limits.MostRead(p.Size)
	memory := c.reads.Open(most)
	if err = memory.Reserve(ctx, most); err == nil {
		files, err = c.unpack(ctx, p)
	}
	if err != nil {
		memory.Close()
		return p, nil, nil, err
	}
	memory.Release(most - files.Size())
	return p, files, memory.Close, nil
}

// unpack reads the files of a package.
func (c *Catalog) unpack(ctx context.Context, p nf.Package) (render.Files, error) {
	content, err := c.blobs.Content(ctx, p.Digest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the content of package %s: %w", p.ID, err)
	}
	files, _, err := render.Reopen(content, content.Size(), c.cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("cannot open the archive of package %s: %w", p.ID, err)
	}
	return files, nil
}

// UpdatePackage edits a package: it enables or disables it, and changes its user
// data. Any other change is ignored. It returns nf.Invalid for invalid user data.
// The edit may be called more than once.
func (c *Catalog) UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error) {
	return c.packages.Update(ctx, id, func(p *nf.Package) error {
		edited := *p
		if err := edit(&edited); err != nil {
			return err
		}
		if v := nf.CheckUserData("user_data", edited.UserData); v != nil {
			return nf.E(nf.Invalid, "update", "package "+id, v)
		}
		p.Disabled, p.UserData, p.Updated = edited.Disabled, edited.UserData, c.cfg.Clock().UTC()
		return nil
	})
}

// RemovePackage deletes a package and its content. It returns nf.Conflict while
// instances use it.
func (c *Catalog) RemovePackage(ctx context.Context, id string) error {
	p, err := c.packages.Remove(ctx, id)
	if err != nil {
		return c.inUse(ctx, "package "+id, nf.Holding{Package: id}, err)
	}
	return c.releaseContent(ctx, p)
}

func holder(p nf.Package) string { return "package/" + p.ID + "/" + p.Upload }
