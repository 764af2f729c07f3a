package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Packages is what the API asks of the uploaded packages.
type Packages interface {
	// Upload checks an archive and keeps it under the ID of p, or under a new
	// one when that is empty, in the Project of p; with an id that is taken it
	// replaces the content. A Request that p has was made before when a package
	// with the same one is there: that is returned. nf.Invalid, nf.TooLarge, and
	// nf.Conflict when the content or the Request's digest is another.
	Upload(ctx context.Context, p nf.Package, content io.Reader) (kept nf.Package, created bool, err error)
	// Package returns a package, or nf.NotFound.
	Package(ctx context.Context, id string) (nf.Package, error)
	// Packages returns every package, ordered by id.
	Packages(ctx context.Context) ([]nf.Package, error)
	// Content returns a package and its archive, which the caller closes.
	Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error)
	// RemovePackage removes a package; nf.Conflict while instances use it.
	RemovePackage(ctx context.Context, id string) error
}

// pkg is a package as clients see it.
type pkg struct {
	ID           string     `json:"csar_id"`
	Project      string     `json:"project"`
	Name         string     `json:"name,omitempty"`
	Version      string     `json:"version,omitempty"`
	Description  string     `json:"description,omitempty"`
	Kind         string     `json:"kind"`
	Source       string     `json:"source,omitempty"`
	Digest       string     `json:"digest"`
	Size         int64      `json:"size"`
	MediaType    string     `json:"media_type"`
	Files        []string   `json:"files"`
	Variables    []variable `json:"variables"`
	Namespaces   []string   `json:"namespaces,omitempty"` // that it opens, besides the instance's own
	Warnings     []string   `json:"warnings"`
	VNFInstances []string   `json:"vnf_instances,omitzero"` // of a single package
	More         bool       `json:"more_vnf_instances,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
}

type variable struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive"`
	Description string `json:"description,omitempty"`
}

func fromPackage(p nf.Package) pkg {
	return pkg{
		ID: p.ID, Project: nf.ProjectOf(p.Project), Name: p.Name, Version: p.Version, Description: p.Description,
		Kind: p.Kind, Source: p.Source, Digest: p.Digest, Size: p.Size, MediaType: p.MediaType, Files: list(p.Files),
		Variables: each(p.Variables, fromVariable), Namespaces: p.Namespaces, Warnings: list(p.Warnings),
		CreatedAt: p.Created, UpdatedAt: p.Updated,
	}
}

func fromVariable(v nf.Variable) variable {
	if v.Sensitive && v.Default != nil {
		v.Default = nf.Masked
	}
	return variable{
		Name: v.Name, Type: v.Type, Default: v.Default, Required: v.Required, Sensitive: v.Sensitive, Description: v.Description,
	}
}

func (a *API) createPackage(w http.ResponseWriter, r *http.Request) error {
	if isDocument(r) {
		return a.createFromChart(w, r)
	}
	p, content, err := archive(r)
	if err != nil {
		return err
	}
	if keyed(r) {
		archive, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		if p.Request, err = a.key(r, []any{p.ID, nf.ProjectOf(p.Project), archive}); err != nil {
			return err
		}
		content = bytes.NewReader(archive)
	}
	if p.ID != "" {
		if err := a.vacant(r.Context(), p); err != nil {
			return err
		}
	}
	return a.upload(w, r, p, content)
}

// vacant refuses an id that a package has, unless the same request has made it:
// creating never replaces. Somebody who is faster than this look still gets what
// PUT would have done, and so do we.
func (a *API) vacant(ctx context.Context, p nf.Package) error {
	there, err := a.cfg.Packages.Package(ctx, p.ID)
	switch {
	case err != nil:
		return nil //nolint:nilerr // what is wrong with the store, the upload will tell
	case !repeats(there.Request, p.Request):
		return nf.E(nf.Exists, "upload", "package "+p.ID, nf.Violations{{Field: "csar_id", Message: "is taken; PUT replaces its content"}})
	case there.Request.Digest != p.Request.Digest:
		return otherRequest(p.ID)
	}
	return nil
}

