package native

import (
	"context"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Instances is what the API asks of the VNF instances. The three requests
// return an operation that goes on without the caller.
type Instances interface {
	// Instantiate accepts a new instance.
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	// Upgrade accepts a change of an instance; nf.Busy while another runs.
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	// Terminate accepts the removal of an instance; nf.Busy while another runs.
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// Instances returns every instance, ordered by id.
	Instances(ctx context.Context) ([]nf.Instance, error)
}

// Inspector is what the API asks of the regions, on behalf of instances. It
// changes nothing.
type Inspector interface {
	// Health returns the present status of each object of an instance.
	Health(ctx context.Context, id string) ([]nf.Health, error)
	// PreviewInstantiate tells what Instantiate would do, or fails as it would.
	PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error)
	// PreviewUpgrade tells what Upgrade would do, or fails as it would.
	PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error)
}

func (a *API) createInstance(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[instanceCreate](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, body.manner, key)
	if err != nil {
		return err
	}
	req, err := body.request(opts)
	if err != nil {
		return err
	}
	if dryRun(r) {
		p, err := a.cfg.Inspector.PreviewInstantiate(r.Context(), req)
		return answerPreview(w, p, err)
	}
	op, err := a.cfg.Instances.Instantiate(r.Context(), req)
	if err != nil {
		return err
	}
	return a.answerApplied(w, r, op, http.StatusCreated)
}

func (a *API) updateInstance(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["vnf_id"]
	change, key, err := read[patch](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, mannerOf(change), key)
	if err != nil {
		return err
	}
	req, err := upgradeRequest(change, opts)
	if err != nil {
		return err
	}
	if dryRun(r) {
		p, err := a.cfg.Inspector.PreviewUpgrade(r.Context(), id, req)
		return answerPreview(w, p, err)
	}
	op, err := a.cfg.Instances.Upgrade(r.Context(), id, req)
	if err != nil {
		return err
	}
	return a.answerApplied(w, r, op, http.StatusOK)
}

func (a *API) listInstances(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.Instances.Instances(r.Context())
	if err != nil {
		return err
	}
	page := paginate(r, all, func(in nf.Instance) string { return in.ID }, instanceFilter(r))
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []summary `json:"vnf_instances"`
		Next  string    `json:"next,omitempty"`
	}{each(page.items, summarize), page.next})
}

// instanceFilter returns the condition that the request's filters make.
func instanceFilter(r *http.Request) func(nf.Instance) bool {
	labels, query := labelFilter(r), r.URL.Query()
	return func(in nf.Instance) bool {
		for name, value := range map[string]string{
			"cloud_region_id": in.Region, "namespace": in.Namespace, "vnf_instance_name": in.Name,
			"csar_id": in.Package, "state": string(in.State), "project": nf.ProjectOf(in.Project),
		} {
			if query.Has(name) && query.Get(name) != value {
				return false
			}
		}
		return labels(in.Labels)
	}
}

func (a *API) getInstance(w http.ResponseWriter, r *http.Request) error {
	in, err := a.cfg.Instances.Instance(r.Context(), mux.Vars(r)["vnf_id"])
	if err != nil {
		return err
	}
	return a.answerInstance(w, r, in)
}

// answerInstance answers with an instance and the health of its objects.
func (a *API) answerInstance(w http.ResponseWriter, r *http.Request, in nf.Instance) error {
	health, err := a.cfg.Inspector.Health(r.Context(), in.ID)
	switch nf.KindOf(err) {
	case nf.Unreachable, nf.Timeout:
		// What is known is worth more when the region is away, not less.
		health = unknown(in.Inventory, err.Error())
	default:
		if err != nil {
			return err
		}
	}
	return northbound.Answer(w, http.StatusOK, fromInstance(in).with(health))
}

func (a *API) deleteInstance(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	m := manner{OnUnreachable: query.Get("on_unreachable")}
	if query.Has("timeout") {
		m.Timeout = query.Get("timeout")
	}
	req := nf.TerminateRequest{Orphan: query.Get("orphan") == "true", Volumes: query.Get("claims") == claimsDelete}
	var asked any = req.Orphan
	if req.Volumes {
		asked = []any{req.Orphan, claimsDelete}
	}
	key, err := a.key(r, asked)
	if err != nil {
		return err
	}
	if req.Options, err = a.options(r, m, key); err != nil {
		return err
	}
	op, err := a.cfg.Instances.Terminate(r.Context(), mux.Vars(r)["vnf_id"], req)
	if err != nil {
		return err
	}
	op, done, err := a.await(w, r, op, ended)
	switch {
	case err != nil:
		return refuseOperation(w, r, op, err)
	case done:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return northbound.Answer(w, http.StatusAccepted, fromOperation(op))
}

func (a *API) listNested(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.Instances.Instances(r.Context())
	if err != nil {
		return err
	}
	vars, ids := mux.Vars(r), []string{}
	for _, in := range all {
		if in.Region == vars["cloud_region_id"] && in.Namespace == vars["namespace"] {
			ids = append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return nf.E(nf.NotFound, "list", "VNF instances of namespace "+vars["namespace"]+" in cloud region "+vars["cloud_region_id"], nil)
	}
	return northbound.Answer(w, http.StatusOK, struct {
		IDs []string `json:"vnf_id_list"`
	}{ids})
}

func (a *API) getNested(w http.ResponseWriter, r *http.Request) error {
	in, err := a.nested(r)
	if err != nil {
		return err
	}
	return a.answerInstance(w, r, in)
}

// nested returns the instance of a nested path; one that is elsewhere is not
// found.
func (a *API) nested(r *http.Request) (nf.Instance, error) {
	vars := mux.Vars(r)
	in, err := a.cfg.Instances.Instance(r.Context(), vars["vnf_id"])
	if err == nil && (in.Region != vars["cloud_region_id"] || in.Namespace != vars["namespace"]) {
		err = nf.E(nf.NotFound, "get", "VNF instance "+in.ID, nil)
	}
	return in, err
}

func (a *API) deleteNested(w http.ResponseWriter, r *http.Request) error {
	in, err := a.nested(r)
	if err != nil {
		return err
	}
	op, err := a.cfg.Instances.Terminate(r.Context(), in.ID, nf.TerminateRequest{Options: nf.Options{Trace: a.cfg.Trace(r)}})
	if err != nil {
		return err
	}
	if op, _, err = a.await(w, r, op, ended); err != nil {
		return refuseOperation(w, r, op, err)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func dryRun(r *http.Request) bool { return r.URL.Query().Get("dry_run") == "true" }
