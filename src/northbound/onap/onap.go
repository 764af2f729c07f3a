package onap

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Config is what the API is made of. The fields of the first group are
// required.
type Config struct {
	Bundles       *bundle.Bundles
	Access        Access
	Regions       Regions
	Instances     Instances
	Operations    Operations
	Live          Live
	Subscriptions Subscriptions
	NewID         func() string // ids of instances and health checks: lower-case letters and digits

	Checks      map[string]northbound.Check // what GET /v1/healthcheck asks; default: nothing
	Strict      bool                        // statuses say what is wrong; default: those that released clients know
	UploadLimit int64                       // bytes of an uploaded archive; default 64 MiB
	Wait        time.Duration               // longest wait for an operation in one request; default 10 min
	Clock       func() time.Time            // default: time.Now
	Trace       func(*http.Request) string  // the W3C traceparent of a request; default: none
	Logger      *slog.Logger                // default: discard
}

// Access decides what the caller in the context may do.
type Access interface {
	// May returns nil, nf.Forbidden or nf.Unauthenticated. The subjects are ids,
	// for the audit.
	May(ctx context.Context, p nf.Permission, s nf.Scope, subjects ...string) error
}

// API answers the requests of ONAP's v1 API.
type API struct{ cfg Config }

var _ northbound.Strays = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Bundles == nil || cfg.Access == nil || cfg.Regions == nil || cfg.Instances == nil || cfg.Operations == nil ||
		cfg.Live == nil || cfg.Subscriptions == nil || cfg.NewID == nil {
		return nil, errors.New("cannot make the ONAP API: Bundles, Access, Regions, Instances, Operations, Live, Subscriptions and NewID are required")
	}
	if cfg.UploadLimit == 0 {
		cfg.UploadLimit = 64 << 20
	}
	if cfg.Wait == 0 {
		cfg.Wait = 10 * time.Minute
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Trace == nil {
		cfg.Trace = func(*http.Request) string { return "" }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &API{cfg: cfg}, nil
}

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	a.definitionRoutes(r)
	a.profileRoutes(r)
	a.templateRoutes(r)
	a.connectionRoutes(r)
	a.instanceRoutes(r)
	a.configRoutes(r)
	a.healthRoutes(r)
	a.subscriptionRoutes(r)
	a.queryRoutes(r)
	a.brokerRoutes(r)
}

// Below reports whether a path is below the paths of ONAP's API.
func (a *API) Below(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(segments) > 2 && segments[2] == "infra_workload" {
		return true
	}
	return len(segments) > 1 && segments[0] == "v1" &&
		slices.Contains([]string{"rb", "connectivity-info", "instance", "query", "healthcheck"}, segments[1])
}

// Stray answers as ONAP's router does: a line of text for a path that does not
// exist, and no body for a method that a path does not have.
func (a *API) Stray(w http.ResponseWriter, r *http.Request, allowed string) {
	if allowed != "" {
		a.tell(w, r, &refusal{
			status: http.StatusMethodNotAllowed, strict: http.StatusMethodNotAllowed,
			cause: nf.E(nf.Invalid, "answer", "the request", errors.New("only "+allowed+" is possible here")),
		})
		return
	}
	a.tell(w, r, &refusal{
		status: http.StatusNotFound, strict: http.StatusNotFound, text: "404 page not found",
		cause: nf.E(nf.NotFound, "find", "the path", nil),
	})
}

// on adds a route. Its handler's errors are told in ONAP's words.
func (a *API) on(r *mux.Router, method, path string, h northbound.Handler) {
	r.Handle(path, a.handle(h)).Methods(method)
}

// readBundle and writeBundle ask for the permission to look at resource bundles
// and to change them: they belong to no region, and to the default project.
func (a *API) readBundle(r *http.Request, names ...string) error {
	return a.cfg.Access.May(r.Context(), nf.ReadPackage, bundleScope(), ids(names)...)
}

func (a *API) writeBundle(r *http.Request, names ...string) error {
	return a.cfg.Access.May(r.Context(), nf.WritePackage, bundleScope(), ids(names)...)
}

func bundleScope() nf.Scope { return nf.Scope{Project: nf.DefaultProject} }

// ids leaves out the names that an audit does not take.
func ids(names []string) []string {
	var out []string
	for _, name := range names {
		if nf.CheckID("", name) == nil {
			out = append(out, name)
		}
	}
	return out
}
