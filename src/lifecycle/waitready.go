package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// waitReady waits until the objects of a stage satisfy its wait policy. It fails
// as soon as one of them cannot.
func (a *applier) waitReady(ctx context.Context, stage render.Stage, apply nf.StepID) error {
	if !slices.ContainsFunc(stage.Objects, func(obj render.Planned) bool { return !obj.Shared }) {
		return nil
	}
	applied, err := a.run.attempt.ChangesOf(ctx, apply)
	if err != nil {
		return err
	}
	w := wait{wanted: nf.Current, passing: map[string]bool{}}
	for _, obj := range stage.Objects {
		if obj.Shared {
			continue // Ensure has waited for it
		}
		if obj.Wait != render.WaitApplied && (!a.run.op().Instance.NoWait || isDefinition(obj.Object)) {
			w.targets = append(w.targets, applied[0])
			w.passing[applied[0].Key()] = itemOf(0, obj.Object).Passing
		}
		applied = applied[1:]
	}
	limited, cancel := withTimeout(ctx, stage.Timeout)
	defer cancel()
	if err := a.elaborate(ctx, a.await(limited, w)); err != nil {
		return located(err, a.run.plan)
	}
	return nil
}

// unblock deletes the pod that blocks the rollout of a StatefulSet. If that is refused, the
// wait goes on, because the pod may still become ready.
func (a *applier) unblock(ctx context.Context, health nf.Health) error {
	if health.Blocker == (nf.HealPod{}) {
		return nil
	}
	if err := a.run.attempt.Held(ctx); err != nil {
		return err
	}
	change, err := a.run.cluster.Evict(ctx, a.run.op().Subject, health.Blocker, nf.HealTask{Force: true})
	switch {
	case nf.KindOf(err) == nf.Failed:
		a.warnOnce(fmt.Sprintf("%s blocks the rollout of %s: %v", health.Blocker.Ref, health.Ref, a.run.redactor.error(err)))
		return nil
	case err != nil || change.Action != nf.Deleted:
		return err
	}
	change.Message = "it was not ready, and blocked the rollout of " + health.Ref.String()
	a.run.attempt.Log().InfoContext(ctx, "pod deleted, because it blocked a rollout", "object", change.Ref.String(), "workload", health.Ref.String())
	steps := a.run.op().Steps
	before, err := a.run.attempt.ChangesOf(ctx, steps[len(steps)-1].StepID)
	if nf.IgnoreNotFound(err) != nil {
		return err
	}
	a.run.attempt.KeepChanges(append(slices.Clone(before), change))
	return a.run.attempt.Save(ctx, func(*nf.Operation) {}) // a deletion is recorded at once
}

// warnOnce adds a warning that the operation does not have yet.
func (a *applier) warnOnce(warning string) {
	a.run.attempt.Note(func(op *nf.Operation) {
		if !slices.Contains(op.Warnings, warning) {
			op.Warnings = append(op.Warnings, warning)
		}
	})
}

// wait is what await waits for: each target must have the wanted status.
type wait struct {
	targets []nf.Change
	wanted  nf.Status
	passing map[string]bool // by Ref.Key: objects whose absence means completion
	done    bool            // a target that runs to completion must have completed
}

// met reports whether a target satisfies the wait.
func (w wait) met(h nf.Health) bool {
	return h.Status == w.wanted && (!w.done || !runsToCompletion(h.Ref) || h.Done)
}

// refutes reports whether a target cannot become nf.Current, which is wanted.
func (w wait) refutes(h nf.Health) bool {
	return w.wanted == nf.Current && (h.Status == nf.StatusFailed || h.Status == nf.Absent)
}

func refutation(h nf.Health) string {
	if h.Status == nf.Absent {
		return "was deleted by another client"
	}
	return h.Message
}

// await follows the targets until each has the wanted status.
func (a *applier) await(ctx context.Context, w wait) error {
	if len(w.targets) == 0 {
		return nil
	}
	awaited := map[string]nf.Health{}
	for _, target := range w.targets {
		awaited[target.Key()] = nf.Health{Ref: target.Ref, Status: nf.Unknown}
	}
	defer a.run.attempt.Yield()()
	total, wanted, waiting := len(awaited), w.wanted, ""
	for health, err := range a.run.cluster.Watch(ctx, a.run.op().Subject, w.targets) {
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		key := health.Key()
		if w.passing[key] {
			health = nf.Item{Passing: true}.Judge(health)
		}
		switch _, known := awaited[key]; {
		case w.met(health):
			delete(awaited, key)
		case w.refutes(health):
			return nf.E(nf.Failed, "apply", "the objects", nf.Violations{{Object: health.Ref, Message: refutation(health)}})
		case known || wanted == nf.Current:
			awaited[key] = health // including an object that is no longer Current
		}
		if len(awaited) == 0 {
			a.run.attempt.Note(func(op *nf.Operation) { op.Steps[len(op.Steps)-1].Current = total })
			return nil
		}
		if err := a.unblock(ctx, health); err != nil {
			return err
		}
		if health.Status != wanted {
			waiting = health.Ref.String() + ": " + cmp.Or(health.Message, string(health.Status))
		}
		a.run.progress(total-len(awaited), total, waiting)
	}
	return a.overdue(ctx, wanted, awaited)
}
