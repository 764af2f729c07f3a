package onap

import (
	"context"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instances manages VNF instances.
type Instances interface {
	Changes
	Terminations
	Views
}

// Changes start operations, which continue without the caller. Each method
// returns nf.Busy with the id of the running operation if another one runs on
// the instance.
type Changes interface {
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
}

// Terminations terminate instances.
type Terminations interface {
	// MayTerminate returns the error that Terminate returns to a caller that may
	// not terminate the instance.
	MayTerminate(ctx context.Context, id string) error
	// Terminate starts an operation, as Changes do.
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// Views read instances.
type Views interface {
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// Instances returns all instances that the caller may see, sorted by id.
	Instances(ctx context.Context) ([]nf.Instance, error)
	// Health returns the present status of each object of an instance.
	Health(ctx context.Context, id string) ([]nf.Health, error)
}

// Live reads objects in the regions that the caller may see. The values of
// Secrets are blank.
type Live interface {
	// Objects returns the present objects of an instance, in the order of refs.
	// A missing object is nil. An object that cannot be read has only its name
	// and a status with the reason.
	Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error)
	// Find returns the objects of a region that a query selects. It returns
	// nf.Unsupported if the region does not serve the kind.
	Find(ctx context.Context, region string, q Query) ([]map[string]any, error)
	// FindOf does the same in the region of an instance. The objects may be those
	// of other instances, if the query selects them.
	FindOf(ctx context.Context, in nf.Instance, q Query) ([]map[string]any, error)
	// Hooks returns the hooks of an instance's plan, or none if it has no plan.
	Hooks(ctx context.Context, in nf.Instance) ([]PlannedHook, error)
}

// Query selects objects of a region. APIVersion and Kind are required.
type Query struct {
	APIVersion string
	Kind       string
	Namespace  string // empty: all
	Name       string // empty: all
	Labels     string // label selector; empty: all
}

// instances serves instances.
type instances struct {
	vnfs       *vnfs
	creator    *creator
	terminator *terminator
	live       Live
	strict     bool
}

func (is instances) routes(on route) {
	const all, one = "/v1/instance", "/v1/instance/{instance}"
	on(http.MethodPost, all, is.create)
	on(http.MethodGet, all, is.list)
	on(http.MethodGet, one, is.get)
	on(http.MethodDelete, one, is.remove)
}

func (is instances) create(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[instanceRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	v, _, err := is.creator.instantiate(r, req, func(s *nf.Spec) { s.AAI = nf.AAI{Writer: nf.AAIAdapter} })
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, v.response())
}

func (is instances) list(w http.ResponseWriter, r *http.Request) error {
	all, err := is.vnfs.list(r.Context())
	if err != nil {
		return fail("Listing Instances", err)
	}
	if len(all) == 0 && !is.strict {
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

func (is instances) get(w http.ResponseWriter, r *http.Request) error {
	v, err := is.vnfs.of(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	if r.URL.Query().Get("full") != "true" {
		return answer(w, http.StatusOK, v.response())
	}
	op, err := is.vnfs.latest(r.Context(), v.Instance)
	if err != nil {
		return fail("Get Instance", err)
	}
	hooks, err := hooksOf(r.Context(), is.live, v.Instance)
	if err != nil {
		return fail("Get Instance", err)
	}
	return answer(w, http.StatusOK, v.full(op, hooks))
}

func (is instances) remove(w http.ResponseWriter, r *http.Request) error {
	claims := nf.ClaimPolicy(r.URL.Query().Get("claims"))
	if claims != "" && claims != nf.ClaimsKeep && claims != nf.ClaimsDelete {
		return refuse(http.StatusBadRequest, "Error deleting instance: claims must be keep or delete")
	}
	v, err := is.vnfs.of(r)
	if err != nil {
		return fail("Error getting Instance: Get Instance", err)
	}
	if _, err := is.terminator.terminate(r, v, claims); err != nil {
		return fail("Error deleting instance", err)
	}
	w.Header().Set("Content-Type", "application/json")
	return done(w, http.StatusAccepted)
}
