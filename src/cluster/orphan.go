package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// orphanedAnnotation is on every orphaned object; its value names the owner as
// nameOf does. It also ensures that the object keeps a managed fields entry: if
// an object has none, the API server assigns all its fields to the next manager.
const orphanedAnnotation = "k8splugin.io/orphaned-from"

// orphanedLabel is on an orphaned object that must not be without labels.
const orphanedLabel = "k8splugin.io/orphaned"

// labelledAsTemplate are the kinds of which an object without labels gets the labels of
// its pod template from the API server.
var labelledAsTemplate = map[schema.GroupKind]bool{{Group: "batch", Kind: "Job"}: true, {Kind: "ReplicationController"}: true}

// Orphan makes those refs that exist and are the owner's unowned, without
// deleting them. It removes the owner's label and field manager, so that a
// later apply by others does not conflict, and sets an annotation with the
// owner's id. Labels of pods and pod templates stay, because a changed template
// would restart the pods.
//
// It returns a change for each ref that it reached, in the given order:
// nf.Orphaned, even if the owner had already orphaned it; nf.Unchanged if it
// does not exist or its kind is not served; nf.Kept if it belongs to another
// owner.
func (c *Cluster) Orphan(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return c.act(ctx, owner, refs, "orphan", func(ctx context.Context, o *ownedObject) (nf.Change, error) { return o.orphan(ctx) })
}

// orphan makes the object unowned if it is the owner's.
func (o *ownedObject) orphan(ctx context.Context) (nf.Change, error) {
	for n := range attempts {
		other, ours, err := o.ours(ctx)
		switch {
		case err != nil:
			return nf.Change{}, err
		case o.live != nil && orphanOf(o.live) == o.owner:
			return changeOf(o.target, o.live, nf.Orphaned), nil
		case !ours:
			return other, nil
		}
		now, err := o.removeOwner(ctx)
		switch {
		case err == nil:
			return changeOf(o.target, now, nf.Orphaned), nil
		case apierrors.IsNotFound(err):
			return nf.Change{Ref: o.target.ref, Action: nf.Unchanged}, nil
		case !apierrors.IsConflict(err):
			return nf.Change{}, err
		}
		o.live = nil // it has changed: read it again
		if err := o.client.pause(ctx, backoff(n+1)); err != nil {
			return nf.Change{}, err
		}
	}
	return nf.Change{}, nf.E(nf.Conflict, "orphan", o.target.ref.String(), errors.New("other clients keep changing it"))
}

// orphanOf returns the owner that orphaned an object, without an ID if there is
// none.
func orphanOf(m metav1.Object) nf.Subject {
	if nf.OwnerOf(m.GetLabels()).ID != "" {
		return nf.Subject{} // it has an owner again
	}
	return named(m.GetAnnotations()[orphanedAnnotation])
}

// removeOwner removes the owner's label and field manager from the object. It
// returns a conflict if the object has changed since it was read.
func (o *ownedObject) removeOwner(ctx context.Context) (*metav1.ObjectMeta, error) {
	label, _ := o.owner.Label()
	labels := map[string]any{label: nil}
	if labelledAsTemplate[o.target.kind.GroupKind()] && len(o.live.Labels) == 1 {
		labels[orphanedLabel] = "true" // without labels, it would get those of its template, with the owner's
	}
	return o.client.edit(ctx, o.target, o.live, map[string]any{
		"labels":        labels,
		"annotations":   map[string]string{orphanedAnnotation: nameOf(o.owner)},
		"managedFields": managedByOthers(o.live, o.target.kind, manager(o.owner)),
	})
}

// managedByOthers returns an object's managed fields without a manager's. The
// API server would ignore an empty list, so the result has at least an entry
// for the annotation.
func managedByOthers(m *metav1.ObjectMeta, k kind, manager string) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, f := range m.ManagedFields {
		if f.Manager != manager {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		fields := `{"f:metadata":{"f:annotations":{"f:` + orphanedAnnotation + `":{}}}}`
		out = append(out, metav1.ManagedFieldsEntry{
			Manager: userAgent, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: k.GroupVersion().String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	return out
}
