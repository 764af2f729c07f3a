package northbound

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
)

// API is a set of routes. swagger.yaml describes the path template and the
// methods of each route.
type API interface {
	Routes(r *mux.Router)
}

// Config configures the HTTP layer. Swagger is required.
type Config struct {
	Swagger     []byte // the OpenAPI document, in YAML
	Version     string // version of the program, for the page under /docs; default: none
	APIs        []API
	UploadLimit int64                // bytes of an uploaded archive; default 64 MiB
	Checks      map[string]Check     // readiness checks by name
	Logger      *slog.Logger         // default: discard
	Registry    *prometheus.Registry // source of /metrics, to which the layer adds its metrics; default: a new one

	Access      Access           // authentication; default: none, which is only for local use
	Audit       Audit            // default: no audit log
	Limit       Limit            // request rate; default: no limit
	SlowClients SlowClientLimits // limits for slow clients
	Hosts       []string         // without Access: host names accepted at a loopback address, in addition to loopback names

	// MayScrape decides, with Access, whether the caller in the context may read
	// /metrics. Default: every client may, without authentication.
	MayScrape func(ctx context.Context) error

	Routed func(r *http.Request, route string) // called with the path template that a request has matched; default: none
}

// Check returns an error if a part that the service depends on is not working.
// It must return within 3 seconds.
type Check func(ctx context.Context) error

// MaxDocument is the maximum size in bytes of a JSON document, or of a form
// that replaces one.
const MaxDocument = 1 << 20

const defaultUploadLimit = 64 << 20

func (c *Config) complete() error {
	if len(c.Swagger) == 0 {
		return errors.New("cannot create the HTTP handler: Swagger is required")
	}
	if c.UploadLimit == 0 {
		c.UploadLimit = defaultUploadLimit
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Routed == nil {
		c.Routed = func(*http.Request, string) {}
	}
	c.SlowClients.complete()
	return nil
}

// New returns the handler of all APIs and of the service's own paths: /healthz,
// /readyz, /metrics, /docs, to which / redirects, and the contract as /openapi.yaml and /openapi.json,
// also under its earlier names, /swagger.yaml and /swagger.json.
func New(cfg Config) (http.Handler, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	rules, err := readContract(cfg.Swagger)
	if err != nil {
		return nil, err
	}
	meters, err := newMeters(cfg.Registry)
	if err != nil {
		return nil, err
	}
	router, err := newRouter(cfg, rules)
	if err != nil {
		return nil, err
	}
	return &requestMiddleware{next: heads(router), log: cfg.Logger, meters: meters, limits: cfg.SlowClients, now: time.Now}, nil
}

// newRouter returns a router for all paths, which validates each routed request
// against the contract.
func newRouter(cfg Config, rules *contract) (*mux.Router, error) {
	service, err := newService(cfg, rules)
	if err != nil {
		return nil, err
	}
	// Do not clean paths: an unclean path is not found, instead of the default
	// redirect.
	router, auth := mux.NewRouter().SkipClean(true), newAuthMiddleware(cfg)
	unrouted := strays{router: router, apis: cfg.APIs}
	router.NotFoundHandler = auth.around(Handler(unrouted.notFound))
	router.MethodNotAllowedHandler = auth.around(Handler(unrouted.notAllowed))
	router.Use(auth.around, checker{rules: rules, uploadLimit: cfg.UploadLimit}.middleware)
	for _, api := range append([]API{service}, cfg.APIs...) {
		api.Routes(router)
	}
	return router, nil
}