func otherRequest(id string) error {
	return &nf.Error{Kind: nf.Conflict, Op: "upload", Subject: "package " + id, Reason: "idempotency", Err: errors.New("another request was made under this key")}
}

func (a *API) putPackage(w http.ResponseWriter, r *http.Request) error {
	if isDocument(r) {
		return a.putFromChart(w, r)
	}
	id := mux.Vars(r)["csar_id"]
	p, content, err := archive(r)
	if err != nil {
		return err
	}
	if p.ID != "" && p.ID != id {
		return invalid("csar_id", "differs from the path")
	}
	p.ID = id
	return a.upload(w, r, p, content)
}

func (a *API) upload(w http.ResponseWriter, r *http.Request, p nf.Package, content io.Reader) error {
	kept, created, err := a.cfg.Packages.Upload(r.Context(), p, content)
	if err != nil {
		return err
	}
	return answerKept(w, p, kept, created)
}

// answerKept answers with a package that was asked for as p.
func answerKept(w http.ResponseWriter, p, kept nf.Package, created bool) error {
	status := http.StatusOK
	if created || repeats(kept.Request, p.Request) { // a repeated request is answered as the first one was
		status = http.StatusCreated
		w.Header().Set("Location", packagePath(kept.ID))
	}
	return northbound.Answer(w, status, fromPackage(kept))
}

// archive returns the archive that a request carries, as its body or as a part
// of a form, and what is said of the package beside it.
func archive(r *http.Request) (p nf.Package, content io.Reader, err error) {
	p.Project = r.URL.Query().Get("project")
	if !isForm(r) {
		return p, r.Body, nil
	}
	for part, err := range parts(r) {
		if err != nil {
			return p, nil, err
		}
		if part.name == "file" {
			content = bytes.NewReader(part.content)
		} else if err := part.about(&p); err != nil {
			return p, nil, err
		}
	}
	if content == nil {
		return p, nil, invalid("file", "is missing")
	}
	return p, content, nil
}

// about adds what a part says of the package that it comes with.
func (p formPart) about(pkg *nf.Package) error {
	const longest = 128 // of an id; what is longer is not quoted
	if len(p.content) > longest {
		return invalid(p.name, fmt.Sprintf("is longer than %d bytes", longest))
	}
	text := string(p.content)
	switch p.name {
	case "csar_id":
		pkg.ID = text
	case "project":
		if pkg.Project != "" && pkg.Project != text {
			return invalid("project", "differs from the query")
		}
		pkg.Project = text
	default:
		return invalid(p.name, "is not a known field")
	}
	if v := nf.CheckID(p.name, text); v != nil {
		return nf.E(nf.Invalid, "read", "the form", v)
	}
	return nil
}

func (a *API) listPackages(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.Packages.Packages(r.Context())
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := paginate(r, all, func(p nf.Package) string { return p.ID }, func(p nf.Package) bool {
		return !query.Has("project") || query.Get("project") == nf.ProjectOf(p.Project)
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []pkg  `json:"packages"`
		Next  string `json:"next,omitempty"`
	}{each(page.items, fromPackage), page.next})
}

func (a *API) getPackage(w http.ResponseWriter, r *http.Request) error {
	p, err := a.cfg.Packages.Package(r.Context(), mux.Vars(r)["csar_id"])
	if err != nil {
		return err
	}
	shown := fromPackage(p)
	if shown.VNFInstances, shown.More, err = a.users(r.Context(), nf.Holding{Package: p.ID}); err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, shown)
}

func (a *API) getContent(w http.ResponseWriter, r *http.Request) error {
	p, content, err := a.cfg.Packages.Content(r.Context(), mux.Vars(r)["csar_id"])
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
		panic(http.ErrAbortHandler) // half an archive must not look like a whole one
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

func (a *API) deletePackage(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Packages.RemovePackage(r.Context(), mux.Vars(r)["csar_id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
