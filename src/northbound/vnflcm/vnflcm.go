package vnflcm

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

// VNFs manages VNFs. All methods return nf.NotFound for an unknown id.
type VNFs interface {
	// Create stores a VNF that is not instantiated, under a new id. Of v, the id of the
	// VNFD, Name, Description, Metadata, Project and Request are set. It returns nf.Unsupported
	// unless an enabled package has the VNFD, and nf.Conflict if another request was made
	// under the key.
	Create(ctx context.Context, v nf.VNF) (nf.VNF, error)
	// VNF returns a VNF.
	VNF(ctx context.Context, id string) (nf.VNF, error)
	// VNFsFrom yields the VNFs, sorted by id.
	VNFsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNF, error]
	// Delete deletes a VNF. It returns nf.Conflict if it is instantiated, or has an
	// occurrence that is not in a final state.
	Delete(ctx context.Context, id string) error
}

// Changes starts occurrences that instantiate a VNF, or need an instantiated one. The
// methods return nf.Conflict for another state, and nf.Busy while another occurrence is
// not in a final state.
type Changes interface {
	Instantiate(ctx context.Context, id string, r nf.InstantiateVNFRequest) (nf.Occurrence, error)
	Terminate(ctx context.Context, id string, r nf.TerminateVNFRequest) (nf.Occurrence, error)
	Scale(ctx context.Context, id string, r nf.ScaleVNFRequest) (nf.Occurrence, error)
	Heal(ctx context.Context, id string, r nf.HealVNFRequest) (nf.Occurrence, error)
}

// Modifications starts occurrences that change what a VNF is, or is connected to. The
// errors are those of Changes.
type Modifications interface {
	Modify(ctx context.Context, id string, r nf.ModifyVNFRequest) (nf.Occurrence, error)
	Connect(ctx context.Context, id string, r nf.ConnectVNFRequest) (nf.Occurrence, error)
	ChangePackage(ctx context.Context, id string, r nf.ChangeVNFPackageRequest) (nf.Occurrence, error)
}

// Occurrences returns occurrences.
type Occurrences interface {
	// Occurrence returns an occurrence, or nf.NotFound.
	Occurrence(ctx context.Context, id string) (nf.Occurrence, error)
	// OccurrencesFrom yields the occurrences, sorted by id.
	OccurrencesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Occurrence, error]
}

// Recovery decides how occurrences end. The methods return nf.NotFound for an unknown id,
// and nf.Conflict unless the state of the occurrence allows the request: FAILED_TEMP, and
// for Cancel one that is running.
type Recovery interface {
	// Retry tries the occurrence again.
	Retry(ctx context.Context, id string, key nf.RequestKey) error
	// Rollback undoes the occurrence. It returns nf.Unsupported if it has no inverse.
	Rollback(ctx context.Context, id string, key nf.RequestKey) error
	// Fail gives the occurrence up.
	Fail(ctx context.Context, id string) (nf.Occurrence, error)
	// Cancel ends the running attempt, if forceful before its current step is done.
	Cancel(ctx context.Context, id string, forceful bool) error
}

// ConnectionPoints returns the workloads that the external connection points of a flavor
// of a package belong to, by the ids of their descriptors.
type ConnectionPoints func(ctx context.Context, pkg, flavor string) (map[string]string, error)

// Connections registers the VIMs that the connections of a request describe, for VNFs of a
// project, and returns the connections with the ids of these VIMs.
type Connections func(ctx context.Context, project string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error)

// Config configures the API. VNFs, Changes, Modifications, Occurrences and Recovery are
// required.
type Config struct {
	VNFs          VNFs
	Changes       Changes
	Modifications Modifications
	Occurrences   Occurrences
	Recovery      Recovery

	ConnectionPoints ConnectionPoints           // default: descriptors have none
	Connections      Connections                // default: VIMs are registered in advance
	Trace            func(*http.Request) string // the W3C traceparent of a request; default: from its header
}

