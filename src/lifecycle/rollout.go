package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// apply writes the objects of a stage into the inventory, and then into the
// region: a crash in between leaves nothing that nobody knows of.
func (r *run) apply(ctx context.Context, index int, last bool) error {
	var wanted, shared []*unstructured.Unstructured
	var items []nf.Item
	for _, obj := range r.plan.Stages[index].Objects {
		if obj.Shared {
			shared = append(shared, obj.Object)
			continue
		}
		it := itemOf(index, obj.Object)
		it.Keep = obj.Keep
		wanted, items = append(wanted, obj.Object), append(items, it)
	}
	if err := r.share(ctx, shared); err != nil {
		return err
	}
	if _, err := r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
		if in.Operation != r.op.ID || in.Claim != r.job.token {
			return errTaken
		}
		in.Inventory = merge(in.Inventory, items)
		return nil
	}); err != nil {
		return recordError(err)
	}
	if len(wanted) == 0 {
		return nil
	}
	changes, err := r.bring(ctx, index, wanted)
	if kept := r.keepChanges(ctx, changes); err == nil {
		err = kept
	}
	if err != nil {
		return located(err, r.plan)
	}
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current, step.Changes = len(wanted), len(wanted), len(changes)
		if last && !op.Undoing {
			op.Applied = r.now()
		}
	})
	return nil
}

// share makes what the instance needs and does not own.
func (r *run) share(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	changes, err := r.cluster.Ensure(ctx, objects)
	for _, c := range changes {
		r.log.InfoContext(ctx, "object that is shared is there", "object", c.Ref.String(), "action", c.Action)
	}
	return located(err, r.plan)
}

// bring applies the objects of a stage. One that is refused because a field of
// it cannot be changed is deleted and made again, if its package says that it
// may be.
func (r *run) bring(ctx context.Context, index int, wanted []*unstructured.Unstructured) ([]nf.Change, error) {
	done := map[string]nf.Action{} // by Ref.Key, in all attempts together
	for {
		changes, err := r.cluster.Apply(ctx, r.op.Instance, wanted)
		for i, c := range changes {
			if before := done[c.Key()]; before == nf.Recreated || before != "" && c.Action == nf.Unchanged {
				changes[i].Action = before
			}
			done[c.Key()] = changes[i].Action
		}
		ref, ok := replaceable(r.plan.Stages[index].Objects, err)
		if !ok || done[ref.Key()] == nf.Recreated {
			return changes, err
		}
		done[ref.Key()] = nf.Recreated
		r.log.InfoContext(ctx, "object is made again, because a field cannot be changed", "object", ref.String())
		gone, err := r.cluster.Delete(ctx, r.op.Instance, []nf.Ref{ref})
		if err == nil {
			err = r.await(ctx, wait{wanted: nf.Absent, targets: gone})
		}
		if err != nil {
			return changes, err
		}
	}
}

// replaceable returns the object that an error refuses to change, if its package
// lets it be made again.
func replaceable(objects []render.Planned, err error) (nf.Ref, bool) {
	if nf.ReasonOf(err) != reasonImmutable {
		return nf.Ref{}, false
	}
	for _, v := range nf.ViolationsOf(err) {
		for _, obj := range objects {
			if ref := refOf(obj.Object); obj.Recreate && ref.Key() == v.Object.Key() {
				return ref, true
			}
		}
	}
	return nf.Ref{}, false
}

// reasonImmutable is the reason of a Conflict with an object's own fields, which
// the API server does not let change.
const reasonImmutable = "immutable"

// keepChanges records what the current step did to objects.
func (r *run) keepChanges(ctx context.Context, changes []nf.Change) error {
	if len(changes) == 0 {
		return nil
	}
	// The step has acted: what it did is recorded even when its time is up.
	return recordError(r.changes.Put(context.WithoutCancel(ctx), r.changesKey(r.current()), changes))
}

func (r *run) changesKey(step string) string {
	at := slices.IndexFunc(r.op.Steps, func(s nf.Step) bool { return s.Name == step })
	return changesKey(r.op.ID, at)
}

func changesKey(operation string, step int) string { return fmt.Sprintf("%s/%04d", operation, step) }

// settle waits until the objects of a stage are as its wait policy demands, and
// fails as soon as one of them cannot become so.
func (r *run) settle(ctx context.Context, stage render.Stage, apply string) error {
	if !slices.ContainsFunc(stage.Objects, func(obj render.Planned) bool { return !obj.Shared }) {
		return nil
	}
	applied, err := r.changes.Get(ctx, r.changesKey(apply))
	if err != nil {
		return recordError(err)
	}
	w := wait{wanted: nf.Current, passing: map[string]bool{}}
	for _, obj := range stage.Objects {
		if obj.Shared {
			continue // it was waited for when it was made
		}
		if obj.Wait != render.WaitApplied && (!r.op.NoWait || definition(obj.Object)) {
			w.targets = append(w.targets, applied[0])
			w.passing[applied[0].Key()] = itemOf(0, obj.Object).Passing
		}
		applied = applied[1:]
	}
	limited, cancel := withTimeout(ctx, stage.Timeout)
	defer cancel()
	if err := r.elaborate(ctx, r.await(limited, w)); err != nil {
		return located(err, r.plan)
	}
	return nil
}

