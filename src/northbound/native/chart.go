package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// ChartSource is what the API asks of the places where charts are published.
type ChartSource interface {
	// Fetch returns a chart that is to become a package of the project:
	// nf.Forbidden when whoever asks may not upload one, or when the operator has
	// not allowed the host; nf.Invalid when it is not the one that was wanted;
	// nf.NotFound, nf.TooLarge and nf.Unreachable.
	Fetch(ctx context.Context, project string, ref ChartRef) (Chart, error)
}

// ChartRef says which chart is wanted.
type ChartRef struct {
	URL      string    // oci://host/path/name, or that of a chart repository
	Name     string    // in a repository
	Version  string    // or a range of them; empty: the newest
	Digest   string    // that it must have; empty: any
	Username string    // may be empty
	Password nf.Secret // a token when there is no Username
}

// Chart is a chart as it was fetched.
type Chart struct {
	Archive []byte
	Source  string // where it came from, without credentials
}

// chartPackage is the body of a request to fetch a chart and keep it.
type chartPackage struct {
	ID      string `json:"csar_id"`
	Project string `json:"project"`
	Chart   struct {
		URL      string `json:"url"`
		Name     string `json:"name"`
		Version  string `json:"version"`
		Digest   string `json:"digest"`
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"chart"`
}

func (c chartPackage) ref() ChartRef {
	return ChartRef{
		URL: c.Chart.URL, Name: c.Chart.Name, Version: c.Chart.Version, Digest: c.Chart.Digest,
		Username: c.Chart.Username, Password: nf.Secret(c.Chart.Password),
	}
}

// isDocument reports whether the body says that it is JSON.
func isDocument(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == "application/json"
}

// chartRequest reads a request for a chart, and what it says of the package that
// the chart becomes.
func (a *API) chartRequest(w http.ResponseWriter, r *http.Request) (p nf.Package, ref ChartRef, err error) {
	// The path lets archives in, which may be larger than a document.
	r.Body = http.MaxBytesReader(w, r.Body, northbound.MaxDocument)
	body, key, err := read[chartPackage](a, r)
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return p, ref, nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("its document is larger than %d bytes", e.Limit))
	}
	if err != nil {
		return p, ref, err
	}
	p = nf.Package{ID: body.ID, Project: r.URL.Query().Get("project"), Request: key}
	if p.Project != "" && body.Project != "" && body.Project != p.Project {
		return p, ref, invalid("project", "differs from the query")
	}
	if body.Project != "" {
		p.Project = body.Project
	}
	if body.Chart.Password == nf.Masked {
		return p, ref, refuseMask("chart.password", nf.Masked)
	}
	return p, body.ref(), nil
}

func (a *API) createFromChart(w http.ResponseWriter, r *http.Request) error {
	p, ref, err := a.chartRequest(w, r)
	if err != nil {
		return err
	}
	if p.Request.Key != "" {
		// What was fetched before need not be there any more, nor be the same.
		made, there, err := a.made(r.Context(), p.Request)
		if err != nil {
			return err
		}
		if there {
			return answerKept(w, p, made, false)
		}
	}
	if p.ID != "" {
		if err := a.vacant(r.Context(), p); err != nil {
			return err
		}
	}
	return a.uploadChart(w, r, p, ref)
}

func (a *API) putFromChart(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["csar_id"]
	p, ref, err := a.chartRequest(w, r)
	if err != nil {
		return err
	}
	if p.ID != "" && p.ID != id {
		return invalid("csar_id", "differs from the path")
	}
	p.ID, p.Request = id, nf.RequestKey{} // to replace twice is to replace once
	return a.uploadChart(w, r, p, ref)
}

// made returns the package that a request with the same key has made.
func (a *API) made(ctx context.Context, key nf.RequestKey) (nf.Package, bool, error) {
	all, err := a.cfg.Packages.Packages(ctx)
	if err != nil {
		return nf.Package{}, false, err
	}
	for _, p := range all {
		switch {
		case !repeats(p.Request, key):
		case p.Request.Digest != key.Digest:
			return p, false, otherRequest(p.ID)
		default:
			return p, true, nil
		}
	}
	return nf.Package{}, false, nil
}

// uploadChart fetches a chart and keeps it as a package.
func (a *API) uploadChart(w http.ResponseWriter, r *http.Request, p nf.Package, ref ChartRef) error {
	if a.cfg.Charts == nil {
		return nf.E(nf.Unsupported, "fetch", "chart "+ref.Name, errors.New("this service fetches no charts; upload its archive"))
	}
	c, err := a.cfg.Charts.Fetch(r.Context(), nf.ProjectOf(p.Project), ref)
	if err != nil {
		return err
	}
	p.Source = c.Source
	return a.upload(w, r, p, bytes.NewReader(c.Archive))
}
