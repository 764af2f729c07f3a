package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The removal of an instance deletes the volume claims of its StatefulSets, if
// the request says so, in two steps: before any StatefulSet is deleted, for only
// then they are known for certain, they become entries of the inventory and the
// instance's own; and once everything else is gone, they are deleted. Otherwise
// they stay, with a warning.

// volumeSteps returns what a removal does about the claims of StatefulSets: the
// step that finds them, and the step that comes after the deletion of all else.
func (r *run) volumeSteps(prefix string, in nf.Instance) (find, last []step) {
	if len(setsOf(in.Inventory)) > 0 {
		find = []step{{prefix + "find volume claims", r.findVolumes}}
	}
	switch {
	case r.op.Volumes:
		last = []step{{prefix + "delete volume claims", r.deleteVolumes}}
	case slices.ContainsFunc(in.Inventory, isVolume): // an earlier attempt was to delete them
		last = []step{{prefix + "keep volume claims", r.keepVolumes}}
	}
	return find, last
}

// findVolumes finds the claims of the instance's StatefulSets. If they are to be
// deleted, it writes them into the inventory and makes them the instance's own.
func (r *run) findVolumes(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	refs := setsOf(in.Inventory)
	found, err := r.cluster.VolumeClaims(ctx, r.op.Instance, refs, r.planned(refs))
	for i, set := range found {
		// What the package itself has goes, or stays, with its stage.
		found[i].Claims = slices.DeleteFunc(set.Claims, func(ref nf.Ref) bool {
			return slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Key() == ref.Key() && !it.Volume })
		})
	}
	if !r.op.Volumes {
		if away(err) {
			return err
		}
		r.warnOfVolumes(ctx, found, err)
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
	if err := r.enlistHooks(ctx, func(inventory []nf.Item) []nf.Item { return merge(inventory, items) }); err != nil {
		return err
	}
	var changes []nf.Change
	for _, set := range found {
		adopted, err := r.cluster.Adopt(ctx, r.op.Instance, nf.Claim{Labels: set.Labels}, set.Claims)
		if err != nil {
			return err
		}
		changes = append(changes, adopted...)
	}
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current = len(items), len(changes)
	})
	return nil
}

// warnOfVolumes says which claims stay. What cannot be found out is not said.
func (r *run) warnOfVolumes(ctx context.Context, found []nf.SetClaims, err error) {
	if err != nil {
		r.log.DebugContext(ctx, "the volume claims that stay cannot be listed", "error", r.secrets.error(err))
		return
	}
	var refs []nf.Ref
	for _, set := range found {
		refs = append(refs, set.Claims...)
	}
	if len(refs) == 0 {
		return
	}
	warning := fmt.Sprintf("volume claims of StatefulSets stay, with their data: %s; claims=delete would have deleted them", some(refs))
	r.note(func(op *nf.Operation) { op.Warnings = append(op.Warnings, warning) })
}

// deleteVolumes deletes the claims that findVolumes has found, and waits until
// they are gone.
func (r *run) deleteVolumes(ctx context.Context) error {
	refs, err := r.volumes(ctx)
	if err != nil {
		return err
	}
	return r.remove(ctx, refs, nil)
}

// keepVolumes lets go of the claims that an earlier attempt was to delete.
func (r *run) keepVolumes(ctx context.Context) error {
	refs, err := r.volumes(ctx)
	if err != nil {
		return err
	}
	return r.orphan(ctx, refs)
}

// volumes returns the claims in the inventory that StatefulSets have made.
func (r *run) volumes(ctx context.Context) ([]nf.Ref, error) {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return nil, recordError(err)
	}
	var refs []nf.Ref
	for _, it := range in.Inventory {
		if it.Volume {
			refs = append(refs, it.Ref)
		}
	}
	return refs, nil
}

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

// planned returns those of the refs that the plan in force has. One that is not
// in the region any more has left its claims there all the same.
func (r *run) planned(refs []nf.Ref) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range r.plan.Objects() {
		if slices.ContainsFunc(refs, func(ref nf.Ref) bool { return ref.Key() == refOf(obj).Key() }) {
			out = append(out, obj)
		}
	}
	return out
}
