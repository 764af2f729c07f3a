package lifecycle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// terminateSteps returns the steps of a terminate, with the package's delete
// hooks. No hooks run if the instance has no revision in force, or if its
// objects stay.
func (w *work) terminateSteps(ctx context.Context) ([]operation.Step, error) {
	in, err := w.run.instance(ctx)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nil // the process crashed between the last step and the operation's end
	}
	if err != nil {
		return nil, operation.RecordError(err)
	}
	if in.Revision > 0 && !w.run.op().Instance.Orphan {
		w.run.plan, _, err = w.records.planInForce(ctx, in)
		if err := nf.IgnoreNotFound(err); err != nil {
			return nil, operation.RecordError(err) // a revision that is gone was deleted by an earlier attempt
		}
	}
	return w.deleteSteps(ctx)
}

// deleteSteps returns the steps that delete the instance's objects, from the last
// stage to the first, and then its records. If the objects are to stay, they
// are orphaned instead.
func (w *work) deleteSteps(ctx context.Context) ([]operation.Step, error) {
	in, err := w.run.instance(ctx)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nil // the process crashed between the last step and the operation's end
	}
	if err != nil {
		return nil, operation.RecordError(err)
	}
	back := w.giveBackSteps(in)
	in.Inventory = withoutAdopted(in)
	find, last := w.volumeSteps(in)
	out := slices.Concat(back, find, w.deletion(nf.PhaseDelete, nf.Judged(in.Inventory)), last)
	if first, last := w.hookSteps(nf.PreDelete), w.hookSteps(nf.PostDelete); w.run.op().Verb == nf.Terminate {
		out = slices.Concat(first, out, last)
	}
	if len(w.run.plan.Hooks) > 0 || slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Hook }) {
		out = append(out, w.step(nf.PhaseDeleteHookObjects, w.applier.discardAllHooks))
	}
	if w.run.op().Instance.Orphan || in.Adopted && in.Revision == 0 {
		refs := make([]nf.Ref, len(in.Inventory))
		for i, it := range in.Inventory {
			refs[i] = it.Ref
		}
		out = []operation.Step{w.step(nf.PhaseOrphan, func(ctx context.Context) error { return w.applier.orphan(ctx, refs) })}
	} else {
		later, err := w.later(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(w.deregisterSteps(nil, append(later, inForce(in), w.run.op().Instance.Target)...), out...)
	}
	release, err := w.releaseShared(ctx, in)
	if err != nil {
		return nil, err
	}
	out = append(out, release...)
	out = append(out, w.unlistSteps()...)
	return append(out, w.step(nf.PhaseReleaseNamespaces, w.namespaces.releaseNamespaces), w.step(nf.PhaseDeleteRecords, w.deleteRecords)), nil
}

// giveBackSteps returns the step that restores the objects that an instance has adopted,
// if it never had an active revision. The plan is read when the step runs, because an
// earlier attempt may have restored them and deleted the plan.
func (w *work) giveBackSteps(in nf.Instance) []operation.Step {
	if in.Revision > 0 || !slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Adopted && !it.Hook }) {
		return nil
	}
	return []operation.Step{w.step(nf.PhaseGiveBack, func(ctx context.Context) error {
		revisions, err := w.revisions(ctx) // those of retries have the same plan
		if err != nil || len(revisions) == 0 {
			return err
		}
		plan, err := w.records.loadPlan(ctx, revisions[0].Plan)
		if err != nil {
			return err
		}
		return w.applier.giveBack(ctx, formerObjects(plan, w.run.op().Subject))
	})}
}

// releaseShared returns the steps that release the networks and the volumes of an
// instance, if any of its revisions uses one.
func (w *work) releaseShared(ctx context.Context, in nf.Instance) ([]operation.Step, error) {
	revisions := []nf.Revision{inForce(in), w.run.op().Instance.Target}
	if in.Newest > 1 {
		stored, err := w.revisions(ctx)
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, stored...)
	}
	var steps []operation.Step
	for _, kind := range []struct {
		kind  nf.SubjectKind
		phase nf.Phase
	}{{nf.NetworkSubject, nf.PhaseReleaseNetworks}, {nf.VolumeSubject, nf.PhaseReleaseVolumes}} {
		if slices.ContainsFunc(usesOf(in.Region, revisions...), func(u use) bool { return u.kind == kind.kind }) {
			steps = append(steps, w.step(kind.phase, func(ctx context.Context) error { return w.shared.releaseAll(ctx, kind.kind, revisions) }))
		}
	}
	return steps, nil
}

// volumeSteps returns a removal's steps for the claims of StatefulSets: one
// that finds them, and one that follows the deletion of all else.
func (w *work) volumeSteps(in nf.Instance) (find, last []operation.Step) {
	find = w.findVolumeSteps(in.Inventory)
	switch {
	case w.run.op().Instance.Volumes:
		last = []operation.Step{w.step(nf.PhaseDeleteClaims, w.applier.deleteVolumes)}
	case slices.ContainsFunc(in.Inventory, isVolume): // an earlier attempt was to delete them
		last = []operation.Step{w.step(nf.PhaseKeepClaims, w.applier.keepVolumes)}
	}
	return find, last
}
