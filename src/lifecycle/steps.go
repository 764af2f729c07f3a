package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// steps returns what the operation does, in order.
func (r *run) steps(ctx context.Context) ([]step, error) {
	var err error
	if r.cluster, err = r.cfg.Open(ctx, r.op.Region, nf.ProjectOf(r.op.Project)); err != nil {
		return nil, recordError(err) // it does not dial: what is unreachable is the store
	}
	switch r.op.Verb {
	case nf.Terminate:
		return r.farewell(ctx)
	case nf.Test:
		return r.trial(ctx)
	case nf.Instantiate, nf.Upgrade, nf.Rollback, nf.Configure, nf.Adopt:
	}
	if r.plan, err = r.loadPlan(ctx, r.op.Target.Plan); err != nil {
		return nil, err
	}
	if r.op.Verb == nf.Adopt {
		return []step{{"hold", r.hold}, {"take over", r.takeOver}, {"finish", r.finish}}, nil
	}
	prelude, rest := r.rollout("")
	steps := slices.Concat([]step{{"hold", r.hold}}, prelude, r.hooks("", before(r.op.Verb)), rest)
	if r.op.Verb != nf.Instantiate {
		in, err := r.instances.Get(ctx, r.op.Instance)
		if err != nil {
			return nil, recordError(err)
		}
		steps = append(steps, r.deletion("prune", outside(in.Inventory, r.plan))...)
		if r.moved(in) {
			steps = append(steps, step{"leave former namespaces", r.leaveFormer})
		}
	}
	steps = append(steps, r.hooks("", after(r.op.Verb))...)
	return append(steps, step{"finish", r.finish}), nil
}

// undoable reports whether the failed operation is to be undone: when its
// request said so, and there is something to go back to.
func (r *run) undoable(ctx context.Context) (bool, error) {
	if r.op.OnFailure != nf.Undo || r.op.Verb == nf.Terminate || r.op.Verb == nf.Test {
		return false, nil
	}
	if r.op.NoWait && !r.op.Applied.IsZero() {
		// Whoever did not want to wait has been told that everything is applied:
		// what comes after that, the hooks, must not take it away from him.
		return false, nil
	}
	if r.op.Verb == nf.Instantiate || r.op.Verb == nf.Adopt {
		return true, nil
	}
	in, err := r.instances.Get(ctx, r.op.Instance)
	return in.Revision > 0, recordError(err)
}

// undoSteps returns what takes the operation back: the removal of a new
// instance, or the former revision of a changed one.
func (r *run) undoSteps(ctx context.Context) ([]step, error) {
	var err error
	if r.cluster, err = r.cfg.Open(ctx, r.op.Region, nf.ProjectOf(r.op.Project)); err != nil {
		return nil, recordError(err) // it does not dial: what is unreachable is the store
	}
	if r.op.Verb == nf.Instantiate || r.op.Verb == nf.Adopt {
		return r.removal(ctx, "undo: ")
	}
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return nil, recordError(err)
	}
	former, err := r.revisions.Get(ctx, revisionKey(in.ID, in.Revision))
	if err != nil {
		return nil, recordError(err)
	}
	if r.plan, err = r.loadPlan(ctx, former.Plan); err != nil {
		return nil, err
	}
	// To take back an upgrade is to roll back, with what the package does for that.
	var first, last []step
	if r.op.Verb != nf.Configure {
		first, last = r.hooks("undo: ", render.PreRollback), r.hooks("undo: ", render.PostRollback)
	}
	prelude, rest := r.rollout("undo: ")
	var enter, leave []step
	if r.moved(in) {
		enter = []step{{"undo: enter namespaces", r.enterNamespaces}}
		leave = []step{{"undo: leave former namespaces", r.leaveFormer}}
	}
	steps := slices.Concat(enter, prelude, first, rest, r.deletion("undo: prune", outside(in.Inventory, r.plan)), leave, last)
	return append(steps, step{"undo: finish", r.finishUndo}), nil
}

// rollout applies and settles each stage of the run's plan: first those that
// come before any hook, then the rest.
func (r *run) rollout(prefix string) (prelude, rest []step) {
	stages := r.plan.Stages
	for i, stage := range stages {
		title := fmt.Sprintf("%d/%d %s", i+1, len(stages), stage.Name)
		apply := prefix + "apply " + title
		last := i == len(stages)-1
		pair := []step{
			{apply, func(ctx context.Context) error { return r.apply(ctx, i, last) }},
			{prefix + "settle " + title, func(ctx context.Context) error { return r.settle(ctx, stage, apply) }},
		}
		if stage.Prelude {
			prelude = append(prelude, pair...)
		} else {
			rest = append(rest, pair...)
		}
	}
	return prelude, rest
}

// farewell removes an instance, with what its package does before and after
// that. One that never came up, or whose objects stay, has no hooks to run.
func (r *run) farewell(ctx context.Context) ([]step, error) {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nil // the process died after the last step and before the operation's end
	}
	if err != nil {
		return nil, recordError(err)
	}
	if in.Revision > 0 && !r.op.Orphan {
		r.plan, _, err = r.planInForce(ctx, in)
		if err := nf.UnlessGone(err); err != nil {
			return nil, recordError(err) // and one that is gone was forgotten by an attempt before
		}
	}
	return r.removal(ctx, "")
}

// removal deletes the instance's objects from the last stage to the first, and
// then every trace of the instance.
func (r *run) removal(ctx context.Context, prefix string) ([]step, error) {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nil // the process died after the last step and before the operation's end
	}
	if err != nil {
		return nil, recordError(err)
	}
	find, last := r.volumeSteps(prefix, in)
	out := slices.Concat(find, r.deletion(prefix+"delete", lasting(in.Inventory)), last)
	if first, last := r.hooks(prefix, render.PreDelete), r.hooks(prefix, render.PostDelete); r.op.Verb == nf.Terminate {
		out = slices.Concat(first, out, last)
	}
	if len(r.plan.Hooks) > 0 || slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Hook }) {
		out = append(out, step{prefix + "clear what hooks made", r.discardAll})
	}
	if r.op.Orphan || in.Adopted && in.Revision == 0 {
		refs := make([]nf.Ref, len(in.Inventory))
		for i, it := range in.Inventory {
			refs[i] = it.Ref
		}
		out = []step{{prefix + "orphan", func(ctx context.Context) error { return r.orphan(ctx, refs) }}}
	}
	return append(out, step{prefix + "leave namespace", r.leaveNamespaces}, step{prefix + "forget", r.forget}), nil
}

// loadPlan reads a stored plan.
func (e *Engine) loadPlan(ctx context.Context, digest string) (render.Plan, error) {
	encoded, err := e.blobs.ReadAll(ctx, digest)
	if err != nil {
		return render.Plan{}, recordError(fmt.Errorf("cannot read the plan: %w", err))
	}
	plan, err := render.Decode(encoded)
	if err != nil {
		return render.Plan{}, fmt.Errorf("cannot decode the plan: %w", err)
	}
	return plan, nil
}
