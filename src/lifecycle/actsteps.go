package lifecycle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// actSteps returns the steps that set fields of objects, and wait until the objects
// are ready.
func (w *work) actSteps(settings []nf.Setting) []operation.Step {
	set := w.step(nf.PhaseSet, func(ctx context.Context) error { return w.applier.set(ctx, settings) })
	ready := w.step(nf.PhaseWait, func(ctx context.Context) error { return w.applier.waitSet(ctx, set.StepID, settings) })
	return []operation.Step{set, ready, w.step(nf.PhaseFinish, w.finishAct)}
}

// set sets fields of objects. An object that does not exist is not an error.
func (a *applier) set(ctx context.Context, settings []nf.Setting) error {
	changes, err := a.run.cluster.Set(ctx, a.run.op().Subject, settings, false)
	a.run.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	a.run.counted(len(settings), len(changes), len(changes))
	if a.run.op().Undoing {
		return nil
	}
	now := a.run.attempt.Now()
	return a.run.attempt.Save(ctx, func(op *nf.Operation) { op.Applied = now }) // a client waits for it
}

// waitSet waits until the objects that a step has set are ready; a virtual machine that
// restarts, after its former instance is gone.
func (a *applier) waitSet(ctx context.Context, step nf.StepID, settings []nf.Setting) error {
	changes, err := a.run.attempt.ChangesOf(ctx, step)
	if err != nil {
		return err
	}
	var former, restarted []nf.Change
	for _, c := range changes {
		if c.Action == nf.Deleted {
			former = append(former, c)
		}
	}
	if len(former) == 0 || a.run.op().Instance.NoWait {
		return a.waitChanged(ctx, step)
	}
	if err := a.await(ctx, wait{wanted: nf.Absent, targets: former}); err != nil {
		return err
	}
	for _, s := range settings {
		if s.Machine == nf.Restart {
			restarted = append(restarted, nf.Change{Ref: s.Ref, Action: nf.Unchanged})
		}
	}
	others := slices.DeleteFunc(slices.Clone(changes), func(c nf.Change) bool { return c.Action == nf.Deleted })
	return a.elaborate(ctx, a.await(ctx, wait{wanted: nf.Current, targets: append(others, restarted...)}))
}

// finishAct records the fields that were set, and unlocks the instance.
func (w *work) finishAct(context.Context) error {
	op := w.run.op()
	if op.Undoing {
		why := nf.Textf("%s was undone: %s", op.Verb, op.Failure.Said())
		w.run.unlock(func(in *nf.Instance) {
			if op.Instance.Repeats != "" { // the operation that it repeats has left its settings
				in.Settings = nf.MergeSettings(in.Settings, reversed(op.Instance.Settings))
			}
			in.Become(nf.Ready, why.Message, why.Mentions...)
		})
		return nil
	}
	w.run.unlock(func(in *nf.Instance) {
		in.Settings = nf.MergeSettings(in.Settings, op.Instance.Settings)
		in.Corrections = nil // as after any change
		in.Become(nf.Ready, "")
	})
	return nil
}

// acted reports whether an operation may have set fields that its end must record.
func acted(op nf.Operation) bool {
	return slices.ContainsFunc(op.Steps, func(s nf.Step) bool { return s.Phase == nf.PhaseSet })
}
