package native

import (
	"errors"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func (ds dayTwo) scale(w http.ResponseWriter, r *http.Request) error {
	body, opts, err := readWith(ds.run, r, read[wire.Scale])
	if err != nil {
		return err
	}
	req := nf.ActRequest{Verb: nf.Scale, Force: body.Force, Options: opts}
	for _, s := range body.Workloads {
		req.Scale = append(req.Scale, nf.Scaling{Workload: s.Workload, Replicas: s.Replicas, By: s.By, Path: s.Path})
	}
	return ds.act(w, r, req)
}

func (ds dayTwo) restart(w http.ResponseWriter, r *http.Request) error {
	body, opts, err := readWith(ds.run, r, readIfAny[wire.Restart])
	if err != nil {
		return err
	}
	return ds.act(w, r, nf.ActRequest{Verb: nf.Restart, Workloads: body.Workloads, Options: opts})
}

// machines handles a verb of virtual machines.
func (ds dayTwo) machines(verb nf.Verb) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, opts, err := readWith(ds.run, r, read[wire.Machines])
		if err != nil {
			return err
		}
		return ds.act(w, r, nf.ActRequest{Verb: verb, Workloads: body.Workloads, Options: opts})
	}
}

func (ds dayTwo) heal(w http.ResponseWriter, r *http.Request) error {
	body, opts, err := readWith(ds.run, r, readIfAny[wire.Heal])
	if err != nil {
		return err
	}
	req := nf.ActRequest{Verb: nf.Heal, Pods: body.Pods, Force: body.Force, Drift: body.Drift, Options: opts}
	if req.Patience, err = durationOf("eviction_timeout", body.EvictionTimeout); err != nil {
		return err
	}
	return ds.act(w, r, req)
}

// act responds with the instance once its objects are changed, or in a dry run with
// the changes.
func (ds dayTwo) act(w http.ResponseWriter, r *http.Request, req nf.ActRequest) error {
	if ds.engine == nil {
		return nf.E(nf.Unsupported, string(req.Verb), "the instance", errors.New("actions on instances are not enabled"))
	}
	id := mux.Vars(r)["vnf_id"]
	if dryRun(r) {
		p, err := ds.engine.PreviewAct(r.Context(), id, req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := ds.engine.Act(r.Context(), id, req)
	if err != nil {
		return err
	}
	return ds.run.answerApplied(w, r, op, http.StatusOK)
}
