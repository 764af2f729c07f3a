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

// API is a set of routes. Each route has a path template and methods that
// swagger.yaml describes.
type API interface {
	Routes(r *mux.Router)
}

// Config is what the shell is made of. Swagger is required.
type Config struct {
	Swagger     []byte // the OpenAPI document, in YAML
	APIs        []API
	UploadLimit int64                // bytes of an uploaded archive; default 64 MiB
	Checks      map[string]Check     // what must be well for the service to be ready, by name
	Logger      *slog.Logger         // default: discard
	Registry    *prometheus.Registry // what /metrics shows, and where the shell adds its own; default: a new one

	Access         Access   // who may come in; default: everybody, which is for the own machine
	Audit          Audit    // default: nothing is recorded
	Limit          Limit    // how often; default: as often as he likes
	Pace           Pace     // how slow
	Hosts          []string // without Access: names that a request to a loopback address may be for, beside loopback names
	ProtectMetrics bool     // with Access: /metrics takes a proof, too; Prometheus can be given one

	Routed func(r *http.Request, route string) // told which path template a request has matched; default: nobody is
}

// Check tells whether a part that the service depends on is well. It is given
// a few seconds.
type Check func(ctx context.Context) error

// MaxDocument is the size that a JSON document, or a form that stands for one,
// may have.
const MaxDocument = 1 << 20

const defaultUploadLimit = 64 << 20

func (c *Config) complete() error {
	if len(c.Swagger) == 0 {
		return errors.New("cannot make the HTTP shell: Swagger is required")
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
	c.Pace.complete()
	return nil
}

// New returns the handler of all APIs and of the service's own paths: /healthz,
// /readyz, /metrics, /swagger.yaml, /swagger.json and /docs.
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
	return &shell{next: heads(router), log: cfg.Logger, meters: meters, pace: cfg.Pace, now: time.Now}, nil
}

// newRouter returns a router that knows every path, and checks each request
// that it routes against the contract.
func newRouter(cfg Config, rules *contract) (*mux.Router, error) {
	service, err := newService(cfg, rules)
	if err != nil {
		return nil, err
	}
	// A path that is not clean is another path, so it is not found; the default
	// is a redirect.
	router, gate := mux.NewRouter().SkipClean(true), newGate(cfg)
	unrouted := strays{router: router, apis: cfg.APIs}
	router.NotFoundHandler = gate.around(Handler(unrouted.notFound))
	router.MethodNotAllowedHandler = gate.around(Handler(unrouted.notAllowed))
	router.Use(gate.around, checker{rules: rules, uploadLimit: cfg.UploadLimit}.middleware)
	for _, api := range append([]API{service}, cfg.APIs...) {
		api.Routes(router)
	}
	return router, nil
}
