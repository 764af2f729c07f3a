// Package native is the API of this product: /v1/cloud_regions, /v1/packages,
// /v1/vnf_instances and /v1/operations, with the nested 2018 paths of the
// founding API, the notifications that were given up, and what administers the
// service.
//
// It owns the wire forms, and turns requests into calls of the interfaces that
// it declares and their results into answers. It promises that what swagger.yaml
// describes is what it answers, that no kubeconfig and no sensitive input is ever
// part of an answer, and that the end of a request ends nothing but the wait for
// an operation.
//
// It does not know how regions, packages, instances and operations are kept or
// carried out, who may ask for what, and which requests were made before: it
// hands their keys on.
package native

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Config is what the API is made of. The interfaces of the first group are
// required.
type Config struct {
	Regions    Regions
	Packages   Packages
	Usage      Usage
	Instances  Instances
	Inspector  Inspector
	History    History
	Operations Operations
	Repairs    Repairs

	Conditions Conditions // default: how every region is doing is unknown
	Audit      Audit      // default: there is no audit log
	Vault      Vault      // default: there are no keys and no backups

	DayTwo  DayTwo      // default: instances are neither amended nor tested, and no releases adopted
	Charts  ChartSource // default: charts are uploaded, and not fetched
	Letters Letters     // default: nobody is notified of anything

	Sites          Sites          // default: this service looks after no sites
	SiteOperations SiteOperations // likewise

	Trace     func(*http.Request) string // the W3C traceparent of a request; default: as its header says
	Wait      time.Duration              // longest wait for an operation in one request; default 10 min
	Heartbeat time.Duration              // between signs of life in a stream of events; default 15 s
	Logger    *slog.Logger               // default: discard
}

// API answers the requests of the native API.
type API struct{ cfg Config }

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Regions == nil || cfg.Packages == nil || cfg.Usage == nil || cfg.Instances == nil || cfg.Inspector == nil || cfg.History == nil ||
		cfg.Operations == nil || cfg.Repairs == nil {
		return nil, errors.New("cannot make the native API: Regions, Packages, Usage, Instances, Inspector, History, Operations and Repairs are required")
	}
	if cfg.Trace == nil {
		cfg.Trace = traceparent
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
	return &API{cfg: cfg}, nil
}

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle("/v1"+path, h).Methods(method) }

	on(http.MethodPost, "/cloud_regions", a.createRegion)
	on(http.MethodGet, "/cloud_regions", a.listRegions)
	on(http.MethodGet, "/cloud_regions/{cloud_region_id}", a.getRegion)
	on(http.MethodPatch, "/cloud_regions/{cloud_region_id}", a.updateRegion)
	on(http.MethodDelete, "/cloud_regions/{cloud_region_id}", a.deleteRegion)

	on(http.MethodPost, "/packages", a.createPackage)
	on(http.MethodGet, "/packages", a.listPackages)
	on(http.MethodPut, "/packages/{csar_id}", a.putPackage)
	on(http.MethodGet, "/packages/{csar_id}", a.getPackage)
	on(http.MethodDelete, "/packages/{csar_id}", a.deletePackage)
	on(http.MethodGet, "/packages/{csar_id}/content", a.getContent)

	on(http.MethodPost, "/vnf_instances", a.createInstance)
	on(http.MethodGet, "/vnf_instances", a.listInstances)
	on(http.MethodPost, "/vnf_instances/adopt", a.adoptInstance)
	on(http.MethodGet, "/vnf_instances/{vnf_id}", a.getInstance)
	on(http.MethodPatch, "/vnf_instances/{vnf_id}", a.updateInstance)
	on(http.MethodDelete, "/vnf_instances/{vnf_id}", a.deleteInstance)

	// Before the nested paths, some of which these would be.
	on(http.MethodGet, "/vnf_instances/{vnf_id}/revisions", a.listRevisions)
	on(http.MethodGet, "/vnf_instances/{vnf_id}/revisions/{number}", a.getRevision)
	on(http.MethodPost, "/vnf_instances/{vnf_id}/rollback", a.rollBackInstance)
	on(http.MethodPut, "/vnf_instances/{vnf_id}/amendments/{amendment}", a.putAmendment)
	on(http.MethodDelete, "/vnf_instances/{vnf_id}/amendments/{amendment}", a.deleteAmendment)
	on(http.MethodPost, "/vnf_instances/{vnf_id}/tests", a.testInstance)

	on(http.MethodPost, "/vnf_instances/", a.createInstance)
	on(http.MethodGet, "/vnf_instances/{cloud_region_id}/{namespace}", a.listNested)
	on(http.MethodGet, "/vnf_instances/{cloud_region_id}/{namespace}/{vnf_id}", a.getNested)
	on(http.MethodDelete, "/vnf_instances/{cloud_region_id}/{namespace}/{vnf_id}", a.deleteNested)

	on(http.MethodGet, "/operations", a.listOperations)
	on(http.MethodGet, "/operations/{operation_id}", a.getOperation)
	on(http.MethodGet, "/operations/{operation_id}/events", a.followOperation)
	on(http.MethodPost, "/operations/{operation_id}/cancel", a.cancelOperation)
	on(http.MethodPost, "/operations/{operation_id}/retry", a.retryOperation)
	on(http.MethodPost, "/operations/{operation_id}/undo", a.undoOperation)

	on(http.MethodGet, "/notifications/dead", a.listLetters)
	on(http.MethodPost, "/notifications/dead/{letter_id}/resend", a.resendLetter)
	on(http.MethodDelete, "/notifications/dead/{letter_id}", a.discardLetter)

	a.siteRoutes(on)

	on(http.MethodGet, "/audit", a.listAudit)
	on(http.MethodGet, "/keys", a.getKeys)
	on(http.MethodPost, "/keys/reseal", a.reseal)
	on(http.MethodPost, "/backup", a.backUp)
}

// The paths of the things that answers speak of.
func regionPath(id string) string   { return "/v1/cloud_regions/" + id }
func packagePath(id string) string  { return "/v1/packages/" + id }
func instancePath(id string) string { return "/v1/vnf_instances/" + id }
