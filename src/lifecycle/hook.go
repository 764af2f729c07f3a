package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// createHook writes a hook's object into the inventory, and then applies it. A hook of a
// termination is left out if its namespace does not exist or is being deleted.
func (a *applier) createHook(ctx context.Context, h render.Planned) error {
	if lost, err := a.hasLostNamespace(ctx, h); err != nil || lost {
		return err
	}
	if err := a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item {
		it := itemOf(hookStage(inventory, len(a.run.plan.Stages)), h.Object)
		it.Hook = true
		it.Adopted = slices.ContainsFunc(inventory, func(was nf.Item) bool { return was.Adopted && was.Key() == it.Key() })
		return merge(inventory, []nf.Item{it})
	}); err != nil {
		return err
	}
	changes, err := a.run.cluster.Apply(ctx, a.run.op().Subject, []*unstructured.Unstructured{h.Object})
	a.run.attempt.KeepChanges(changes)
	if a.run.op().Verb == nf.Terminate && nf.ReasonOf(err) == nf.ReasonTerminating {
		a.warnOfSkipped(h, "is being deleted")
		return nil
	}
	return located(err, a.run.plan)
}

// hasLostNamespace reports whether a hook of a termination cannot run, because another
// client has deleted its namespace.
func (a *applier) hasLostNamespace(ctx context.Context, h render.Planned) (bool, error) {
	namespace := h.Object.GetNamespace()
	if a.run.op().Verb != nf.Terminate || namespace == "" {
		return false, nil
	}
	found, err := a.run.cluster.Namespaces(ctx, []string{namespace})
	if err != nil {
		return false, err
	}
	_, exists := found[namespace]
	if !exists {
		a.warnOfSkipped(h, "does not exist")
	}
	return !exists, nil
}

// warnOfSkipped adds a warning that a hook has not run.
func (a *applier) warnOfSkipped(h render.Planned, why string) {
	a.warnOnce(fmt.Sprintf("hook %s has not run: namespace %s %s", nf.RefOf(h.Object), h.Object.GetNamespace(), why))
}

// hookStage returns the stage of hook objects, the highest, so that they are
// deleted first. An instance may have had more stages before a change.
func hookStage(inventory []nf.Item, stages int) int {
	for _, it := range inventory {
		if !it.Hook {
			stages = max(stages, it.Stage+1)
		}
	}
	return stages
}

// awaitHook waits until a hook has completed.
func (a *applier) awaitHook(ctx context.Context, h render.Planned, made nf.StepID) error {
	if h.Timeout == noWait {
		return nil
	}
	applied, err := a.run.attempt.ChangesOf(ctx, made)
	if skipped := nf.KindOf(err) == nf.NotFound || err == nil && len(applied) == 0; skipped && a.run.op().Verb == nf.Terminate {
		return nil
	}
	if err != nil {
		return err
	}
	limited, cancel := withTimeout(ctx, h.Timeout)
	defer cancel()
	err = a.elaborate(ctx, a.await(limited, wait{
		wanted: nf.Current, targets: applied, done: true, passing: map[string]bool{applied[0].Key(): itemOf(0, h.Object).Passing},
	}))
	if kind := nf.KindOf(err); err != nil && (kind == nf.Failed || kind == nf.Timeout) && ctx.Err() == nil && h.Discards(render.DiscardFailure) {
		err = errors.Join(err, a.discardHooks(ctx, []nf.Ref{nf.RefOf(h.Object)}))
	}
	return located(err, a.run.plan)
}

// discardHooks deletes hook objects and removes them from the inventory.
func (a *applier) discardHooks(ctx context.Context, refs []nf.Ref) error {
	in, err := a.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	ours := func(it nf.Item) bool {
		return it.Hook && slices.ContainsFunc(refs, func(ref nf.Ref) bool { return ref.Key() == it.Key() })
	}
	if !slices.ContainsFunc(in.Inventory, ours) {
		return nil
	}
	if err := a.remove(ctx, refs, nil); err != nil {
		return err
	}
	return a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item { return slices.DeleteFunc(slices.Clone(inventory), ours) })
}

// discardAllHooks deletes all hook objects that remain. Those that an instance without
// an active revision has adopted are orphaned.
func (a *applier) discardAllHooks(ctx context.Context) error {
	in, err := a.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	var refs, adopted []nf.Ref
	for _, it := range withoutAdopted(in) {
		switch {
		case it.Hook && it.Adopted && it.Keep:
			adopted = append(adopted, it.Ref)
		case it.Hook:
			refs = append(refs, it.Ref)
		}
	}
	if err := a.remove(ctx, nil, adopted); err != nil {
		return err
	}
	return a.discardHooks(ctx, refs)
}
