package sol003

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// key is the key of this attempt's request to the engine.
func (r *run) key() nf.RequestKey { return keyOf(r.op().ID) }

func keyOf(attempt string) nf.RequestKey { return nf.RequestKey{Client: "sol003", Key: attempt} }

// options returns the options of a request to the engine. The caller of the occurrence is
// gone by now: its VNF may use only the networks and volumes of its project, and makes only
// the cloud regions that the request has named.
func (r *run) options() nf.Options {
	return nf.Options{
		OnFailure: nf.Keep, Key: r.key(), Trace: r.record().Task.Trace, Confirm: r.record().Task.Confirm,
		MayAttach: func(_ context.Context, n nf.Network, _ bool) error { return r.own("network", n.Name, n.Project) },
		MayUse:    func(_ context.Context, v nf.Volume) error { return r.own("volume", v.Name, v.Project) },
		MayRegister: func(_ context.Context, region string) error {
			if slices.Contains(made(r.record().Task.After), region) {
				return nil
			}
			return nf.E(nf.Forbidden, "register", "cloud region "+region, errors.New("name it in additionalParams."+clustersParameter))
		},
	}
}

// own returns nf.NotFound for a resource of another project.
func (r *run) own(noun, name, project string) error {
	if nf.ProjectOf(project) == nf.ProjectOf(r.vnf.Project) {
		return nil
	}
	return nf.E(nf.NotFound, "use", noun+" "+name, nil)
}

// start begins the engine's operation of the attempt, or returns the one that an earlier
// process has begun. It returns a zero one if there is nothing to do.
func (r *run) start(ctx context.Context) (nf.Operation, error) {
	rec := r.record()
	in, err := r.engine().Instances.Instance(ctx, r.vnf.ID)
	gone := err != nil && nf.KindOf(err) == nf.NotFound
	switch {
	case err != nil && !gone:
		return nf.Operation{}, err
	case r.undoes() && gone:
		return nf.Operation{}, nil // the instantiation has left nothing
	case r.undoes():
		return r.undo(ctx, in)
	case rec.Operation == nf.OccurrenceTerminate && gone:
		return nf.Operation{}, nil
	case rec.Engine.Forward != "" && rec.Operation != nf.OccurrenceHeal && !gone:
		done, err := r.engine().Instances.Operation(ctx, rec.Engine.Forward)
		if err == nil && done.State == nf.Succeeded { // a script has failed after it
			return done, nil
		}
		return r.engine().Repairs.Retry(ctx, rec.Engine.Forward, r.options())
	}
	return r.forward(ctx)
}

// owns reports whether an attempt at the occurrence has begun an operation of the engine. The
// process may have died before it recorded the operation.
func (r *run) owns(op nf.Operation) bool {
	return slices.ContainsFunc(r.record().Attempts, func(id string) bool { return op.Request.Same(keyOf(id)) })
}

// undo begins the undo of the engine's operation. A heal has nothing to undo: the revision
// in force is applied again.
func (r *run) undo(ctx context.Context, in nf.Instance) (nf.Operation, error) {
	rec := r.record()
	last, err := r.engine().Instances.Operation(ctx, in.LastOperation)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return nf.Operation{}, err
	}
	switch {
	case last.Request.Same(r.key()): // an earlier process has begun it
		return last, nil
	case rec.Engine.Forward == "" && !r.owns(last): // a script has failed before it
		return nf.Operation{}, nil
	case rec.Engine.Undo != "" && in.LastOperation == rec.Engine.Undo:
		return r.engine().Repairs.Retry(ctx, rec.Engine.Undo, r.options())
	case rec.Operation == nf.OccurrenceHeal:
		return r.engine().Changes.Rollback(ctx, in.ID, nf.RollbackRequest{Revision: in.Revision, Options: r.options()})
	case last.State == nf.Succeeded && last.ID != rec.Engine.Forward:
		return nf.Operation{}, nil // it was undone already
	case last.State == nf.Succeeded && rec.Operation == nf.OccurrenceInstantiate: // a script has failed after it
		return r.engine().Changes.Terminate(ctx, in.ID, nf.TerminateRequest{Options: r.options()})
	case last.State == nf.Succeeded:
		return nf.Operation{}, nf.E(nf.Unsupported, "roll back", "occurrence "+rec.ID, errors.New("its script has failed after everything had changed; retry it or make it fail"))
	}
	opts := r.options()
	op, err := r.engine().Repairs.Undo(ctx, in.LastOperation, opts)
	if opts.Confirm = nf.ConfirmOf(err); opts.Confirm == "" {
		return op, err
	}
	// The request to roll back confirms that the objects of the occurrence are deleted.
	return r.engine().Repairs.Undo(ctx, in.LastOperation, opts)
}

