package native

import (
	"bytes"
	"context"
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
	// Upload checks an archive and keeps it under the id, or under a new one
	// when id is empty; with an id that is taken it replaces the content:
	// nf.Invalid, nf.TooLarge.
	Upload(ctx context.Context, id string, content io.Reader) (p nf.Package, created bool, err error)
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
	Name         string     `json:"name,omitempty"`
	Version      string     `json:"version,omitempty"`
	Description  string     `json:"description,omitempty"`
	Kind         string     `json:"kind"`
	Digest       string     `json:"digest"`
	Size         int64      `json:"size"`
	MediaType    string     `json:"media_type"`
	Files        []string   `json:"files"`
	Variables    []variable `json:"variables"`
	Warnings     []string   `json:"warnings"`
	VNFInstances []string   `json:"vnf_instances"`
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
		ID: p.ID, Name: p.Name, Version: p.Version, Description: p.Description,
		Kind: p.Kind, Digest: p.Digest, Size: p.Size, MediaType: p.MediaType, Files: list(p.Files),
		Variables: each(p.Variables, fromVariable), Warnings: list(p.Warnings), VNFInstances: list(p.Users),
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
	id, content, err := archive(r)
	if err != nil {
		return err
	}
	if id != "" {
		// Creating never replaces. Somebody who is faster than this look still
		// gets what PUT would have done, and so do we.
		if _, err := a.cfg.Packages.Package(r.Context(), id); err == nil {
			return nf.E(nf.Exists, "upload", "package "+id, nf.Violations{{Field: "csar_id", Message: "is taken; PUT replaces its content"}})
		}
	}
	return a.upload(w, r, id, content)
}

func (a *API) putPackage(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["csar_id"]
	given, content, err := archive(r)
	if err != nil {
		return err
	}
	if given != "" && given != id {
		return invalid("csar_id", "differs from the path")
	}
	return a.upload(w, r, id, content)
}

func (a *API) upload(w http.ResponseWriter, r *http.Request, id string, content io.Reader) error {
	p, created, err := a.cfg.Packages.Upload(r.Context(), id, content)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", packagePath(p.ID))
	}
	return northbound.Answer(w, status, fromPackage(p))
}

// archive returns the archive that a request carries, as its body or as a part
// of a form, and the id that the form gives, if any.
func archive(r *http.Request) (id string, content io.Reader, err error) {
	if !isForm(r) {
		return "", r.Body, nil
	}
	for part, err := range parts(r) {
		if err != nil {
			return "", nil, err
		}
		switch part.name {
		case "file":
			content = bytes.NewReader(part.content)
		case "csar_id":
			id = string(part.content)
			if v := nf.CheckID("csar_id", id); v != nil {
				return "", nil, nf.E(nf.Invalid, "read", "the form", v)
			}
		default:
			return "", nil, invalid(part.name, "is not a known field")
		}
	}
	if content == nil {
		return "", nil, invalid("file", "is missing")
	}
	return id, content, nil
}

func (a *API) listPackages(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.Packages.Packages(r.Context())
	if err != nil {
		return err
	}
	page := paginate(r, all, func(p nf.Package) string { return p.ID }, func(nf.Package) bool { return true })
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
	return northbound.Answer(w, http.StatusOK, fromPackage(p))
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
