package onap

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// upgrades serves changes of instances, which may move an instance to another
// region or namespace.
type upgrades struct {
	vnfs       *vnfs
	creator    *creator
	terminator *terminator
	engine     Changes
	runner     *runner
	records    Records
	newID      func() string
	logger     *slog.Logger
}

func (us upgrades) routes(on route) {
	on(http.MethodPost, "/v1/instance/{instance}/upgrade", us.upgrade)
}

func (us upgrades) upgrade(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[instanceRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	v, err := us.vnfs.of(r)
	if err != nil {
		return fail("Upgrade Instance", err)
	}
	// The release name cannot change: the names of the objects contain it.
	req.Release = v.request.Release
	req.Labels, req.Overrides = req.Labels.unmask(v.request.Labels), req.Overrides.unmask(v.request.Overrides)
	if v, err = us.upgraded(r, v, req); err != nil {
		return err
	}
	return answer(w, http.StatusCreated, v.response())
}

// upgraded changes an instance to match a request, and returns the changed
// instance.
func (us upgrades) upgraded(r *http.Request, v vnf, req instanceRequest) (vnf, error) {
	records, err := us.records.Change(r.Context(), v.Instance)
	if err != nil {
		return v, err
	}
	if err := us.settleMove(r, records, &v); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	same := req.equal(v.request) && v.State == nf.Ready
	wanted, err := us.creator.request(r, req, v.ID, nf.ProjectOf(v.Project))
	if err != nil {
		if same && nf.KindOf(err) == nf.NotFound {
			return v, nil // its package or profile was deleted, and no change is needed
		}
		return v, err
	}
	wanted.Release = v.Release
	switch {
	case same && wanted.Package == v.Package && wanted.Region == v.Region && wanted.Namespace == v.Namespace:
		return v, nil
	case wanted.Region != v.Region || wanted.Namespace != v.Namespace:
		return us.move(r, records, v, req, wanted)
	}
	op, err := us.runner.confirmed(r.Context(), us.options(r, wanted), func(ctx context.Context, opts nf.Options) (nf.Operation, error) {
		return us.engine.Upgrade(ctx, v.ID, nf.UpgradeRequest{Options: opts, Edit: func(s *nf.Spec) error {
			id, inventory, placement := s.Annotations[idAnnotation], s.AAI, s.Inputs.OOF
			*s = wanted.Spec
			s.AAI, s.Inputs.OOF = inventory, placement
			if s.Annotations = maps.Clone(wanted.Annotations); id != "" {
				s.Annotations[idAnnotation] = id
			}
			return nil
		}})
	})
	if err != nil {
		return v, refusedPackage("Upgrade Instance", err)
	}
	if op, err = us.runner.await(r.Context(), op, pruned); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	return us.replaced(r.Context(), records, v, req, op)
}

// pruned reports whether an upgrade has done everything except its post-upgrade
// hooks.
func pruned(op nf.Operation) bool {
	last := len(op.Steps) - 1
	return northbound.Applied(op) && last >= 0 && op.Steps[last].Event == nf.PostUpgrade
}

func (us upgrades) options(r *http.Request, wanted nf.InstantiateRequest) nf.Options {
	seconds := timeoutsOf(wanted.Annotations)
	return us.runner.options(r, seconds["pre-upgrade"]+seconds["post-upgrade"])
}

// replaced returns the instance after an upgrade or a move, and deletes the
// configurations of earlier generations.
func (us upgrades) replaced(ctx context.Context, records RecordWriter, v vnf, req instanceRequest, op nf.Operation) (vnf, error) {
	in, err := us.vnfs.instances.Instance(ctx, op.Subject.ID)
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	in = upgradedBy(op, in) // the record has the new revision only after the hooks
	if err := records.DeleteFormerConfigs(ctx, v.id, in.Annotations[generationAnnotation]); err != nil {
		us.logger.WarnContext(ctx, "failed to delete the previous configurations; a later scan deletes them", "instance", v.id, "error", err)
	}
	v.Instance, v.request = in, req
	return v, nil
}

// move creates the instance in its new place, points its id to the new
// instance, and terminates the old one. Repeating an interrupted request
// continues the move.
func (us upgrades) move(r *http.Request, records RecordWriter, v vnf, req instanceRequest, wanted nf.InstantiateRequest) (vnf, error) {
	ctx, fresh := r.Context(), us.newID()
	alias, err := records.Realias(ctx, v.id, func(al *bundle.Alias) error {
		if al.Coming == "" {
			al.Coming = fresh
		}
		return nil
	})
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	wanted.ID, wanted.AAI, wanted.Inputs.OOF = alias.Coming, v.AAIPolicy(), v.Inputs.OOF
	wanted.Annotations[idAnnotation] = v.id
	wanted.Inputs.Overrides[instanceIDKey] = wanted.ID // used in the label of the pods
	op, err := us.engine.Instantiate(ctx, wanted)
	if nf.KindOf(err) == nf.Exists {
		op, err = us.resume(r, records, wanted)
	}
	if err != nil {
		return v, refusedPackage("Upgrade Instance", err)
	}
	if op, err = us.runner.await(ctx, op, northbound.Applied); err != nil {
		return v, fail("Upgrade Instance", err)
	}
	alias, err = records.Realias(ctx, v.id, func(al *bundle.Alias) error {
		if al.Coming != op.Subject.ID {
			return nf.E(nf.Conflict, "move", "VNF instance "+v.id, fmt.Errorf("another request has moved it in the meantime"))
		}
		al.Leaving = append(al.Leaving, al.Engine)
		al.Engine, al.Coming = al.Coming, ""
		return nil
	})
	if err != nil {
		return v, fail("Upgrade Instance", err)
	}
	v.alias = alias
	if v, err = us.replaced(ctx, records, v, req, op); err != nil {
		return v, err
	}
	if err := us.terminator.leave(r, alias.Leaving, ""); err != nil {
		return v, fail("Upgrade Instance: it has moved, and what it was before cannot be removed", err)
	}
	return v, nil
}

// resume returns the operation of an interrupted move. If that move had another
// target and its operation has ended, resume abandons it.
func (us upgrades) resume(r *http.Request, records RecordWriter, wanted nf.InstantiateRequest) (nf.Operation, error) {
	ctx := r.Context()
	in, err := us.vnfs.instances.Instance(ctx, wanted.ID)
	if err != nil {
		return nf.Operation{}, err
	}
	if in.Region == wanted.Region && in.Namespace == wanted.Namespace && in.Annotations[requestAnnotation] == wanted.Annotations[requestAnnotation] {
		return us.runner.operations.Operation(ctx, in.LastOperation)
	}
	if in.Operation == "" {
		_, err = records.Realias(ctx, idOf(in), func(al *bundle.Alias) error {
			if al.Coming == in.ID {
				al.Coming, al.Leaving = "", append(al.Leaving, in.ID)
			}
			return nil
		})
		if err == nil {
			err = us.terminator.leave(r, []string{in.ID}, "")
		}
		if err != nil {
			return nf.Operation{}, err
		}
	}
	return nf.Operation{}, nf.E(nf.Conflict, "move", "VNF instance "+idOf(in),
		fmt.Errorf("a move to namespace %s of cloud region %s was in progress; repeat the request", in.Namespace, in.Region))
}

// settleMove cleans up after earlier moves of an instance. It terminates the
// old instances, and marks a new one that failed for termination. Sweep removes
// deleted instances from the alias, since the caller may not see all of them.
func (us upgrades) settleMove(r *http.Request, records RecordWriter, v *vnf) error {
	if err := us.terminator.leave(r, v.alias.Leaving, ""); err != nil || v.alias.Coming == "" {
		return err
	}
	coming := v.alias.Coming
	in, err := us.vnfs.instances.Instance(r.Context(), coming)
	if err != nil || in.State != nf.Broken {
		return nf.IgnoreNotFound(err)
	}
	v.alias, err = records.Realias(r.Context(), v.id, func(al *bundle.Alias) error {
		if al.Coming == coming {
			al.Coming, al.Leaving = "", append(al.Leaving, coming)
		}
		return nil
	})
	return err
}
