package lifecycle

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// applier changes objects in a region for a run: it applies and deletes them,
// and waits for them.
type applier struct {
	run   *run
	tried map[int]bool // the stages that this attempt has tried to apply
}

// apply writes the objects of the plan into the inventory, and then applies those of a
// stage. A crash in between leaves no object outside the inventory.
func (a *applier) apply(ctx context.Context, index int, last bool) error {
	var wanted, shared []*unstructured.Unstructured
	for _, obj := range a.run.plan.Stages[index].Objects {
		if obj.Shared {
			shared = append(shared, obj.Object)
			continue
		}
		wanted = append(wanted, obj.Object)
	}
	if err := a.ensureShared(ctx, shared); err != nil {
		return err
	}
	if err := a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item { return merge(inventory, itemsOf(a.run.plan, nil)) }); err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	changes, err := a.applyObjects(ctx, index, wanted)
	a.run.attempt.KeepChanges(changes)
	if err != nil {
		return located(err, a.run.plan)
	}
	a.run.counted(len(wanted), len(wanted), len(changes))
	if !last || a.run.op().Undoing {
		return nil
	}
	now := a.run.attempt.Now()
	return a.run.attempt.Save(ctx, func(op *nf.Operation) { op.Applied = now }) // a client waits for it
}

// ensureShared creates the missing objects that the instance needs but does not
// own.
func (a *applier) ensureShared(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	changes, err := a.run.cluster.Ensure(ctx, objects)
	for _, c := range changes {
		a.run.attempt.Log().InfoContext(ctx, "shared object found", "object", c.Ref.String(), "action", c.Action)
	}
	return located(err, a.run.plan)
}

// isNew reports whether the objects of a stage cannot exist: none of the
// instance's objects existed when the operation was accepted, and neither this nor
// an earlier attempt has tried to apply them.
func (a *applier) isNew(stage int) bool {
	tried := a.tried[stage]
	a.tried[stage] = true
	return !tried && a.run.attempt.Initial() && a.run.op().Instance.Fresh && !a.run.op().Undoing
}

// deletionPause is how long an operation waits before it applies an object again that is
// being deleted.
const deletionPause = time.Second

// pauseFor reports why the operation waits, and waits for a moment. It returns false if
// the context has ended.
func (a *applier) pauseFor(ctx context.Context, reason error) bool {
	defer a.run.attempt.Yield()()
	a.run.progress(0, 1, reason.Error())
	return pause(ctx, deletionPause) == nil
}

// applyObjects applies the objects of a stage. An object that is being deleted, for
// example by the change that is undone, is applied when it is gone. If a change is rejected
// because a field is immutable, and the package allows it, the object is deleted and
// recreated.
func (a *applier) applyObjects(ctx context.Context, index int, wanted []*unstructured.Unstructured) ([]nf.Change, error) {
	done := map[string]nf.Action{} // by Ref.Key, in all attempts together
	apply := a.run.cluster.Apply
	if a.isNew(index) {
		apply = a.run.cluster.ApplyNew
	}
	for ; ; apply = a.run.cluster.Apply {
		changes, err := apply(ctx, a.run.op().Subject, wanted)
		for i, c := range changes {
			if before := done[c.Key()]; before == nf.Recreated || before != "" && c.Action == nf.Unchanged {
				changes[i].Action = before
			}
			done[c.Key()] = changes[i].Action
		}
		if nf.KindOf(err) == nf.Busy && nf.ReasonOf(err) != nf.ReasonTerminating && a.pauseFor(ctx, err) {
			continue
		}
		ref, ok := replaceable(a.run.plan.Stages[index].Objects, err)
		if !ok || done[ref.Key()] == nf.Recreated {
			return changes, err
		}
		done[ref.Key()] = nf.Recreated
		if err := a.clear(ctx, ref); err != nil {
			return changes, err
		}
	}
}

// clear deletes an object that is to be recreated, and waits until it is gone.
func (a *applier) clear(ctx context.Context, ref nf.Ref) error {
	if err := a.run.attempt.Held(ctx); err != nil { // the object may be what another replica has recreated
		return err
	}
	a.run.attempt.Log().InfoContext(ctx, "object recreated, because a field cannot be changed", "object", ref.String())
	gone, err := a.run.cluster.Delete(ctx, a.run.op().Subject, []nf.Ref{ref})
	if err == nil {
		err = a.await(ctx, wait{wanted: nf.Absent, targets: gone})
	}
	return err
}

// remove deletes objects and waits until they are gone; objects to keep are
// orphaned. Objects that belong to another owner by now are left as they are. A
// namespace is never deleted here, even one that the package brought, because it may
// hold objects of others; it is orphaned, so that another instance can bring it.
func (a *applier) remove(ctx context.Context, refs, keep []nf.Ref) error {
	keep = slices.Clone(keep)
	for _, ref := range refs {
		if isNamespace(ref) && !slices.Contains(keep, ref) {
			keep = append(keep, ref)
		}
	}
	refs = slices.DeleteFunc(slices.Clone(refs), isNamespace)
	if len(refs)+len(keep) == 0 {
		return nil
	}
	var changes []nf.Change
	var err error
	if len(keep) > 0 {
		changes, err = a.run.cluster.Orphan(ctx, a.run.op().Subject, keep)
		if err == nil && len(refs) > 0 {
			err = a.run.attempt.Held(ctx)
		}
	}
	if err == nil && len(refs) > 0 {
		var deleted []nf.Change
		deleted, err = a.run.cluster.Delete(ctx, a.run.op().Subject, refs)
		changes = append(changes, deleted...)
		a.warnOfRemaining(deleted)
	}
	a.run.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	w := wait{wanted: nf.Absent}
	for _, c := range changes {
		if c.Action == nf.Deleted {
			w.targets = append(w.targets, c)
		}
	}
	a.run.attempt.Note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Changes = len(refs)+len(keep), len(changes)
	})
	defer a.hasten(ctx, refs)()
	return a.await(ctx, w)
}

// warnOfRemaining adds a warning for each object that was to be deleted, and is orphaned.
func (a *applier) warnOfRemaining(deleted []nf.Change) {
	for _, c := range deleted {
		if c.Action == nf.Orphaned {
			a.warnOnce(c.Ref.String() + " " + c.Message)
		}
	}
}

// orphan removes the ownership from objects and leaves them in place.
func (a *applier) orphan(ctx context.Context, refs []nf.Ref) error {
	changes, err := a.run.cluster.Orphan(ctx, a.run.op().Subject, refs)
	a.run.attempt.KeepChanges(changes)
	a.run.counted(len(refs), len(changes), len(changes))
	return err
}
