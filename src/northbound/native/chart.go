package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// ChartSource fetches charts from registries and repositories.
type ChartSource interface {
	// Fetch passes the archive of a chart to into with its own context, and returns
	// the source URL. If it fails after that, the archive must not be used. The chart is to become a
	// package of the project. It returns
	// nf.Forbidden if the caller may not upload a package or the operator has
	// not allowed the host. It returns nf.Invalid if the chart differs from the
	// reference. Other errors are those of into, nf.NotFound, nf.TooLarge and
	// nf.Unreachable.
	Fetch(ctx context.Context, project string, ref ChartRef, into func(context.Context, io.Reader) error) (source string, err error)
}

// ChartRef identifies a chart.
type ChartRef struct {
	URL      string    // oci://host/path/name, or the URL of a chart repository
	Name     string    // the chart's name in a repository
	Version  string    // a version or a range; empty: the newest
	Digest   string    // the required digest; empty: any
	Username string    // may be empty
	Password nf.Secret // a token if Username is empty

	SDC SDCRef // instead of the other fields
}

// SDCRef identifies a chart or another package in SDC. It has a service or a resource.
type SDCRef struct {
	Service  string // UUID of a version
	Resource string // UUID of a version
	Instance string // of a resource in the service; empty: any
	Artifact string // name; empty: any
}

// chartRef returns the chart that a request names, or nil.
func chartRef(body wire.PackageCreate) (*ChartRef, error) {
	switch {
	case body.Source != nil:
		return sdcRef(body)
	case body.Chart == nil:
		return nil, nil
	case body.Chart.Password == nf.Masked:
		return nil, refuseMask("chart.password", nf.Masked)
	}
	c := body.Chart
	return &ChartRef{
		URL: c.URL, Name: c.Name, Version: c.Version, Digest: c.Digest, Username: c.Username, Password: nf.Secret(c.Password),
	}, nil
}

func sdcRef(body wire.PackageCreate) (*ChartRef, error) {
	s := body.Source.SDC
	switch {
	case body.Chart != nil:
		return nil, invalid("source", "cannot be combined with chart")
	case s == nil || (s.Service == "") == (s.Resource == ""):
		return nil, invalid("source.sdc", "must have either service_uuid or resource_uuid")
	case s.Instance != "" && s.Service == "":
		return nil, invalid("source.sdc.resource_instance", "requires service_uuid")
	}
	return &ChartRef{SDC: SDCRef(*s)}, nil
}

// isDocument reports whether the body's media type is JSON.
func isDocument(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == "application/json"
}

// documentRequest decodes a request for a package without an archive. It returns
// the fields of the future package, and the chart or nil.
func documentRequest(w http.ResponseWriter, r *http.Request) (p nf.Package, from *ChartRef, err error) {
	// The path also accepts archives, which may be larger than a document.
	r.Body = http.MaxBytesReader(w, r.Body, northbound.MaxDocument)
	body, key, err := read[wire.PackageCreate](r)
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return p, nil, nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("its document is larger than %d bytes", e.Limit))
	}
	if err != nil {
		return p, nil, err
	}
	p = nf.Package{ID: body.ID, Project: r.URL.Query().Get("project"), Name: body.Name, UserData: body.UserData, Request: key}
	if p.Project != "" && body.Project != "" && body.Project != p.Project {
		return p, nil, invalid("project", "differs from the query")
	}
	if body.Project != "" {
		p.Project = body.Project
	} else if p.Request, err = keyWith(r, key, chosen(p.Project)); err != nil {
		return p, nil, err
	}
	from, err = chartRef(body)
	switch {
	case err != nil || from == nil:
	case p.Name != "":
		err = invalid("name", "cannot be combined with chart: the chart has a name")
	case p.UserData != nil:
		err = invalid("user_data", "cannot be combined with chart; create the package first")
	}
	return p, from, err
}

// createFromDocument creates a package from a chart, or without content.
func (us uploads) createFromDocument(w http.ResponseWriter, r *http.Request) error {
	p, from, err := documentRequest(w, r)
	if err != nil {
		return err
	}
	if from == nil {
		made, err := us.store.CreatePackage(r.Context(), p)
		if err != nil {
			return err
		}
		return answerKept(w, p, made, true)
	}
	if p.Request.Key != "" {
		// A second fetch may fail or return a different chart.
		made, there, err := us.made(r.Context(), p.Request)
		if err != nil {
			return err
		}
		if there {
			return answerKept(w, p, made, false)
		}
	}
	if p.ID != "" {
		if err := us.vacant(r.Context(), p); err != nil {
			return err
		}
	}
	return us.uploadChart(w, r, p, *from)
}

func (us uploads) putFromChart(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["csar_id"]
	p, from, err := documentRequest(w, r)
	if err != nil {
		return err
	}
	if from == nil {
		return invalid("chart", "is missing")
	}
	if p.ID != "" && p.ID != id {
		return invalid("csar_id", "differs from the path")
	}
	p.ID, p.Request = id, nf.RequestKey{} // replacing is idempotent: no key is needed
	return us.uploadChart(w, r, p, *from)
}

// made returns the package that was created by a request with the same key.
func (us uploads) made(ctx context.Context, key nf.RequestKey) (nf.Package, bool, error) {
	for p, err := range us.store.PackagesFrom(ctx, nf.Cursor{}) {
		switch {
		case err != nil:
			return nf.Package{}, false, err
		case !repeats(p.Request, key):
		case p.Request.Digest != key.Digest:
			return p, false, nf.OtherRequest("upload", "package "+p.ID)
		default:
			return p, true, nil
		}
	}
	return nf.Package{}, false, nil
}

// uploadChart fetches a chart and stores it as a package.
func (us uploads) uploadChart(w http.ResponseWriter, r *http.Request, p nf.Package, ref ChartRef) error {
	if us.charts == nil {
		return nf.E(nf.Unsupported, "fetch", "chart "+ref.Name, errors.New("fetching of charts is not enabled; upload the chart's archive"))
	}
	var archive northbound.Staged
	source, err := us.charts.Fetch(r.Context(), nf.ProjectOf(p.Project), ref, func(ctx context.Context, body io.Reader) (err error) {
		archive, err = us.staging(ctx, body)
		return err
	})
	if archive != nil {
		defer archive.Discard(r.Context())
	}
	if err != nil {
		return err
	}
	p.Source = source // without credentials
	p.Design = cmp.Or(ref.SDC.Service, ref.SDC.Resource)
	return us.upload(w, r, p, archive)
}
