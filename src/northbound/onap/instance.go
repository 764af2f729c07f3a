package onap

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instances is what the API asks of the VNF instances.
type Instances interface {
	Changes
	Views
}

// Changes begin operations, which go on without the caller. Each is nf.Busy, and
// names the operation, while another runs on the instance.
type Changes interface {
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// Views tell of instances.
type Views interface {
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// Instances returns every instance that the caller may see, ordered by id.
	Instances(ctx context.Context) ([]nf.Instance, error)
	// Health returns the present status of each object of an instance.
	Health(ctx context.Context, id string) ([]nf.Health, error)
}

// Live is what the API asks of the regions. It changes nothing, and does not ask
// who may look. The values in Secrets are blank.
type Live interface {
	// Objects returns objects of an instance as they are, in the order of the
	// refs: nil for one that is not there.
	Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error)
	// Find returns the objects that a query selects, whoever they belong to;
	// nf.Unsupported for a kind that the region does not serve.
	Find(ctx context.Context, q Query) ([]map[string]any, error)
	// Hooks returns the hooks of an instance's package.
	Hooks(ctx context.Context, in nf.Instance) ([]Hook, error)
}

// Query selects objects of a region. Region, APIVersion and Kind are required.
type Query struct {
	Region     string
	APIVersion string
	Kind       string
	Namespace  string // empty: every one
	Name       string // empty: every one
	Labels     string // a label selector; empty: whatever their labels
}

func (a *API) instanceRoutes(r *mux.Router) {
	const all, one = "/v1/instance", "/v1/instance/{instance}"
	a.on(r, http.MethodPost, all, a.createInstance)
	a.on(r, http.MethodGet, all, a.listInstances)
	a.on(r, http.MethodGet, one, a.getInstance)
	a.on(r, http.MethodDelete, one, a.deleteInstance)
	a.on(r, http.MethodPost, one+"/upgrade", a.upgradeInstance)
	a.on(r, http.MethodGet, one+"/status", a.instanceStatus)
	a.on(r, http.MethodGet, one+"/query", a.queryInstance)
}

// vnf is an instance as this API knows it.
type vnf struct {
	nf.Instance

	id      string // that this API gave; that of the record is another one after a move
	alias   bundle.Alias
	request instanceRequest
}

// vnfOf reads the instance of a path, or fails with nf.NotFound. One that is
// being removed does not exist any more for ONAP's clients, and neither does one
// that was not made here.
func (a *API) vnfOf(r *http.Request) (vnf, error) {
	return a.vnf(r.Context(), mux.Vars(r)["instance"])
}

func (a *API) vnf(ctx context.Context, id string) (vnf, error) {
	gone := nf.E(nf.NotFound, "get", "VNF instance", nil)
	if nf.CheckID("", id) != nil {
		return vnf{}, gone
	}
	alias, err := a.ledger().Alias(ctx, id)
	if err != nil {
		return vnf{}, err
	}
	in, err := a.cfg.Instances.Instance(ctx, alias.Engine)
	if err != nil {
		return vnf{}, err
	}
	request, ours, err := requestOf(in)
	if err == nil && (!ours || in.State == nf.Terminating || idOf(in) != id) {
		err = gone
	}
	return vnf{Instance: in, id: id, alias: alias, request: request}, err
}