// API serves the lifecycle management of VNFs.
type API struct{ cfg Config }

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.VNFs == nil || cfg.Changes == nil || cfg.Modifications == nil || cfg.Occurrences == nil || cfg.Recovery == nil {
		return nil, errors.New("cannot create the API of VNFs: VNFs, Changes, Modifications, Occurrences and Recovery are required")
	}
	if cfg.ConnectionPoints == nil {
		cfg.ConnectionPoints = func(context.Context, string, string) (map[string]string, error) { return nil, nil }
	}
	if cfg.Connections == nil {
		cfg.Connections = func(_ context.Context, _ string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error) {
			return wanted, nil
		}
	}
	if cfg.Trace == nil {
		cfg.Trace = northbound.Traceparent
	}
	return &API{cfg}, nil
}

// edition is a version of the API.
type edition struct {
	root  string
	lists bool // it has lists in the place of maps
}

func v1() edition { return edition{root: "/vnflcm/v1", lists: true} }
func v2() edition { return edition{root: "/vnflcm/v2"} }

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	for _, e := range []edition{v1(), v2()} {
		a.routes(r, e)
		r.Handle(e.root+"/api_versions", versions(e.root, e)).Methods(http.MethodGet)
	}
	r.Handle("/vnflcm/api_versions", versions("/vnflcm", v1(), v2())).Methods(http.MethodGet)
}

func (a *API) routes(r *mux.Router, e edition) {
	on := func(method, path string, h northbound.Handler) {
		r.Handle(e.root+path, sol013.Versioned(h)).Methods(method)
	}
	const all, one, occurrence = "/vnf_instances", "/vnf_instances/{vnf_instance_id}", "/vnf_lcm_op_occs/{occurrence_id}"
	in := instances{e: e, vnfs: a.cfg.VNFs}
	on(http.MethodPost, all, in.create)
	on(http.MethodGet, all, in.list)
	on(http.MethodGet, one, in.get)
	on(http.MethodDelete, one, in.remove)
	c := changes{e: e, vnfs: a.cfg.VNFs, changes: a.cfg.Changes, modifications: a.cfg.Modifications, points: a.cfg.ConnectionPoints, connections: a.cfg.Connections, trace: a.cfg.Trace}
	on(http.MethodPatch, one, c.modify)
	on(http.MethodPost, one+"/instantiate", c.instantiate)
	on(http.MethodPost, one+"/terminate", c.terminate)
	on(http.MethodPost, one+"/scale", c.scale)
	on(http.MethodPost, one+"/heal", c.heal)
	on(http.MethodPost, one+"/change_ext_conn", c.connect)
	if !e.lists {
		on(http.MethodPost, one+"/change_vnfpkg", c.changePackage)
	}
	o := occurrences{e: e, store: a.cfg.Occurrences, recovery: a.cfg.Recovery}
	on(http.MethodGet, "/vnf_lcm_op_occs", o.list)
	on(http.MethodGet, occurrence, o.get)
	on(http.MethodPost, occurrence+"/retry", o.retry)
	on(http.MethodPost, occurrence+"/rollback", o.rollback)
	on(http.MethodPost, occurrence+"/fail", o.fail)
	// Tacker's client does not send the header Version with this request.
	r.Handle(e.root+occurrence+"/cancel", sol013.Unversioned(o.cancel)).Methods(http.MethodPost)
}

// apiVersions is an ApiVersionInformation.
type apiVersions struct {
	Prefix   string       `json:"uriPrefix"`
	Versions []apiVersion `json:"apiVersions"`
}

type apiVersion struct {
	Version    string `json:"version"`
	Deprecated bool   `json:"isDeprecated"`
}

// versions returns the handler of the versions below a prefix. A request for them needs
// no version, and one that it has is ignored.
func versions(prefix string, of ...edition) http.Handler {
	out := apiVersions{Prefix: prefix}
	for _, e := range of {
		out.Versions = append(out.Versions, apiVersion{Version: sol013.VersionOf(e.root + "/")})
	}
	return northbound.Handler(func(w http.ResponseWriter, _ *http.Request) error { return northbound.Answer(w, http.StatusOK, out) })
}

// endpoint returns the address of the service as the client of a request knows it. A
// proxy that ends TLS says so by X-Forwarded-Proto.
func endpoint(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// base returns the address of the API as the client of a request knows it.
func (e edition) base(r *http.Request) string { return endpoint(r) + e.root }

func (e edition) vnfAt(base, id string) string { return base + "/vnf_instances/" + id }

func (e edition) occurrenceAt(base, id string) string { return base + "/vnf_lcm_op_occs/" + id }
