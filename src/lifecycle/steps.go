package lifecycle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// work is what an operation has to do: its steps, and those that undo it.
type work struct {
	run        *run
	records    *records
	open       OpenCluster
	kept       int // revisions kept per instance
	applier    *applier
	namespaces *namespaceUser
	shared     *sharedUser
	workloads  *workloadUser
	directory  Directory // nil: none
}

// step returns a step that is the only one of its phase.
func (w *work) step(phase nf.Phase, do func(context.Context) error) operation.Step {
	return operation.Step{Step: nf.Step{StepID: nf.StepID{Phase: phase, Undo: w.run.op().Undoing}}, Recorded: isRecorded(phase), Do: do}
}

// isRecorded reports whether the record names a step of the phase before it runs: a
// hook must not run again, and the last step may end the lock of the instance.
func isRecorded(phase nf.Phase) bool {
	switch phase {
	case nf.PhaseHookDeleteOld, nf.PhaseHookCreate, nf.PhaseHookWait, nf.PhaseDeleteHookObjects, nf.PhaseDeleteTestObjects, nf.PhaseFinish, nf.PhaseDeleteRecords:
		return true
	default:
		return false
	}
}

// Steps implements operation.Work.
func (w *work) Steps(ctx context.Context) ([]operation.Step, error) {
	if err := w.Reopen(ctx); err != nil {
		return nil, err
	}
	verb := w.run.op().Verb
	if verb == nf.Terminate {
		return w.terminateSteps(ctx)
	}
	if verb == nf.Test {
		return w.testSteps(ctx)
	}
	if isCorrection(verb) {
		return w.healSteps(ctx)
	}
	if isAct(verb) {
		return w.actSteps(w.run.op().Instance.Settings), nil
	}
	var err error
	if w.run.plan, err = w.records.loadPlan(ctx, w.run.op().Instance.Target.Plan); err != nil {
		return nil, err
	}
	var in nf.Instance
	if verb != nf.Instantiate && verb != nf.Adopt {
		if in, err = w.run.instance(ctx); err != nil {
			return nil, operation.RecordError(err)
		}
		w.run.settings = retune(&w.run.plan, in, verb, w.run.op().Instance.Target.Inputs)
	}
	w.recordRevision()
	if verb == nf.Adopt {
		return []operation.Step{w.step(nf.PhaseReserve, w.reserve), w.step(nf.PhaseAdopt, w.applier.adoptObjects), w.step(nf.PhaseFinish, w.activate)}, nil
	}
	prelude, rest := w.rollout(w.run.op().Instance.Target)
	before, after := hooksAround(verb)
	first := []operation.Step{w.step(nf.PhaseReserve, w.reserve)}
	if verb == nf.Instantiate && w.run.op().Instance.Adopts != nil {
		first = append(first, w.step(nf.PhaseAdopt, w.applier.adoptObjects))
	}
	steps := slices.Concat(first, prelude, w.hookSteps(before), rest)
	if verb != nf.Instantiate {
		later, err := w.later(ctx, in)
		if err != nil {
			return nil, err
		}
		if err := w.run.allowUndone(ctx, in, later); err != nil {
			return nil, err
		}
		steps = append(steps, w.deregisterSteps(w.workloads.parents(w.run.op().Instance.Target), append(later, inForce(in))...)...)
		steps = append(steps, w.prune(outside(withoutAdopted(in), w.run.plan))...)
		if w.namespaces.hasUnused(in) {
			steps = append(steps, w.step(nf.PhaseReleaseFormer, w.namespaces.releaseUnused))
		}
	}
	steps = append(steps, w.hookSteps(after)...)
	return append(steps, w.step(nf.PhaseFinish, w.activate)), nil
}

// allowUndone allows the recreation of what the failed changes after the active revision
// were allowed to recreate, if the operation is their undoing.
func (r *run) allowUndone(ctx context.Context, in nf.Instance, later []nf.Revision) error {
	target := r.op().Instance.Target
	if in.Revision == 0 || target.Restores != in.Revision {
		return nil
	}
	for _, rev := range later {
		if rev.Number == target.Number {
			continue
		}
		if err := r.allowAs(ctx, rev.Plan); err != nil {
			return err
		}
	}
	return nil
}