// vnfs reads the instances that this API made and that the caller may see. Of
// one that is being moved, the one that its id means is there.
func (a *API) vnfs(ctx context.Context) ([]vnf, error) {
	all, err := a.cfg.Instances.Instances(ctx)
	if err != nil {
		return nil, err
	}
	aliases, err := a.ledger().Aliases(ctx)
	if err != nil {
		return nil, err
	}
	out := []vnf{}
	for _, in := range all {
		request, ours, err := requestOf(in)
		if err != nil {
			return nil, err
		}
		id := idOf(in)
		alias, moved := aliases[id]
		if !ours || in.State == nf.Terminating || moved && alias.Engine != in.ID || !moved && id != in.ID {
			continue
		}
		if in.State == nf.Instantiating && len(in.Inventory) == 0 {
			continue // nothing has been made of it
		}
		out = append(out, vnf{Instance: in, id: id, alias: alias, request: request})
	}
	slices.SortFunc(out, func(a, b vnf) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

func (a *API) createInstance(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[instanceRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	v, _, err := a.bringUp(r, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, v.response())
}

// bringUp makes an instance, and returns it and its operation when all its
// objects have been applied.
func (a *API) bringUp(r *http.Request, req instanceRequest) (vnf, nf.Operation, error) {
	ctx, id := r.Context(), a.cfg.NewID()
	wanted, err := a.instantiation(r, req, id)
	if err != nil {
		return vnf{}, nf.Operation{}, err
	}
	op, err := a.cfg.Instances.Instantiate(ctx, wanted)
	if err != nil {
		return vnf{}, op, refusedPackage("Create Kubernetes Resources", err)
	}
	if op, err = a.await(ctx, op, applied); err != nil {
		return vnf{}, op, fail("Create Kubernetes Resources", err)
	}
	in, err := a.cfg.Instances.Instance(ctx, op.Instance)
	if err != nil {
		return vnf{}, op, fail("Get Instance", err)
	}
	return vnf{Instance: in, id: id, alias: bundle.Alias{ID: id, Engine: id}, request: req}, op, nil
}

func (a *API) listInstances(w http.ResponseWriter, r *http.Request) error {
	all, err := a.vnfs(r.Context())
	if err != nil {
		return fail("Listing Instances", err)
	}
	if len(all) == 0 && !a.cfg.Strict {
		return failAs("Listing Instances: "+noObjects+"instance", nf.E(nf.NotFound, "list", "VNF instances", nil))
	}
	query := r.URL.Query()
	same := func(name, is string) bool { return query.Get(name) == "" || query.Get(name) == is }
	out := []instanceSummary{}
	for _, v := range all {
		if same("rb-name", v.request.Definition) && same("rb-version", v.request.Version) && same("profile-name", v.request.Profile) {
			out = append(out, v.summary())
		}
	}
	return answer(w, http.StatusOK, out)
}

func (a *API) getInstance(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	if r.URL.Query().Get("full") != "true" {
		return answer(w, http.StatusOK, v.response())
	}
	op, err := a.latest(r.Context(), v.Instance)
	if err != nil {
		return fail("Get Instance", err)
	}
	hooks, err := a.cfg.Live.Hooks(r.Context(), v.Instance)
	if err != nil {
		return fail("Get Instance", err)
	}
	return answer(w, http.StatusOK, v.full(op, hooks))
}

// latest returns the operation that runs on an instance, or was the last one.
func (a *API) latest(ctx context.Context, in nf.Instance) (nf.Operation, error) {
	op, err := a.cfg.Operations.Operation(ctx, cmp.Or(in.Operation, in.LastOperation))
	if nf.KindOf(err) == nf.NotFound { // operations are kept for a while only
		return nf.Operation{}, nil
	}
	return op, err
}

func (a *API) deleteInstance(w http.ResponseWriter, r *http.Request) error {
	claims := r.URL.Query().Get("claims")
	if claims != "" && claims != "keep" && claims != "delete" {
		return refuse(http.StatusBadRequest, "Error deleting instance: claims must be keep or delete")
	}
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Error getting Instance: Get Instance", err)
	}
	if err := a.takeDown(r, v, claims == "delete"); err != nil {
		return fail("Error deleting instance", err)
	}
	w.Header().Set("Content-Type", "application/json")
	return done(w, http.StatusAccepted)
}

// takeDown begins the removal of an instance, and of what a move has left of it.
// Its tests are stopped: nobody needs to know any more. The volume claims of its
// StatefulSets go, too, if volumes is true.
func (a *API) takeDown(r *http.Request, v vnf, volumes bool) error {
	scope := nf.Scope{Project: nf.ProjectOf(v.Project), Region: v.Region}
	if err := a.cfg.Access.May(r.Context(), nf.RemoveInstance, scope, v.ID); err != nil {
		return err
	}
	if v.Operation != "" {
		op, err := a.latest(r.Context(), v.Instance)
		if err == nil && op.Verb == nf.Test && !ending(op) {
			_, err = a.cfg.Operations.Cancel(r.Context(), op.ID)
		}
		if err != nil && nf.KindOf(err) != nf.Conflict { // it has ended by itself
			return err
		}
	}
	if _, err := a.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return a.cfg.Instances.Terminate(ctx, v.ID, nf.TerminateRequest{Volumes: volumes, Options: nf.Options{Trace: a.cfg.Trace(r)}})
	}); err != nil {
		return err
	}
	leaving := v.alias.Leaving
	if v.alias.Coming != "" {
		leaving = append(slices.Clone(leaving), v.alias.Coming)
	}
	return a.leave(r, leaving, volumes)
}
