package native

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// uploads creates and replaces packages: from archives, from charts, and without
// content.
type uploads struct {
	store  Packages
	charts ChartSource // nil: none
	memory *budget.Budget
}

func (us uploads) routes(on route) {
	on(http.MethodPost, "/packages", us.create)
	on(http.MethodPut, "/packages/{csar_id}", us.put)
}

func (us uploads) create(w http.ResponseWriter, r *http.Request) error {
	if isDocument(r) {
		return us.createFromDocument(w, r)
	}
	if err := checkKey(r); err != nil {
		return err
	}
	body := us.memory.Upload(0)
	defer body.Close()
	p, content, err := us.archive(r, nf.Package{}, body)
	if err != nil {
		return err
	}
	if keyed(r) {
		if p.Request, err = archiveKey(r, p, body.Bytes()); err != nil {
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
	body := us.memory.Upload(0)
	defer body.Close()
	p, content, err := us.archive(r, nf.Package{ID: id}, body)
	if err != nil {
		return err
	}
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

// archive returns the archive of a request, from its body or from a part of a
// form, and the package with the request's fields. It reads an archive in a
// form, and that of a new package with an idempotency key, into the buffer
// after checking the permission.
func (us uploads) archive(r *http.Request, p nf.Package, into *budget.Buffer) (nf.Package, io.Reader, error) {
	p.Project = r.URL.Query().Get("project")
	if isForm(r) {
		return us.archiveInForm(r, p, into)
	}
	if r.Method != http.MethodPost || !keyed(r) {
		return p, r.Body, nil
	}
	as := p
	as.Project = nf.ProjectOf(p.Project)
	return p, into, us.fill(r, as, into, r.Body)
}

func (us uploads) archiveInForm(r *http.Request, p nf.Package, into *budget.Buffer) (nf.Package, io.Reader, error) {
	found := false
	for part, err := range parts(r) {
		if err == nil && part.name == "file" {
			found, err = true, us.fill(r, p, into, part.body)
		} else if err == nil {
			err = part.about(&p)
		}
		if err != nil {
			return p, nil, err
		}
	}
	if !found {
		return p, nil, invalid("file", "is missing")
	}
	return p, into, nil
}

// fill reads the content of a package into the buffer, if the caller may upload
// the package.
func (us uploads) fill(r *http.Request, p nf.Package, into *budget.Buffer, content io.Reader) error {
	if err := us.store.MayUpload(r.Context(), p); err != nil {
		return err
	}
	return into.Fill(r.Context(), content)
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
