package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// orphanedAnnotation is on every object that was left in place; its value is the
// id of the VNF instance that it was of. It also is what keeps the API server
// from taking all fields of the object for somebody's: it does so when an object
// has no managed fields at all.
const orphanedAnnotation = "k8splugin.io/orphaned-from"

// Orphan leaves those refs that exist and are the owner's in place, as nobody's:
// the owner's label and field manager are taken off the object, so that nobody
// who applies it later is in conflict with them, and an annotation says whose it
// was. Labels of pod templates and of pods stay, for another template would
// restart the pods. It returns a change for each ref that it reached, in the
// given order: nf.Orphaned, also when it was that already, nf.Unchanged when it
// does not exist (or its kind is not served), or nf.Kept when it belongs to
// somebody else.
func (c *Cluster) Orphan(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Change, error) {
	return c.treat(ctx, owner, refs, "orphan", c.orphan)
}

// orphan leaves one object in place.
func (c *Cluster) orphan(ctx context.Context, owner string, t target, had *metav1.ObjectMeta) (nf.Change, error) {
	absent := nf.Change{Ref: t.ref, Action: nf.Unchanged}
	for n := range attempts {
		if had == nil {
			live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
			if err != nil {
				return nf.Change{}, err
			}
			if !found {
				return absent, nil
			}
			if orphanOf(live) == owner {
				return changeOf(t, live, nf.Orphaned), nil
			}
			if who, yes := foreign(owner, t.ref, live); yes {
				return nf.Change{Ref: t.ref, Action: nf.Kept, Message: who}, nil
			}
			had = live
		}
		now, err := c.disown(ctx, owner, t, had)
		switch {
		case err == nil:
			return changeOf(t, now, nf.Orphaned), nil
		case apierrors.IsNotFound(err):
			return absent, nil
		case !apierrors.IsConflict(err):
			return nf.Change{}, err
		}
		had = nil // somebody changed it; what is it now?
		if err := c.pause(ctx, backoff(n+1)); err != nil {
			return nf.Change{}, err
		}
	}
	return nf.Change{}, nf.E(nf.Conflict, "orphan", t.ref.String(), errors.New("others keep changing it"))
}

// orphanOf returns the id of the instance that left an object in place, or "".
func orphanOf(m metav1.Object) string {
	if m.GetLabels()[nf.OwnerLabel] != "" {
		return "" // somebody has it now
	}
	return m.GetAnnotations()[orphanedAnnotation]
}

// disown takes the owner's marks off an object, if it is as it was.
func (c *Cluster) disown(ctx context.Context, owner string, t target, had *metav1.ObjectMeta) (*metav1.ObjectMeta, error) {
	return c.edit(ctx, t, had, map[string]any{
		"labels":        map[string]any{nf.OwnerLabel: nil},
		"annotations":   map[string]string{orphanedAnnotation: owner},
		"managedFields": managedByOthers(had, t.kind, manager(owner)),
	})
}

// managedByOthers returns the managed fields of an object without a manager's.
// An empty list would be ignored, so there is one entry at least: that of the
// annotation.
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
