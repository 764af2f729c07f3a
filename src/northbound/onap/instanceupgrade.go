package onap

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (a *API) ledger() *bundle.Ledger { return a.cfg.Bundles.Ledger() }

func (a *API) upgradeInstance(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[instanceRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Upgrade Instance", err)
	}
	if err := a.mayChange(r, v); err != nil {
		return err
	}
	// A release keeps its name for life: everything is named after it.
	req.Release, req.Overrides = v.request.Release, req.unmask(v.request.Overrides)
	if v, err = a.upgraded(r, v, req); err != nil {
		return err
	}
	return answer(w, http.StatusCreated, v.response())
}

// upgraded makes an instance what a request wants it to be, and returns it as it
// is then.
func (a *API) upgraded(r *http.Request, v vnf, req instanceRequest) (vnf, error) {
	if err := a.settleMove(r, &v); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	same := req.equal(v.request) && v.State == nf.Ready
	wanted, err := a.instantiation(r, req, v.ID)
	if err != nil {
		if same && nf.KindOf(err) == nf.NotFound {
			return v, nil // what it was made from is gone, and nobody wants another
		}
		return v, err
	}
	wanted.Release = v.Release
	switch {
	case same && wanted.Package == v.Package && wanted.Region == v.Region && wanted.Namespace == v.Namespace:
		return v, nil
	case wanted.Region != v.Region || wanted.Namespace != v.Namespace:
		return a.move(r, v, req, wanted)
	}
	op, err := a.confirmed(r.Context(), a.upgradeOptions(r, wanted), func(ctx context.Context, opts nf.Options) (nf.Operation, error) {
		return a.cfg.Instances.Upgrade(ctx, v.ID, nf.UpgradeRequest{Options: opts, Edit: func(s *nf.Spec) error {
			id := s.Annotations[idNote]
			*s = wanted.Spec
			if s.Annotations = maps.Clone(wanted.Annotations); id != "" {
				s.Annotations[idNote] = id
			}
			return nil
		}})
	})
	if err != nil {
		return v, refusedPackage("Upgrade Instance", err)
	}
	if op, err = a.await(r.Context(), op, pruned); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	return a.replaced(r.Context(), v, req, op)
}

// pruned reports whether an upgrade has done everything but what comes after it.
func pruned(op nf.Operation) bool {
	last := len(op.Steps) - 1
	return applied(op) && last >= 0 && strings.Contains(op.Steps[last].Name, "post-upgrade")
}

func (a *API) upgradeOptions(r *http.Request, wanted nf.InstantiateRequest) nf.Options {
	seconds := timeoutsOf(wanted.Annotations)
	return a.options(r, seconds["pre-upgrade"]+seconds["post-upgrade"])
}

// replaced returns an instance that has become what was asked for, and forgets
// the configurations that it had before.
func (a *API) replaced(ctx context.Context, v vnf, req instanceRequest, op nf.Operation) (vnf, error) {
	in, err := a.cfg.Instances.Instance(ctx, op.Instance)
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	// The record speaks of the new revision when its hooks have run, too.
	in.Release, in.Annotations, in.Sensitive = op.Target.Release, op.Target.Annotations, op.Target.Sensitive
	if err := a.ledger().ForgetFormer(ctx, v.id, in.Annotations[generationNote]); err != nil {
		a.cfg.Logger.WarnContext(ctx, "former configurations are left for the sweep to forget", "instance", v.id, "error", err)
	}
	v.Instance, v.request = in, req
	return v, nil
}