// allowAs allows the recreation of what a stored plan allows to recreate. The last step of an
// earlier attempt may have deleted it.
func (r *run) allowAs(ctx context.Context, digest string) error {
	failed, err := r.records.loadPlan(ctx, digest)
	if nf.IgnoreNotFound(err) != nil {
		return err
	}
	allowRecreation(r.plan, failed)
	return nil
}

// Undoable implements operation.Undoer.
func (w *work) Undoable(ctx context.Context) (bool, error) {
	if w.run.op().Verb == nf.Test {
		return leavesTests(w.run.op()), nil
	}
	if w.run.op().OnFailure != nf.Undo || w.run.op().Verb == nf.Terminate || stays(w.run.op().Verb) {
		return false, nil
	}
	if settings := w.run.op().Instance.Settings; isAct(w.run.op().Verb) && len(reversed(settings)) == 0 {
		return false, nil
	}
	if w.run.op().Instance.NoWait && !w.run.op().Applied.IsZero() {
		// A client that asked not to wait already knows that all is applied. A
		// later failure, of a hook, must not undo that.
		return false, nil
	}
	if w.run.op().Verb == nf.Instantiate || w.run.op().Verb == nf.Adopt {
		return true, nil
	}
	in, err := w.run.instance(ctx)
	return in.Revision > 0, operation.RecordError(err)
}

// UndoSteps implements operation.Undoer: the steps delete a new
// instance, or restore the revision in force of a changed one.
func (w *work) UndoSteps(ctx context.Context) ([]operation.Step, error) {
	if err := w.Reopen(ctx); err != nil {
		return nil, err
	}
	if w.run.op().Verb == nf.Instantiate || w.run.op().Verb == nf.Adopt {
		return w.deleteSteps(ctx)
	}
	if isAct(w.run.op().Verb) {
		return w.actSteps(reversed(w.run.op().Instance.Settings)), nil
	}
	if w.run.op().Verb == nf.Test {
		return undoTestSteps(ctx, w)
	}
	in, err := w.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	previous, err := w.records.revisions.Get(ctx, revisionKey(in.ID, in.Revision))
	if err != nil {
		return nil, operation.RecordError(err)
	}
	if w.run.plan, err = w.records.loadPlan(ctx, previous.Plan); err != nil {
		return nil, err
	}
	if target := w.run.op().Instance.Target.Plan; target != previous.Plan {
		if err := w.run.allowAs(ctx, target); err != nil {
			return nil, err
		}
	}
	tune(&w.run.plan, in, nf.Rollback)
	// Undoing an upgrade is a rollback, with the package's rollback hooks.
	var first, last []operation.Step
	if w.run.op().Verb != nf.Configure {
		first, last = w.hookSteps(nf.PreRollback), w.hookSteps(nf.PostRollback)
	}
	prelude, rest := w.rollout(inForce(in))
	left := w.deregisterSteps(w.workloads.parents(inForce(in)), w.run.op().Instance.Target)
	var acquire, release []operation.Step
	if len(usesOf(in.Region, inForce(in))) > 0 { // the operation may have released them, or deleted the claim of a volume
		acquire = append(acquire, w.step(nf.PhaseReserve, func(ctx context.Context) error { return w.shared.retain(ctx, inForce(in), true) }))
	}
	if len(w.namespaces.further()) > 0 { // the operation may have left them, or failed while leaving them
		acquire = append(acquire, w.step(nf.PhaseAcquireNamespaces, w.namespaces.acquireNamespaces))
	}
	if w.namespaces.hasUnused(in) {
		release = []operation.Step{w.step(nf.PhaseReleaseFormer, w.namespaces.releaseUnused)}
	}
	steps := slices.Concat(acquire, prelude, first, rest, left, w.prune(outside(in.Inventory, w.run.plan)), release, last)
	return append(steps, w.step(nf.PhaseFinish, w.restoreRecord)), nil
}

