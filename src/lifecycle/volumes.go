package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// If the request says so, the removal of an instance deletes the volume claims
// of its StatefulSets, in two steps. Before any StatefulSet is deleted, because
// only then the claims are known for certain, they are added to the inventory
// and adopted. Once all else is gone, they are deleted. Otherwise they stay,
// with a warning. The claims of StatefulSets that a change prunes stay, too.

func isVolume(it nf.Item) bool { return it.Volume }

// setsOf returns the StatefulSets in an inventory that a removal deletes.
func setsOf(inventory []nf.Item) []nf.Ref {
	var refs []nf.Ref
	for _, it := range inventory {
		if it.Group == "apps" && it.Kind == "StatefulSet" && !it.Keep {
			refs = append(refs, it.Ref)
		}
	}
	return refs
}

// findVolumes finds the claims of StatefulSets. If they are to be deleted, it
// adds them to the inventory and adopts them.
func (a *applier) findVolumes(ctx context.Context, refs []nf.Ref) error {
	in, err := a.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	found, err := a.run.cluster.VolumeClaims(ctx, a.run.op().Subject, refs, objectsAmong(a.run.plan, refs))
	for i, set := range found {
		// The package's own claims are deleted, or kept, with their stage.
		found[i].Claims = slices.DeleteFunc(set.Claims, func(ref nf.Ref) bool {
			return slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Key() == ref.Key() && !it.Volume })
		})
	}
	if !a.run.op().Instance.Volumes {
		if !operation.IsStoreError(err) && nf.KindOf(err) == nf.Unreachable {
			return err
		}
		a.warnOfVolumes(ctx, found, err)
		return nil
	}
	if err != nil {
		return err
	}
	var items []nf.Item
	for _, set := range found {
		for _, ref := range set.Claims {
			items = append(items, nf.Item{Ref: ref, Volume: true})
		}
	}
	if len(items) == 0 {
		return nil
	}
	if err := a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item { return merge(inventory, items) }); err != nil {
		return err
	}
	var changes []nf.Change
	for _, set := range found {
		adopted, err := a.run.cluster.Adopt(ctx, a.run.op().Subject, nf.AdoptionSelector{Labels: set.Labels}, set.Claims)
		if err != nil {
			return err
		}
		changes = append(changes, adopted...)
	}
	a.run.attempt.Note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current = len(items), len(changes)
	})
	return nil
}

// warnOfVolumes adds a warning that names the claims that stay, if they are
// known.
func (a *applier) warnOfVolumes(ctx context.Context, found []nf.SetClaims, err error) {
	if err != nil {
		a.run.attempt.Log().DebugContext(ctx, "failed to list the volume claims that remain", "error", a.run.redactor.error(err))
		return
	}
	var refs []nf.Ref
	for _, set := range found {
		refs = append(refs, set.Claims...)
	}
	if len(refs) == 0 {
		return
	}
	warning := fmt.Sprintf("volume claims of StatefulSets stay, with their data: %s", some(refs))
	if a.run.op().Verb == nf.Terminate {
		warning += "; claims=delete would have deleted them"
	}
	a.warnOnce(warning)
}

// deleteVolumes deletes the claims that findVolumes found, and waits until they
// are gone.
func (a *applier) deleteVolumes(ctx context.Context) error {
	refs, err := a.volumes(ctx)
	if err != nil {
		return err
	}
	return a.remove(ctx, refs, nil)
}

// keepVolumes orphans the claims that an earlier attempt was to delete.
func (a *applier) keepVolumes(ctx context.Context) error {
	refs, err := a.volumes(ctx)
	if err != nil {
		return err
	}
	return a.orphan(ctx, refs)
}

// volumes returns the claims in the inventory that StatefulSets have created.
func (a *applier) volumes(ctx context.Context) ([]nf.Ref, error) {
	in, err := a.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	var refs []nf.Ref
	for _, it := range in.Inventory {
		if it.Volume {
			refs = append(refs, it.Ref)
		}
	}
	return refs, nil
}

// objectsAmong returns a plan's objects among the refs. They are used for
// StatefulSets that no longer exist but have left claims.
func objectsAmong(plan render.Plan, refs []nf.Ref) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range plan.Objects() {
		if slices.ContainsFunc(refs, func(ref nf.Ref) bool { return ref.Key() == nf.RefOf(obj).Key() }) {
			out = append(out, obj)
		}
	}
	return out
}
