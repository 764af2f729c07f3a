package native

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Configurer runs day-2 operations on instances. Each method returns an operation
// that continues without the caller, or nf.Busy if another operation of the
// instance is running.
type Configurer interface {
	// Adopt starts to adopt a running release as an instance. It returns
	// nf.NotFound if the release does not exist, and nf.Conflict if it cannot
	// be adopted.
	Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error)
	// Configure starts to change the amendments of an instance.
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	// Test starts the tests of an instance's package. It returns nf.Conflict if
	// the package has no tests.
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
	// Act starts an action on workloads of an instance.
	Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error)
	ConfigurerPreviews
}

// ConfigurerPreviews are dry runs of day-2 operations.
type ConfigurerPreviews interface {
	// PreviewConfigure returns what Configure would do, or its error.
	PreviewConfigure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Preview, error)
	// PreviewAct returns what Act would do, or its error.
	PreviewAct(ctx context.Context, id string, req nf.ActRequest) (nf.Preview, error)
	// PreviewTest returns what Test would do, or its error.
	PreviewTest(ctx context.Context, id string, req nf.TestRequest) (nf.Preview, error)
	// PreviewAdopt returns what Adopt would do, or its error.
	PreviewAdopt(ctx context.Context, req nf.AdoptRequest) (nf.Preview, error)
}

// dayTwo serves the day-2 operations of VNF instances.
type dayTwo struct {
	engine Configurer
	run    runner
}

func (ds dayTwo) routes(on route) {
	const all, one = "/vnf_instances", "/vnf_instances/{vnf_id}"
	on(http.MethodPost, all+"/adopt", ds.adopt)
	on(http.MethodPut, one+"/amendments/{amendment}", ds.putAmendment)
	on(http.MethodDelete, one+"/amendments/{amendment}", ds.deleteAmendment)
	on(http.MethodPost, one+"/tests", ds.test)
	on(http.MethodPost, one+"/scale", ds.scale)
	on(http.MethodPost, one+"/restart", ds.restart)
	on(http.MethodPost, one+"/start", ds.machines(nf.Start))
	on(http.MethodPost, one+"/stop", ds.machines(nf.Stop))
	on(http.MethodPost, one+"/migrate", ds.machines(nf.Migrate))
	on(http.MethodPost, one+"/heal", ds.heal)
}

func (ds dayTwo) putAmendment(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[wire.AmendmentPut](r)
	if err != nil {
		return err
	}
	if err := errors.Join(refuseMask("parameters", body.Parameters), refuseMask("set", texts(body.Overrides))); err != nil {
		return err
	}
	wanted := nf.Amendment{
		Name: mux.Vars(r)["amendment"], Package: body.Package, Inputs: nf.Inputs{Parameters: body.Parameters, Overrides: body.Overrides},
	}
	return ds.configure(w, r, body.Execution, key, func(all []nf.Amendment, at int) ([]nf.Amendment, error) {
		if at < 0 {
			return append(all, wanted), nil
		}
		all[at] = wanted
		return all, nil
	})
}

func (ds dayTwo) deleteAmendment(w http.ResponseWriter, r *http.Request) error {
	key, err := northbound.RequestKey(r, nil)
	if err != nil {
		return err
	}
	name := mux.Vars(r)["amendment"]
	return ds.configure(w, r, executionOptionsOf(r.URL.Query()), key, func(all []nf.Amendment, at int) ([]nf.Amendment, error) {
		if at < 0 {
			return nil, nf.E(nf.NotFound, "remove", "amendment "+name, nil)
		}
		return slices.Delete(all, at, at+1), nil
	})
}

// configure changes the amendments of the path's instance, and responds as an
// update of the instance does. Edit receives a copy of the amendments and the
// index of the path's amendment, or -1.
func (ds dayTwo) configure(w http.ResponseWriter, r *http.Request, m wire.Execution, key nf.RequestKey, edit func(all []nf.Amendment, at int) ([]nf.Amendment, error)) error {
	if ds.engine == nil {
		return nf.E(nf.Unsupported, "configure", "the instance", errors.New("configuration of instances is not enabled"))
	}
	opts, err := ds.run.options(r, m, key)
	if err != nil {
		return err
	}
	vars := mux.Vars(r)
	req := nf.ConfigureRequest{Options: opts, Edit: func(s *nf.Spec) error {
		at := slices.IndexFunc(s.Amendments, func(am nf.Amendment) bool { return am.Name == vars["amendment"] })
		changed, err := edit(slices.Clone(s.Amendments), at)
		if err != nil {
			return err
		}
		s.Amendments = changed
		return nil
	}}
	if dryRun(r) {
		p, err := ds.engine.PreviewConfigure(r.Context(), vars["vnf_id"], req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := ds.engine.Configure(r.Context(), vars["vnf_id"], req)
	if err != nil {
		return err
	}
	return ds.run.answerApplied(w, r, op, http.StatusOK)
}

// test responds with the operation once all tests have run. A failed test is a
// result, not an error of the request.
func (ds dayTwo) test(w http.ResponseWriter, r *http.Request) error {
	if ds.engine == nil {
		return nf.E(nf.Unsupported, "test", "the instance", errors.New("tests of instances are not enabled"))
	}
	_, opts, err := readWith(ds.run, r, readIfAny[wire.Execution])
	if err != nil {
		return err
	}
	id, req := mux.Vars(r)["vnf_id"], nf.TestRequest{Options: opts}
	if dryRun(r) {
		p, err := ds.engine.PreviewTest(r.Context(), id, req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := ds.engine.Test(r.Context(), id, req)
	if err != nil {
		return err
	}
	op, done, err := ds.run.await(w, r, op, northbound.Ended)
	passed := wire.Verdict(op)
	switch {
	case err != nil && passed == nil:
		return instanceReference(op).refuse(w, r, err)
	case !done && err == nil:
		return northbound.Answer(w, http.StatusAccepted, wire.OperationOf(op))
	}
	w.Header().Set("Location", wire.OperationPath(op.ID))
	return northbound.Answer(w, http.StatusOK, wire.OperationOf(op))
}
