package native

import (
	"context"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Instances manages VNF instances. The first three methods return an operation
// that continues without the caller.
type Instances interface {
	// Instantiate starts to create an instance.
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	// Upgrade starts to change an instance. It returns nf.Busy if another
	// operation is running.
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	// Terminate starts to delete an instance. It returns nf.Busy if another
	// operation is running.
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// InstancesFrom yields the instances of a region, or of all if it is empty, sorted by
	// id.
	InstancesFrom(ctx context.Context, region string, from nf.Cursor) iter.Seq2[nf.Instance, error]
}

// Inspector reads the state of instances in their regions. It does not change
// anything.
type Inspector interface {
	// Health returns the present status of each object of an instance.
	Health(ctx context.Context, id string) ([]nf.Health, error)
	// Pods returns the present pods of an instance.
	Pods(ctx context.Context, id string) ([]nf.Pod, error)
	// PreviewInstantiate returns what Instantiate would do, or its error.
	PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error)
	// PreviewUpgrade returns what Upgrade would do, or its error.
	PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error)
	// PreviewTerminate returns what Terminate would do, or its error.
	PreviewTerminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Preview, error)
}

// instances serves VNF instances.
type instances struct {
	store     Instances
	inspector Inspector
	healths   Healths
	drifts    Drifts
	run       runner
}

func (is instances) routes(on route) {
	const all, one = "/vnf_instances", "/vnf_instances/{vnf_id}"
	on(http.MethodPost, all, is.create)
	on(http.MethodPost, all+"/", is.create) // of the 2018 URL layout
	on(http.MethodGet, all, is.list)
	on(http.MethodGet, one, is.get)
	on(http.MethodPatch, one, is.update)
	on(http.MethodDelete, one, is.terminate)
}

func (is instances) create(w http.ResponseWriter, r *http.Request) error {
	body, opts, err := readWith(is.run, r, read[wire.InstanceCreate])
	if err != nil {
		return err
	}
	opts.Strict = body.Strict
	req, err := instantiateRequest(body, opts)
	if err != nil {
		return err
	}
	if dryRun(r) {
		req.Manifests = r.URL.Query().Get("objects") == "true"
		p, err := is.inspector.PreviewInstantiate(r.Context(), req)
		return respond(w, p, err, func(p nf.Preview) wire.Preview { return wire.PreviewOf(p).WithObjects(p.Manifests) })
	}
	op, err := is.store.Instantiate(r.Context(), req)
	if err != nil {
		return err
	}
	return is.run.answerApplied(w, r, op, http.StatusCreated)
}

func (is instances) update(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["vnf_id"]
	change, key, err := read[patch](r)
	if err != nil {
		return err
	}
	asked, err := apply(change, wire.Execution{})
	if err != nil {
		return err
	}
	opts, err := is.run.options(r, asked, key)
	if err != nil {
		return err
	}
	opts.Strict = change["strict"] == true
	req, err := upgradeRequest(change, opts)
	if err != nil {
		return err
	}
	if dryRun(r) {
		p, err := is.inspector.PreviewUpgrade(r.Context(), id, req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := is.store.Upgrade(r.Context(), id, req)
	if err != nil {
		return err
	}
	return is.run.answerApplied(w, r, op, http.StatusOK)
}

func (is instances) list(w http.ResponseWriter, r *http.Request) error {
	labels, err := selectorOf(r)
	if err != nil {
		return err
	}
	where := append(labels.equal, wanted(r, nf.AttributeRegion, nf.AttributeNamespace, nf.AttributeInstance, nf.AttributePackage, nf.AttributeState, nf.AttributeProject)...)
	healthy := is.healthFilter(r)
	page, err := paginateFrom(r, where, func(from nf.Cursor) iter.Seq2[nf.Instance, error] {
		return kept(is.store.InstancesFrom(r.Context(), r.URL.Query().Get(nf.AttributeRegion), from), func(in nf.Instance) bool {
			return labels.matches(in.Labels) && healthy(in)
		})
	}, func(in nf.Instance) string { return in.ID })
	if err != nil {
		return err
	}
	return answerPage(w, "vnf_instances", page, is.summarize)
}

func (is instances) get(w http.ResponseWriter, r *http.Request) error {
	in, err := is.store.Instance(r.Context(), mux.Vars(r)["vnf_id"])
	if err != nil {
		return err
	}
	return is.answer(w, r, in)
}

// answer responds with an instance and the health of its objects.
func (is instances) answer(w http.ResponseWriter, r *http.Request, in nf.Instance) error {
	health, err := is.inspector.Health(r.Context(), in.ID)
	switch nf.KindOf(err) {
	case nf.Unreachable, nf.Timeout:
		// The stored data is still useful while the region is unreachable.
		health = unknown(nf.Judged(in.Inventory), err.Error())
	default:
		if err != nil {
			return err
		}
	}
	out := wire.InstanceOf(in).WithObjects(health).WithObjectDrift(is.drifts.InstanceDrift(in))
	if r.URL.Query().Get("pods") == "true" && err == nil {
		pods, err := is.inspector.Pods(r.Context(), in.ID)
		if err != nil {
			return err
		}
		out.Pods = wire.List(pods, wire.PodOf)
	}
	return northbound.Answer(w, http.StatusOK, out)
}

func (is instances) terminate(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	req := nf.TerminateRequest{Orphan: query.Get("orphan") == "true", Claims: nf.ClaimPolicy(query.Get("claims"))}
	req.Cascade = query.Get("cascade") == "true"
	var asked any = req.Orphan
	if req.Claims != "" {
		asked = []any{req.Orphan, req.Claims}
	}
	if req.Cascade {
		asked = []any{asked, "cascade"}
	}
	key, err := northbound.RequestKey(r, asked)
	if err != nil {
		return err
	}
	if req.Options, err = is.run.options(r, executionOptionsOf(query), key); err != nil {
		return err
	}
	if dryRun(r) {
		p, err := is.inspector.PreviewTerminate(r.Context(), mux.Vars(r)["vnf_id"], req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := is.store.Terminate(r.Context(), mux.Vars(r)["vnf_id"], req)
	if err != nil {
		return err
	}
	op, done, err := is.run.await(w, r, op, northbound.Ended)
	switch {
	case err != nil:
		return instanceReference(op).refuse(w, r, err)
	case done:
		w.Header().Set("Location", wire.OperationPath(op.ID))
		warn(w, op.Warnings)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return northbound.Answer(w, http.StatusAccepted, wire.OperationOf(op))
}

func dryRun(r *http.Request) bool { return r.URL.Query().Get("dry_run") == "true" }