// unconfirmed adds to an error of the engine how its deletions are confirmed.
func unconfirmed(err error) error {
	confirm := nf.ConfirmOf(err)
	if confirm == "" {
		return err
	}
	return &nf.Error{
		Kind: nf.Conflict, Op: "confirm", Subject: "the deletion of objects", Reason: nf.ReasonConfirm,
		Err: fmt.Errorf("%w; if that is wanted, repeat the request with additionalParams.%s %q", err, confirmParameter, confirm),
	}
}

// forward begins the engine's operation that carries out the occurrence.
func (r *run) forward(ctx context.Context) (nf.Operation, error) {
	rec, changes, id := r.record(), r.engine().Changes, r.vnf.ID
	after := rec.Task.After
	if rec.Operation == nf.OccurrenceScale || rec.Operation == nf.OccurrenceHeal {
		if err := restore(ctx, r); err != nil {
			return nf.Operation{}, err
		}
	}
	switch rec.Operation {
	case nf.OccurrenceInstantiate:
		zones, err := r.zoned(ctx, *after.Instantiated)
		if err != nil {
			return nf.Operation{}, err
		}
		return changes.Instantiate(ctx, nf.InstantiateRequest{
			Spec: nf.Spec{Package: after.Package, Inputs: nf.Inputs{Parameters: rec.Task.Inputs, OOF: zones}, Networks: rec.Task.Attach, Workloads: rec.Task.Workloads},
			ID:   id, Region: after.Instantiated.Region, Project: nf.ProjectOf(after.Project), Namespace: after.Instantiated.Namespace, Options: r.options(),
		})
	case nf.OccurrenceTerminate:
		if err := r.vacate(ctx); err != nil {
			return nf.Operation{}, err
		}
		return changes.Terminate(ctx, id, nf.TerminateRequest{Cascade: rec.Task.Cascade, Grace: rec.Task.Grace, Options: r.options()})
	case nf.OccurrenceScale:
		return changes.Act(ctx, id, nf.ActRequest{Verb: nf.Scale, Scale: rec.Task.Scaling, Options: r.options()})
	case nf.OccurrenceHeal:
		pods, err := r.unhealthy(ctx)
		if err != nil {
			return nf.Operation{}, err
		}
		return changes.Act(ctx, id, nf.ActRequest{Verb: nf.Heal, Pods: pods, Options: r.options()})
	default:
		op, err := changes.Upgrade(ctx, id, nf.UpgradeRequest{Options: r.options(), Edit: func(s *nf.Spec) error {
			s.Package, s.Networks = after.Running(), attached(s.Networks, rec.Task.Attach)
			if rec.Operation == nf.OccurrenceCurrentPackage {
				s.Inputs.Parameters = maps.Clone(rec.Task.Inputs)
			}
			return nil
		}})
		return op, unconfirmed(err)
	}
}

// restore applies the revision in force again, and waits for it, if an occurrence that was
// made to fail has left the instance broken: the engine scales and heals only what is whole.
func restore(ctx context.Context, r *run) error {
	in, err := r.engine().Instances.Instance(ctx, r.vnf.ID)
	if err != nil {
		return err
	}
	opts := r.options()
	opts.Key.Key += "/restore"
	last, err := r.engine().Instances.Operation(ctx, in.LastOperation)
	switch {
	case err != nil && nf.KindOf(err) != nf.NotFound:
		return err
	case last.Request.Same(opts.Key): // an earlier process has begun it
	case in.State != nf.Broken || in.Revision == 0:
		return nil
	default:
		if last, err = r.engine().Changes.Rollback(ctx, in.ID, nf.RollbackRequest{Revision: in.Revision, Options: opts}); err != nil {
			return unconfirmed(err)
		}
	}
	ended, err := r.await(ctx, last.ID)
	if err != nil {
		return err
	}
	return ended.Err()
}

// unhealthy returns the pods to replace, as "namespace/name": those of the components of
// the request, or of all. Those that do not exist are left out: the engine creates missing
// objects.
func (r *run) unhealthy(ctx context.Context) ([]string, error) {
	pods, err := r.engine().Instances.Pods(ctx, r.vnf.ID)
	if err != nil {
		return nil, err
	}
	names := r.names(ctx).matchPods(pods)
	var out []string
	for _, p := range pods {
		c, found := componentOf(p, names)
		if !found || p.Status == nf.StatusDeleting {
			continue
		}
		if wanted := r.record().Task.Heal; len(wanted) == 0 || slices.Contains(wanted, c.ID()) {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	return out, nil
}
