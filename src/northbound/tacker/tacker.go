package tacker

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Regions manages the registered cloud regions.
type Regions interface {
	// Register probes a region, or logs in at its cloud, and stores it. It returns
	// nf.Exists, nf.Invalid, nf.Unsupported or nf.Unreachable.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// RegionsFrom yields the regions, sorted by id.
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error]
	// UpdateRegion edits a region. Edit may be called more than once.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	// RemoveRegion deregisters a region. It returns nf.Conflict while it is used.
	RemoveRegion(ctx context.Context, id string) error
}

// Conditions returns the state of regions.
type Conditions interface {
	// RegionState returns the last known state of a region, which the caller has read. It
	// does not contact the region.
	RegionState(r nf.Region) nf.RegionState
}

// Reader reads one region.
type Reader interface {
	// Region returns a region, or nf.NotFound. The audit log then has the denial if the
	// caller may not see the region.
	Region(ctx context.Context, id string) (nf.Region, error)
}

// Config configures the API. All fields are required.
type Config struct {
	Regions    Regions
	Reader     Reader
	Conditions Conditions
}

// API serves Tacker's VIMs.
type API struct{ vims vims }

var _ northbound.Strays = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Regions == nil || cfg.Reader == nil || cfg.Conditions == nil {
		return nil, errors.New("cannot create the Tacker API: Regions, Reader and Conditions are required")
	}
	return &API{vims{regions: cfg.Regions, reader: cfg.Reader, conditions: cfg.Conditions}}, nil
}

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	const all, one = "/v1.0/vims", "/v1.0/vims/{vim_id}"
	on := func(method, path string, h northbound.Handler) { r.Handle(path, handle(h)).Methods(method) }
	on(http.MethodPost, all, a.vims.create)
	on(http.MethodGet, all, a.vims.list)
	on(http.MethodGet, one, a.vims.get)
	on(http.MethodPut, one, a.vims.update)
	on(http.MethodDelete, one, a.vims.remove)
}

// Below reports whether a path is below those of Tacker's v1.0 API.
func (a *API) Below(path string) bool { return strings.HasPrefix(path, "/v1.0/") || path == "/v1.0" }

// Stray answers a request for an unknown path, or with a method that the path does not
// have, in Tacker's form.
func (a *API) Stray(w http.ResponseWriter, r *http.Request, allowed string) {
	if allowed != "" {
		writeError(w, r, &refusal{
			status: http.StatusMethodNotAllowed, name: "HTTPMethodNotAllowed",
			cause: nf.E(nf.Invalid, "answer", "the request", errors.New("only "+allowed+" is possible here")),
		})
		return
	}
	writeError(w, r, &refusal{
		status: http.StatusNotFound, name: "HTTPNotFound",
		cause: nf.E(nf.NotFound, "find", "the path", errors.New("of Tacker's v1.0 API, the service has /v1.0/vims")),
	})
}

// Formats returns a handler that accepts Tacker's paths with the suffix ".json", too,
// which its clients add.
func Formats(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, found := strings.CutSuffix(r.URL.Path, ".json"); found && strings.HasPrefix(path, "/v1.0/") {
			inner := *r // not a deep copy: nothing else changes
			address := *r.URL
			address.Path, address.RawPath = path, strings.TrimSuffix(address.RawPath, ".json")
			inner.URL = &address
			r = &inner
		}
		next.ServeHTTP(w, r)
	})
}
