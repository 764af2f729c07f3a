// Package native implements the native API: /v1/cloud_regions, /v1/packages,
// /v1/vnf_instances, /v1/operations, /v1/sites, /v1/networks, /v1/volumes and /v1/services, the nested paths of the 2018
// URL layout, dead letters, and the administration of the service.
//
// It converts requests to calls of the interfaces that it declares, and their
// results to the documents of package wire. It defines the documents of the
// requests.
//
// Guarantees: responses match swagger.yaml. A response never contains a
// kubeconfig or a sensitive input. The end of a request ends only the wait for
// an operation, not the operation.
//
// The package does not store or run anything and does not authorize. It passes
// on idempotency keys, but does not store them.
package native

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Config configures the API. The interfaces of the first group are required.
type Config struct {
	Regions    Regions
	Packages   Packages
	Usage      Usage
	Instances  Instances
	Inspector  Inspector
	History    History
	Operations Operations
	Repairs    Repairs
	Staging    northbound.Staging // stores uploaded archives

	Healths    Healths    // default: the health of instances is unknown
	Drifts     Drifts     // default: instances have no drift
	Conditions Conditions // default: the condition of regions is unknown
	Surveys    Surveys    // default: the capabilities of regions are unsupported
	Parents    Parents    // default: the parents of regions do not change
	Audit      Audit      // default: no audit log
	StoreAdmin StoreAdmin // default: no keys and no backups

	Configurer  Configurer  // default: no amendments, tests, actions and adoption
	Charts      ChartSource // default: charts can only be uploaded, not fetched
	DeadLetters DeadLetters // default: no notifications

	Inventory Inventory // default: A&AI is not written

	Sites          Sites          // default: no sites
	SiteOperations KindOperations // default: no sites

	Networks          Shared         // default: no networks
	NetworkOperations KindOperations // default: no networks
	Volumes           Shared         // default: no volumes
	VolumeOperations  KindOperations // default: no volumes
	Services          Services       // default: no network services
	ServiceOperations KindOperations // default: no network services
	NSDs              NSDs           // default: network services are described without one
	VNFOperations     KindOperations // default: no VNFs of SOL003
	VolumeStatus      VolumeStatus   // of a volume that the caller may read; required with Volumes

	Version   string                     // of the service, for clients; default: none
	Trace     func(*http.Request) string // the W3C traceparent of a request; default: from its header
	Wait      time.Duration              // longest wait for an operation in one request; default 10 min
	Heartbeat time.Duration              // interval of comments in an event stream; default 15 s
	Logger    *slog.Logger               // default: discard
}

// API serves the native API. Each of its parts serves one resource and registers
// its routes. The parts share three types: waiter waits for operations, runner for
// those of VNF instances, and operationPaths serves operations.
type API struct {
	regions     regions
	packages    packages
	uploads     uploads
	instances   instances
	revisions   revisions
	dayTwo      dayTwo
	nested      nested
	operations  operations
	deadLetters deadLetters
	inventory   inventory
	sites       sites
	networks    shared
	volumes     shared
	services    services
	audit       auditLog
	storeAdmin  storeAdmin
	about       about
}

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Regions == nil || cfg.Packages == nil || cfg.Usage == nil || cfg.Instances == nil || cfg.Inspector == nil || cfg.History == nil ||
		cfg.Operations == nil || cfg.Repairs == nil || cfg.Staging == nil {
		return nil, errors.New("cannot create the native API: Regions, Packages, Usage, Instances, Inspector, History, Operations, Repairs and Staging are required")
	}
	if cfg.Volumes != nil && cfg.VolumeStatus == nil {
		return nil, errors.New("cannot create the native API: VolumeStatus is required with Volumes")
	}
	if cfg.Healths == nil {
		cfg.Healths = unwatched{}
	}
	if cfg.Drifts == nil {
		cfg.Drifts = unwatched{}
	}
	if cfg.Trace == nil {
		cfg.Trace = northbound.Traceparent
	}
	if cfg.Wait == 0 {
		cfg.Wait = 10 * time.Minute
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	wait := waiter{cfg.Wait}
	run := runner{instances: cfg.Instances, operations: cfg.Operations, waiter: wait, trace: cfg.Trace}
	paths := operationPaths{heartbeat: cfg.Heartbeat, logger: cfg.Logger}
	is := instances{store: cfg.Instances, inspector: cfg.Inspector, healths: cfg.Healths, drifts: cfg.Drifts, run: run}
	return &API{
		regions:     regions{store: cfg.Regions, usage: cfg.Usage, conditions: cfg.Conditions, surveys: cfg.Surveys, parents: cfg.Parents},
		packages:    packages{store: cfg.Packages, usage: cfg.Usage},
		uploads:     uploads{store: cfg.Packages, charts: cfg.Charts, staging: cfg.Staging},
		instances:   is,
		revisions:   revisions{instances: cfg.Instances, history: cfg.History, run: run},
		dayTwo:      dayTwo{engine: cfg.Configurer, run: run},
		nested:      nested{is},
		operations:  operations{paths: paths, ledgers: ledgers{cfg.Operations, map[nf.SubjectKind]KindOperations{nf.SiteSubject: cfg.SiteOperations, nf.NetworkSubject: cfg.NetworkOperations, nf.VolumeSubject: cfg.VolumeOperations, nf.ServiceSubject: cfg.ServiceOperations, nf.VNFSubject: cfg.VNFOperations}}, repairs: cfg.Repairs, run: run},
		deadLetters: deadLetters{cfg.DeadLetters},
		inventory:   inventory{cfg.Inventory},
		sites:       sites{store: cfg.Sites, operations: cfg.SiteOperations, paths: paths, waiter: wait, trace: cfg.Trace},
		networks:    shared{form: networkForm(), store: cfg.Networks, operations: cfg.NetworkOperations, waiter: wait, trace: cfg.Trace},
		volumes:     shared{form: volumeForm(cfg.VolumeStatus), store: cfg.Volumes, operations: cfg.VolumeOperations, waiter: wait, trace: cfg.Trace},
		services:    services{store: cfg.Services, operations: cfg.ServiceOperations, nsds: cfg.NSDs, waiter: wait, trace: cfg.Trace},
		audit:       auditLog{cfg.Audit},
		storeAdmin:  storeAdmin{store: cfg.StoreAdmin, logger: cfg.Logger},
		about:       about{cfg.Version},
	}, nil
}

// route adds a path below /v1.
type route func(method, path string, h northbound.Handler)

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle("/v1"+path, h).Methods(method) }
	// Order matters: the nested paths match those of revisions, amendments and A&AI.
	for _, part := range []interface{ routes(on route) }{
		a.regions, a.packages, a.uploads, a.instances, a.revisions, a.dayTwo, a.inventory, a.nested, a.operations, a.deadLetters, a.sites, a.networks.of("network"), a.volumes.of("volume"), a.services, a.audit, a.storeAdmin, a.about,
	} {
		part.routes(on)
	}
}
