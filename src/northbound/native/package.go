package native

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Packages manages packages.
type Packages interface {
	Uploads
	// Package returns a package, or nf.NotFound.
	Package(ctx context.Context, id string) (nf.Package, error)
	// PackagesFrom yields the packages, sorted by id.
	PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error]
	// Content returns a package and its archive, which the caller must close.
	// The archive is read from the store incrementally. Content returns
	// nf.Conflict if the package has no content yet.
	Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error)
	// RemovePackage deletes a package. It returns nf.Conflict while instances
	// use it.
	RemovePackage(ctx context.Context, id string) error
}

// Uploads creates and changes packages, and stores their archives.
type Uploads interface {
	// CreatePackage stores a package without content in p.Project under p.ID, or
	// under a new id if that is empty. It returns nf.Exists if the id is taken.
	// If a package with the same p.Request exists, the request is a repetition:
	// CreatePackage returns that package, or nf.Conflict if the request's digest
	// differs.
	CreatePackage(ctx context.Context, p nf.Package) (nf.Package, error)
	// MayUpload returns the error that Upload returns for a caller that may not
	// upload p. If p has no project, the project is not known yet; then it is
	// sufficient that the caller may upload in any project.
	MayUpload(ctx context.Context, p nf.Package) error
	// Upload validates an archive and stores it in p.Project under p.ID, or
	// under a new id if that is empty. If the id is taken, it replaces the
	// content. If a package with the same p.Request exists, the request is a
	// repetition: Upload returns that package, or nf.Conflict if the request's
	// digest differs. It returns nf.Invalid or nf.TooLarge for an
	// invalid archive, and nf.TooManyRequests if there is not enough memory for the
	// check. The content may be northbound.Staged.
	Upload(ctx context.Context, p nf.Package, content io.Reader) (kept nf.Package, created bool, err error)
	// UpdatePackage edits Disabled and UserData of a package. Edit may be called
	// more than once.
	UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error)
}

// packages serves stored packages.
type packages struct {
	store Packages
	usage Usage
}

func (ps packages) routes(on route) {
	const all, one = "/packages", "/packages/{csar_id}"
	on(http.MethodGet, all, ps.list)
	on(http.MethodGet, one, ps.get)
	on(http.MethodPatch, one, ps.update)
	on(http.MethodDelete, one, ps.remove)
	on(http.MethodGet, one+"/content", ps.content)
}

func (ps packages) list(w http.ResponseWriter, r *http.Request) error {
	page, err := paginateFrom(r, wanted(r, nf.AttributeProject), func(from nf.Cursor) iter.Seq2[nf.Package, error] {
		return ps.store.PackagesFrom(r.Context(), from)
	}, func(p nf.Package) string { return p.ID })
	if err != nil {
		return err
	}
	return answerPage(w, "packages", page, wire.PackageOf)
}

func (ps packages) get(w http.ResponseWriter, r *http.Request) error {
	p, err := ps.store.Package(r.Context(), mux.Vars(r)["csar_id"])
	if err != nil {
		return err
	}
	shown := wire.PackageOf(p)
	if shown.VNFInstances, shown.More, err = users(r.Context(), ps.usage, nf.Holding{Package: p.ID}); err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, shown)
}

func (ps packages) update(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[patch](r)
	if err != nil {
		return err
	}
	changed, err := ps.store.UpdatePackage(r.Context(), mux.Vars(r)["csar_id"], func(p *nf.Package) error {
		edit, err := apply(change, wire.PackageEdit{Enabled: !p.Disabled, UserData: p.UserData})
		if err != nil {
			return err
		}
		p.Disabled, p.UserData = !edit.Enabled, edit.UserData
		return nil
	})
	return respond(w, changed, err, wire.PackageOf)
}

func (ps packages) content(w http.ResponseWriter, r *http.Request) error {
	p, content, err := ps.store.Content(r.Context(), mux.Vars(r)["csar_id"])
	if err != nil {
		return err
	}
	defer content.Close()
	h := w.Header()
	tag := strconv.Quote(p.Digest)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", p.MediaType)
	h.Set("Content-Length", strconv.FormatInt(p.Size, 10))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", p.ID+extension(p.MediaType)))
	if _, err := io.Copy(w, content); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a partial archive for a complete one
	}
	return nil
}

// matches reports whether an If-None-Match header names the tag.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == tag || one == "*" {
			return true
		}
	}
	return false
}

func extension(media string) string {
	if media == "application/zip" {
		return ".zip"
	}
	return ".tar.gz"
}

func (ps packages) remove(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, ps.store.RemovePackage(r.Context(), mux.Vars(r)["csar_id"]))
}