// move makes an instance anew where it is wanted, lets its id mean that one, and
// removes the former. Whoever repeats a request that was cut off goes on where
// it was.
func (a *API) move(r *http.Request, v vnf, req instanceRequest, wanted nf.InstantiateRequest) (vnf, error) {
	ctx, fresh := r.Context(), a.cfg.NewID()
	alias, err := a.ledger().Realias(ctx, v.id, func(al *bundle.Alias) error {
		if al.Coming == "" {
			al.Coming = fresh
		}
		return nil
	})
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	wanted.ID = alias.Coming
	wanted.Annotations[idNote] = v.id
	wanted.Inputs.Overrides[instanceIDKey] = wanted.ID // the pods' label has it
	op, err := a.cfg.Instances.Instantiate(ctx, wanted)
	if nf.KindOf(err) == nf.Exists {
		op, err = a.resume(r, wanted)
	}
	if err != nil {
		return v, refusedPackage("Upgrade Instance", err)
	}
	if op, err = a.await(ctx, op, applied); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	alias, err = a.ledger().Realias(ctx, v.id, func(al *bundle.Alias) error {
		if al.Coming != op.Instance {
			return nf.E(nf.Conflict, "move", "VNF instance "+v.id, fmt.Errorf("another move was faster"))
		}
		al.Leaving = append(al.Leaving, al.Engine)
		al.Engine, al.Coming = al.Coming, ""
		return nil
	})
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	v.alias = alias
	if v, err = a.replaced(ctx, v, req, op); err != nil {
		return v, err
	}
	if err := a.leave(r, alias.Leaving, false); err != nil {
		return v, fail("Upgrade Instance: it has moved, and what it was before cannot be removed", err)
	}
	return v, nil
}

// resume returns the operation of a move that was cut off. One that was to
// somewhere else, and is over, is given up.
func (a *API) resume(r *http.Request, wanted nf.InstantiateRequest) (nf.Operation, error) {
	ctx := r.Context()
	in, err := a.cfg.Instances.Instance(ctx, wanted.ID)
	if err != nil {
		return nf.Operation{}, err
	}
	if in.Region == wanted.Region && in.Namespace == wanted.Namespace && in.Annotations[requestNote] == wanted.Annotations[requestNote] {
		return a.cfg.Operations.Operation(ctx, in.LastOperation)
	}
	if in.Operation == "" {
		_, err = a.ledger().Realias(ctx, idOf(in), func(al *bundle.Alias) error {
			if al.Coming == in.ID {
				al.Coming, al.Leaving = "", append(al.Leaving, in.ID)
			}
			return nil
		})
		if err == nil {
			err = a.leave(r, []string{in.ID}, false)
		}
		if err != nil {
			return nf.Operation{}, err
		}
	}
	return nf.Operation{}, nf.E(nf.Conflict, "move", "VNF instance "+idOf(in),
		fmt.Errorf("a move to namespace %s of cloud region %s was under way; repeat the request", in.Namespace, in.Region))
}

// settleMove ends what earlier moves of an instance have left: what it was is
// terminated, and what never came up is next. The sweep drops what is gone from
// the record, since the caller may not see all of it.
func (a *API) settleMove(r *http.Request, v *vnf) error {
	if err := a.leave(r, v.alias.Leaving, false); err != nil || v.alias.Coming == "" {
		return err
	}
	coming := v.alias.Coming
	in, err := a.cfg.Instances.Instance(r.Context(), coming)
	if err != nil || in.State != nf.Broken {
		return nf.UnlessGone(err)
	}
	v.alias, err = a.ledger().Realias(r.Context(), v.id, func(al *bundle.Alias) error {
		if al.Coming == coming {
			al.Coming, al.Leaving = "", append(al.Leaving, coming)
		}
		return nil
	})
	return err
}

// leave begins to terminate instances that no id means any more, with the volume
// claims of their StatefulSets if volumes is true.
func (a *API) leave(r *http.Request, engines []string, volumes bool) error {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(engines))) {
		in, err := a.cfg.Instances.Instance(r.Context(), id)
		if err == nil && in.State != nf.Terminating {
			_, err = a.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
				return a.cfg.Instances.Terminate(ctx, id, nf.TerminateRequest{Volumes: volumes, Options: nf.Options{Trace: a.cfg.Trace(r)}})
			})
		}
		if nf.UnlessGone(err) != nil {
			return err
		}
	}
	return nil
}