// wait is what await waits for: that each target has the wanted status.
type wait struct {
	targets []nf.Change
	wanted  nf.Status
	passing map[string]bool // by Ref.Key: those whose absence means that they are done
	done    bool            // a target that has work to do counts when it has done it
}

// met reports whether a target has what is waited for.
func (w wait) met(h nf.Health) bool {
	return h.Status == w.wanted && (!w.done || !works(h.Ref) || h.Done)
}

// await follows the targets until each has the wanted status.
func (r *run) await(ctx context.Context, w wait) error {
	if len(w.targets) == 0 {
		return nil
	}
	awaited := map[string]nf.Health{}
	for _, target := range w.targets {
		awaited[target.Key()] = nf.Health{Ref: target.Ref, Status: nf.Unknown}
	}
	// Whoever waits leaves his place to those who act.
	r.queue.give(r.job.region)
	defer r.queue.regain(r.job.region)
	total, wanted, waiting := len(awaited), w.wanted, ""
	for health, err := range r.cluster.Watch(ctx, r.op.Instance, w.targets) {
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		key := health.Key()
		if w.passing[key] {
			health = passed(health)
		}
		switch _, known := awaited[key]; {
		case w.met(health):
			delete(awaited, key)
		case health.Status == nf.StatusFailed && wanted == nf.Current:
			return nf.E(nf.Failed, "bring up", "the objects", nf.Violations{{Object: health.Ref, Message: health.Message}})
		case health.Status == nf.Absent && wanted == nf.Current:
			return nf.E(nf.Failed, "bring up", "the objects", nf.Violations{{Object: health.Ref, Message: "has been deleted by somebody else"}})
		case known || wanted == nf.Current:
			awaited[key] = health // also one that was Current and is no longer
		}
		if len(awaited) == 0 {
			r.note(func(op *nf.Operation) { op.Steps[len(op.Steps)-1].Current = total })
			return nil
		}
		if health.Status != wanted {
			waiting = health.Ref.String() + ": " + cmp.Or(health.Message, string(health.Status))
		}
		r.progress(total-len(awaited), total, waiting)
	}
	return r.overdue(ctx, wanted, awaited)
}

// deletion deletes items, from the last stage to the first: one stage must be
// gone before the one that it was built on goes.
func (r *run) deletion(verb string, items []nf.Item) []step {
	var out []step
	for _, stage := range slices.Backward(stagesOf(items)) {
		refs, kept := refsOf(items, stage)
		out = append(out, step{fmt.Sprintf("%s stage %d", verb, stage+1), func(ctx context.Context) error {
			return r.remove(ctx, refs, kept)
		}})
	}
	return out
}

// remove deletes objects and waits until they are gone; those that are to be
// kept are let go of. So are objects that have become somebody else's. The
// instance's namespace is not for it to delete, whoever brought it: others may
// live there.
func (r *run) remove(ctx context.Context, refs, keep []nf.Ref) error {
	refs = slices.DeleteFunc(slices.Clone(refs), isNamespace)
	if len(refs)+len(keep) == 0 {
		return nil
	}
	var changes []nf.Change
	var err error
	if len(keep) > 0 {
		changes, err = r.cluster.Orphan(ctx, r.op.Instance, keep)
	}
	if err == nil && len(refs) > 0 {
		var deleted []nf.Change
		deleted, err = r.cluster.Delete(ctx, r.op.Instance, refs)
		changes = append(changes, deleted...)
	}
	if kept := r.keepChanges(ctx, changes); err == nil {
		err = kept
	}
	if err != nil {
		return err
	}
	w := wait{wanted: nf.Absent}
	for _, c := range changes {
		if c.Action == nf.Deleted {
			w.targets = append(w.targets, c)
		}
	}
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Changes = len(refs)+len(keep), len(changes)
	})
	return r.await(ctx, w)
}

// orphan lets go of objects and leaves them in place.
func (r *run) orphan(ctx context.Context, refs []nf.Ref) error {
	changes, err := r.cluster.Orphan(ctx, r.op.Instance, refs)
	if kept := r.keepChanges(ctx, changes); err == nil {
		err = kept
	}
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current, step.Changes = len(refs), len(changes), len(changes)
	})
	return err
}