// rollout returns the steps that apply each stage of the run's plan, register the regions
// of its Clusters, and wait for it: first the stages that precede all hooks, then the rest.
func (w *work) rollout(rev nf.Revision) (prelude, rest []operation.Step) {
	stages := w.run.plan.Stages
	for i, stage := range stages {
		last := i == len(stages)-1
		apply := w.step(nf.PhaseApply, func(ctx context.Context) error { return w.applier.apply(ctx, i, last) })
		apply.Stage, apply.Of, apply.StageName = i+1, len(stages), stage.Name
		ready := apply
		ready.Phase, ready.Do = nf.PhaseWait, func(ctx context.Context) error { return w.applier.waitReady(ctx, stage, apply.StepID) }
		all := slices.Concat([]operation.Step{apply}, w.registerSteps(rev, i), []operation.Step{ready})
		if stage.Prelude {
			prelude = append(prelude, all...)
		} else {
			rest = append(rest, all...)
		}
	}
	return prelude, rest
}

// hookSteps returns the steps that run an event's hooks, in sequence.
func (w *work) hookSteps(event nf.HookEvent) []operation.Step {
	hooks := w.run.plan.HooksOf(event)
	var out []operation.Step
	var done []nf.Ref
	for i, h := range hooks {
		ref := nf.RefOf(h.Object)
		of := func(phase nf.Phase, do func(context.Context) error) operation.Step {
			s := w.step(phase, do)
			s.Event, s.Index, s.Of, s.Ref = event, i+1, len(hooks), ref
			return s
		}
		// Each part is a separate step: after a crash, a hook that has run must not
		// run again.
		if h.Discards(render.DiscardBefore) {
			out = append(out, of(nf.PhaseHookDeleteOld, func(ctx context.Context) error { return w.applier.discardHooks(ctx, []nf.Ref{ref}) }))
		}
		made := of(nf.PhaseHookCreate, func(ctx context.Context) error { return w.applier.createHook(ctx, h) })
		out = append(out, made, of(nf.PhaseHookWait, func(ctx context.Context) error { return w.applier.awaitHook(ctx, h, made.StepID) }))
		if h.Discards(render.DiscardSuccess) {
			done = append(done, ref)
		}
	}
	if len(done) > 0 {
		s := w.step(nf.PhaseDeleteHookObjects, func(ctx context.Context) error { return w.applier.discardHooks(ctx, done) })
		s.Event = event
		out = append(out, s)
	}
	return out
}

// hooksAround returns the events of the hooks that run before and after a verb's
// steps; "" if none.
func hooksAround(verb nf.Verb) (before, after nf.HookEvent) {
	events := map[nf.Verb][2]nf.HookEvent{
		nf.Instantiate: {nf.PreInstall, nf.PostInstall},
		nf.Upgrade:     {nf.PreUpgrade, nf.PostUpgrade},
		nf.Rollback:    {nf.PreRollback, nf.PostRollback},
		nf.Terminate:   {nf.PreDelete, nf.PostDelete},
	}[verb]
	return events[0], events[1]
}

// prune returns the steps that delete items that are not in the run's plan.
func (w *work) prune(items []nf.Item) []operation.Step {
	var settle []operation.Step
	if targets := settled(w.run.plan, items); len(targets) > 0 {
		settle = []operation.Step{w.step(nf.PhaseSettle, func(ctx context.Context) error {
			return w.applier.await(ctx, wait{wanted: nf.Current, targets: targets})
		})}
	}
	return slices.Concat(settle, w.findVolumeSteps(items), w.deletion(nf.PhasePrune, items))
}

// deletion returns the steps that delete items in their order.
func (w *work) deletion(phase nf.Phase, items []nf.Item) []operation.Step {
	var out []operation.Step
	for _, b := range batchesOf(items) {
		refs, kept := b.refs()
		s := w.step(phase, func(ctx context.Context) error { return w.applier.remove(ctx, refs, kept) })
		if s.Index = b.turn; b.turn == 0 {
			s.Stage = b.stage + 1
		}
		out = append(out, s)
	}
	return out
}

// findVolumeSteps returns the step that finds the claims of StatefulSets that
// are about to be deleted, if there are any.
func (w *work) findVolumeSteps(items []nf.Item) []operation.Step {
	sets := setsOf(items)
	if len(sets) == 0 {
		return nil
	}
	return []operation.Step{w.step(nf.PhaseFindClaims, func(ctx context.Context) error { return w.applier.findVolumes(ctx, sets) })}
}
