package onap

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Config configures the API. The fields of the first group are required.
type Config struct {
	Bundles       Bundles
	Connections   Connections
	Aliases       Aliases
	Records       Records
	Regions       Regions
	Instances     Instances
	Operations    Operations
	Live          Live
	Subscriptions Subscriptions
	Surveys       Surveys            // default: the capacity of regions is unknown
	NewID         func() string      // ids of instances and health checks: lower-case letters and digits
	Staging       northbound.Staging // stores uploaded archives

	Imports   Imports   // default: cloud regions are not imported
	Inventory Inventory // default: A&AI is not written

	Checks map[string]northbound.Check // checks behind GET /v1/healthcheck; default: none
	Strict bool                        // statuses follow the kind of the error; default: the statuses of ONAP's releases
	Wait   time.Duration               // longest wait for an operation in one request; default 10 min
	Clock  func() time.Time            // default: time.Now
	Trace  func(*http.Request) string  // the W3C traceparent of a request; default: none
	Logger *slog.Logger                // default: discard
}

// API serves ONAP's v1 API. Each of its parts serves one resource and registers
// its routes. The parts share four types: vnfs finds instances, creator and
// terminator create and terminate them, runner starts and awaits operations.
type API struct {
	strict        bool
	definitions   definitions
	profiles      profiles
	templates     templates
	connections   connections
	instances     instances
	upgrades      upgrades
	statuses      statuses
	queries       queries
	configs       configs
	testRuns      testRuns
	subscriptions subscriptions
	workloads     workloads
	capacities    capacities
	registry      registry
	checks        checks
}

// route adds a route. Errors of its handler are answered in ONAP's form.
type route func(method, path string, h northbound.Handler)

var _ northbound.Strays = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Bundles == nil || cfg.Connections == nil || cfg.Aliases == nil || cfg.Records == nil || cfg.Regions == nil || cfg.Instances == nil ||
		cfg.Operations == nil || cfg.Live == nil || cfg.Subscriptions == nil || cfg.NewID == nil || cfg.Staging == nil {
		return nil, errors.New("cannot create the ONAP API: Bundles, Connections, Aliases, Records, Regions, Instances, Operations, Live, Subscriptions, NewID and Staging are required")
	}
	if cfg.Imports == nil {
		cfg.Imports = noImports{cfg.Regions}
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
	return newAPI(cfg), nil
}

// newAPI returns the API for a complete configuration.
func newAPI(cfg Config) *API {
	received := archives{cfg.Staging}
	n := &runner{operations: cfg.Operations, longest: cfg.Wait, trace: cfg.Trace}
	vs := &vnfs{instances: cfg.Instances, operations: cfg.Operations, aliases: cfg.Aliases}
	c := &creator{vnfs: vs, bundles: cfg.Bundles, imports: cfg.Imports, engine: cfg.Instances, runner: n, newID: cfg.NewID}
	t := &terminator{vnfs: vs, engine: cfg.Instances, runner: n}
	return &API{
		strict:      cfg.Strict,
		definitions: definitions{bundles: cfg.Bundles, archives: received, strict: cfg.Strict},
		profiles:    profiles{bundles: cfg.Bundles, archives: received, strict: cfg.Strict},
		templates:   templates{bundles: cfg.Bundles, archives: received, strict: cfg.Strict},
		connections: connections{
			regions: cfg.Regions, stored: cfg.Connections, instances: cfg.Instances, operations: cfg.Operations, longest: cfg.Wait,
		},
		instances: instances{vnfs: vs, creator: c, terminator: t, live: cfg.Live, strict: cfg.Strict},
		upgrades: upgrades{
			vnfs: vs, creator: c, terminator: t, engine: cfg.Instances, runner: n, records: cfg.Records, newID: cfg.NewID, logger: cfg.Logger,
		},
		statuses: statuses{vnfs: vs, live: cfg.Live},
		queries:  queries{vnfs: vs, regions: cfg.Regions, live: cfg.Live},
		configs: configs{
			vnfs: vs, records: cfg.Records,
			changes: configChanges{bundles: cfg.Bundles, engine: cfg.Instances, runner: n, clock: cfg.Clock},
		},
		testRuns: testRuns{
			vnfs: vs, engine: cfg.Instances, runner: n, live: cfg.Live, records: cfg.Records, newID: cfg.NewID, clock: cfg.Clock,
		},
		subscriptions: subscriptions{vnfs: vs, store: cfg.Subscriptions, strict: cfg.Strict},
		workloads:     workloads{vnfs: vs, creator: c, terminator: t, inventory: cfg.Inventory, clock: cfg.Clock},
		capacities:    capacities{cfg.Surveys},
		registry:      registry{regions: cfg.Regions, imports: cfg.Imports},
		checks:        checks{cfg.Checks, cfg.Logger},
	}
}

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle(path, handle(h, a.strict)).Methods(method) }
	for _, part := range []interface{ routes(on route) }{
		a.definitions, a.profiles, a.templates, a.connections, a.instances, a.upgrades, a.statuses, a.queries, a.configs, a.testRuns, a.checks,
		a.subscriptions, a.workloads, a.capacities, a.registry,
	} {
		part.routes(on)
	}
}

// Below reports whether a path is below the paths of ONAP's API.
func (a *API) Below(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(segments) > 2 && (slices.Contains([]string{"infra_workload", "capacity_check"}, segments[2]) || segments[2] == "registry" && len(segments) == 3 && segments[0] != "v1") {
		return true
	}
	return len(segments) > 1 && segments[0] == "v1" &&
		slices.Contains([]string{"rb", "connectivity-info", "instance", "query", "healthcheck"}, segments[1])
}

// Stray answers as ONAP's router does: a line of text for an unknown path, and
// no body for a method that the path does not have.
func (a *API) Stray(w http.ResponseWriter, r *http.Request, allowed string) {
	if allowed != "" {
		writeError(w, r, &refusal{
			status: http.StatusMethodNotAllowed, strict: http.StatusMethodNotAllowed,
			cause: nf.E(nf.Invalid, "answer", "the request", errors.New("only "+allowed+" is possible here")),
		}, a.strict)
		return
	}
	writeError(w, r, &refusal{
		status: http.StatusNotFound, strict: http.StatusNotFound, text: "404 page not found",
		cause: nf.E(nf.NotFound, "find", "the path", nil),
	}, a.strict)
}
