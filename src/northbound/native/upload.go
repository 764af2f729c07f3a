package native

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// uploads creates and replaces packages: from archives, from charts, and without
// content.
type uploads struct {
	store   Packages
	charts  ChartSource // nil: none
	staging northbound.Staging
}

func (us uploads) routes(on route) {
	on(http.MethodPost, "/packages", us.create)
	on(http.MethodPut, "/packages/{csar_id}", us.put)
}

func (us uploads) create(w http.ResponseWriter, r *http.Request) error {
	if isDocument(r) {
		return us.createFromDocument(w, r)
	}
	if err := northbound.CheckKey(r); err != nil {
		return err
	}
	p, content, err := us.archive(r, nf.Package{})
	if err != nil {
		return err
	}
	defer content.Discard(r.Context())
	if northbound.Keyed(r) {
		if p.Request, err = archiveKey(r, p, content); err != nil {
			return err
		}
	}
	if p.ID != "" {
		if err := us.vacant(r.Context(), p); err != nil {
			return err
		}
	}
	return us.upload(w, r, p, content)
}

// vacant returns nf.Exists if the id is taken, unless the same request created
// the package, because creating must not replace a package. If another request
// creates the package after this check, the upload replaces its content, as PUT
// would.
func (us uploads) vacant(ctx context.Context, p nf.Package) error {
	there, err := us.store.Package(ctx, p.ID)
	switch {
	case err != nil:
		return nil //nolint:nilerr // what is wrong with the store, the upload will tell
	case !repeats(there.Request, p.Request):
		return nf.E(nf.Exists, "upload", "package "+p.ID, nf.Violations{{Field: "csar_id", Message: "already exists; PUT replaces its content"}})
	case there.Request.Digest != p.Request.Digest:
		return nf.OtherRequest("upload", "package "+p.ID)
	}
	return nil
}

func (us uploads) put(w http.ResponseWriter, r *http.Request) error {
	if isDocument(r) {
		return us.putFromChart(w, r)
	}
	id := mux.Vars(r)["csar_id"]
	p, content, err := us.archive(r, nf.Package{ID: id})
	if err != nil {
		return err
	}
	defer content.Discard(r.Context())
	return us.upload(w, r, p, content)
}

func (us uploads) upload(w http.ResponseWriter, r *http.Request, p nf.Package, content io.Reader) error {
	kept, created, err := us.store.Upload(r.Context(), p, content)
	if err != nil {
		return err
	}
	return answerKept(w, p, kept, created)
}

// answerKept responds with the stored package for the requested package p.
func answerKept(w http.ResponseWriter, p, kept nf.Package, created bool) error {
	status := http.StatusOK
	if created || repeats(kept.Request, p.Request) { // a repeated request gets the same status as the first one
		status = http.StatusCreated
		w.Header().Set("Location", wire.PackagePath(kept.ID))
	}
	return northbound.Answer(w, status, wire.PackageOf(kept))
}

// archive stages the archive of a request, from its body or from a part of a form,
// after checking the permission. It returns the archive, which the caller must
// discard, and the package with the request's fields.
func (us uploads) archive(r *http.Request, p nf.Package) (nf.Package, northbound.Staged, error) {
	p.Project = r.URL.Query().Get("project")
	if isForm(r) {
		return us.archiveInForm(r, p)
	}
	as := p
	as.Project = nf.ProjectOf(p.Project)
	archive, err := us.stage(r, as, r.Body)
	return p, archive, err
}

func (us uploads) archiveInForm(r *http.Request, p nf.Package) (nf.Package, northbound.Staged, error) {
	archive, err := us.readForm(r, &p)
	if err == nil && archive == nil {
		err = invalid("file", "is missing")
	}
	if err != nil && archive != nil {
		archive.Discard(r.Context())
	}
	return p, archive, err
}

// readForm stages the archive of a form, and sets the fields of the package that
// the other parts name. It may return an archive with an error.
func (us uploads) readForm(r *http.Request, p *nf.Package) (archive northbound.Staged, err error) {
	for part, err := range parts(r) {
		if err == nil && part.name == "file" {
			archive, err = us.stage(r, *p, part.body)
		} else if err == nil {
			err = part.about(p)
		}
		if err != nil {
			return archive, err
		}
	}
	return archive, nil
}

// stage stores the content of a package until it is checked, if the caller may
// upload the package.
func (us uploads) stage(r *http.Request, p nf.Package, content io.Reader) (northbound.Staged, error) {
	if err := us.store.MayUpload(r.Context(), p); err != nil {
		return nil, err
	}
	return us.staging(r.Context(), content)
}

// about sets the field of the package that a part names.
func (p formPart) about(pkg *nf.Package) error {
	const longest = 128 // of an id in bytes; a longer one is not quoted in the error
	content, err := p.read(longest + 1)
	if err != nil {
		return err
	}
	text := string(content)
	known := &pkg.ID
	switch p.name {
	case "csar_id":
	case "project":
		known = &pkg.Project
	default:
		return invalid(p.name, "is not a known field")
	}
	if len(text) > longest {
		return invalid(p.name, fmt.Sprintf("is longer than %d bytes", longest))
	}
	if v := nf.CheckID(p.name, text); v != nil {
		return nf.E(nf.Invalid, "read", "the form", v)
	}
	if *known != "" && *known != text {
		return invalid(p.name, "differs from "+map[string]string{"csar_id": "the path", "project": "the query"}[p.name])
	}
	*known = text
	return nil
}
