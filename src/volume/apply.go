package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// Apply implements shared.Kind. A PersistentVolume that a class has provisioned, or that
// is adopted, gets the reclaim policy Retain and its owner in one write, before anything
// else.
func (k *Kind) Apply(ctx context.Context, r *shared.Region, v nf.Volume) error {
	spec, err := specOf(v)
	if err != nil {
		return err
	}
	c, err := k.open(ctx, v.Region)
	if err != nil {
		return err
	}
	pv := volumeOf(v, spec)
	if pv.Name == "" {
		return provision(ctx, r, c, v, spec)
	}
	there, err := lookup(ctx, c, pv)
	switch {
	case err != nil:
		return err
	case there != nil:
		return keep(ctx, r, c, v, pv)
	case spec.Source.Adopt != nil || spec.Source.Class != nil:
		return nf.E(nf.Failed, "use", "volume "+v.ID, nf.Violations{{Object: pv, Message: "does not exist any longer"}})
	}
	return r.Apply(ctx, []*unstructured.Unstructured{persistentVolume(v, spec)})
}

// provision creates a claim, waits until its class has provisioned a PersistentVolume,
// and keeps that.
func provision(ctx context.Context, r *shared.Region, c Cluster, v nf.Volume, spec nf.VolumeSpec) error {
	claim := provisioningClaim(v, spec)
	if err := r.Apply(ctx, []*unstructured.Unstructured{claim}); err != nil {
		return err
	}
	ref := ownClaim(v)
	for h, err := range c.Watch(ctx, subjectOf(v), []nf.Change{{Ref: ref}}) {
		if err != nil {
			return err
		}
		there, err := lookup(ctx, c, ref)
		if err != nil {
			return err
		}
		if there == nil {
			return nf.E(nf.Failed, "create", "volume "+v.ID, nf.Violations{{Object: ref, Message: "was deleted"}})
		}
		if name := (live{there}).text("spec", "volumeName"); name != "" {
			pv := volumeRef(name)
			if err := checkProvisioned(ctx, c, v, pv); err != nil {
				return err
			}
			if err := keep(ctx, r, c, v, pv); err != nil {
				return err
			}
			return r.Record(ctx, pv)
		}
		r.Report("storage class " + spec.Source.Class.Name + " has not provisioned the volume: " + h.Message)
	}
	return context.Cause(ctx)
}

// checkProvisioned returns nf.Conflict if the claim of a volume is bound to a
// PersistentVolume that was not provisioned for it: an earlier volume of the name, also of
// another project, has left it with its data, reserved for the claim.
func checkProvisioned(ctx context.Context, c Cluster, v nf.Volume, pv nf.Ref) error {
	there, err := lookup(ctx, c, pv)
	if err != nil || there == nil || there.GetLabels()[Label] == "" || (live{there}).ours(v) {
		return err
	}
	return nf.E(nf.Conflict, "create", "volume "+v.ID, nf.Violations{{
		Object: pv, Message: "was left by an earlier volume of this name, and took the claim; use it with the source adopt, or choose another name",
	}})
}

// keep makes a PersistentVolume that exists the volume's, with the reclaim policy
// Retain, and lets it grow to the size of the spec.
func keep(ctx context.Context, r *shared.Region, c Cluster, v nf.Volume, pv nf.Ref) error {
	spec, err := specOf(v)
	if err != nil {
		return err
	}
	grow := nf.Ref{} // claim
	err = revise(ctx, c, r.Held, pv, func(l live) (map[string]any, error) {
		label, owner := subjectOf(v).Label()
		if other := nf.OwnerOf(l.GetLabels()); other.ID != "" && !l.ours(v) {
			return nil, nf.E(nf.Conflict, "use", "volume "+v.ID, nf.Violations{{Object: pv, Message: "belongs to another object of this service"}})
		}
		labels, annotations := marks(v)
		labels[label] = owner
		fields := map[string]any{"persistentVolumeReclaimPolicy": "Retain"}
		grow = nf.Ref{}
		claim, uid := l.claim()
		if !l.ours(v) {
			reserved, err := reservedFor(ctx, c, l)
			if err != nil {
				return nil, err
			}
			if !reserved {
				own := reservation(ownClaim(v))
				own["uid"], own["resourceVersion"] = nil, nil
				fields["claimRef"] = own
			}
		}
		switch {
		case !smaller(l.size(), spec.Size):
		case l.class() == "":
			fields["capacity"] = map[string]any{"storage": spec.Size}
		case uid != "":
			grow = claim
		}
		return map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": fields}, nil
	})
	if err != nil {
		return err
	}
	r.Keep(nf.Change{Ref: pv, Action: nf.Configured})
	if grow.Name == "" || grow == ownClaim(v) {
		return nil
	}
	return revise(ctx, c, r.Held, grow, func(l live) (map[string]any, error) {
		if !smaller(l.text("spec", "resources", "requests", "storage"), spec.Size) {
			return nil, nil
		}
		return map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": spec.Size}}}}, nil
	})
}

// reservedFor reports whether a PersistentVolume is bound to a claim, or reserved for one
// that exists.
func reservedFor(ctx context.Context, c Cluster, l live) (bool, error) {
	claim, uid := l.claim()
	if uid != "" || claim.Name == "" {
		return uid != "", nil
	}
	there, err := lookup(ctx, c, claim)
	return there != nil, err
}

// Remove implements shared.Kind: it deletes the PersistentVolume, or, if the volume is
// to be retained, makes it unowned. What the creation of a volume has created is deleted
// in any case.
func (k *Kind) Remove(ctx context.Context, r *shared.Region, v nf.Volume) error {
	c, err := k.open(ctx, v.Region)
	if err != nil {
		return err
	}
	var claims, pvs []nf.Ref
	for _, ref := range v.Inventory {
		if ref.Kind == "PersistentVolume" {
			pvs = append(pvs, ref)
			continue
		}
		claims = append(claims, ref)
		there, err := lookup(ctx, c, ref) // it may have provisioned one that is not recorded
		if err != nil {
			return err
		}
		if there != nil && (live{there}).text("spec", "volumeName") != "" {
			pvs = append(pvs, volumeRef(live{there}.text("spec", "volumeName")))
		}
	}
	if err := r.Delete(ctx, claims); err != nil {
		return err
	}
	for _, pv := range pvs {
		if err := dispose(ctx, r, c, v, pv); err != nil {
			return err
		}
	}
	return nil
}

// dispose deletes a PersistentVolume of a volume, or makes it unowned.
func dispose(ctx context.Context, r *shared.Region, c Cluster, v nf.Volume, pv nf.Ref) error {
	spec, err := specOf(v)
	if err != nil {
		return err
	}
	undone := v.State == nf.SharedCreating
	deleted := undone && spec.Source.Adopt == nil || !undone && spec.Retention == nf.DeleteVolume
	theirs, handed := false, false
	err = revise(ctx, c, r.Held, pv, func(l live) (map[string]any, error) {
		if theirs = !l.ours(v); theirs {
			return nil, nil
		}
		if !deleted {
			label, _ := subjectOf(v).Label()
			return map[string]any{"metadata": map[string]any{"labels": map[string]any{label: nil}}}, nil
		}
		if err := checkUnbound(ctx, c, v, l); err != nil {
			return nil, err
		}
		patch := reclaim(v, spec, l)
		handed = patch != nil
		return patch, nil
	})
	gone := nf.KindOf(err) == nf.NotFound
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	switch {
	case theirs || !deleted && (undone || gone):
		return nil
	case !deleted:
		r.Warn("PersistentVolume " + pv.Name + " stays, with its data; a volume with the source adopt can have it again")
		return nil
	}
	if !handed || gone {
		return discard(ctx, r, pv)
	}
	if deleted, err := awaitDriver(ctx, r, c, v, pv); err != nil || deleted {
		return err
	}
	return discard(ctx, r, pv)
}

// checkUnbound returns nf.Conflict if a claim is bound to the PersistentVolume of a volume.
func checkUnbound(ctx context.Context, c Cluster, v nf.Volume, l live) error {
	claim, bound, err := boundTo(ctx, c, l)
	if err != nil || !bound {
		return err
	}
	return nf.E(nf.Conflict, "delete", "volume "+v.ID,
		nf.Violations{{Object: volumeRef(l.GetName()), Message: fmt.Sprintf("is bound to the claim %s of namespace %s", claim.Name, claim.Namespace)}})
}

// discard deletes a PersistentVolume.
func discard(ctx context.Context, r *shared.Region, pv nf.Ref) error {
	if err := r.Held(ctx); err != nil {
		return err
	}
	return r.Delete(ctx, []nf.Ref{pv})
}

// driverTime is how long a driver has to delete a PersistentVolume with its data. Its
// controller acts only on one that is not being deleted yet.
const driverTime = time.Minute

// awaitDriver reports whether the driver of a PersistentVolume has deleted it in time. If not,
// it adds a warning.
func awaitDriver(ctx context.Context, r *shared.Region, c Cluster, v nf.Volume, pv nf.Ref) (deleted bool, err error) {
	limited, cancel := context.WithTimeout(ctx, driverTime)
	defer cancel()
	for h, err := range c.Watch(limited, subjectOf(v), []nf.Change{{Ref: pv, Action: nf.Deleted}}) {
		if limited.Err() != nil {
			break
		}
		if err != nil {
			return false, err
		}
		if h.Status == nf.Absent {
			r.Keep(nf.Change{Ref: pv, Action: nf.Deleted})
			return true, nil
		}
		r.Report("the driver has not deleted PersistentVolume " + pv.Name + " yet")
	}
	if ctx.Err() == nil {
		r.Warn(fmt.Sprintf("the driver of PersistentVolume %s has not deleted it for %v; its data may still be there", pv.Name, driverTime))
	}
	return false, ctx.Err()
}

// reclaim returns the patch that has the driver of a PersistentVolume delete its data:
// Kubernetes does so only if a claim that does not exist any longer was bound to it. It
// is nil without a driver.
func reclaim(v nf.Volume, spec nf.VolumeSpec, l live) map[string]any {
	driver := l.GetAnnotations()[provisionedBy]
	if spec.Source.CSI != nil {
		driver = spec.Source.CSI.Driver
	}
	if driver == "" {
		return nil
	}
	gone := reservation(ownClaim(v))
	gone["uid"] = "deleted"
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{provisionedBy: driver}},
		"spec":     map[string]any{"persistentVolumeReclaimPolicy": "Delete", "claimRef": gone},
	}
}

// attempts is how often a change is repeated because the object has changed meanwhile.
const attempts = 10

// revise changes an object by the patch that edit returns for it as it is; nil: it
// stays. It returns nf.NotFound if the object does not exist. It calls held before each
// write, and returns its error.
func revise(ctx context.Context, c Cluster, held func(context.Context) error, ref nf.Ref, edit func(live) (map[string]any, error)) error {
	for range attempts {
		there, err := lookup(ctx, c, ref)
		if err != nil {
			return err
		}
		if there == nil {
			return nf.E(nf.NotFound, "change", ref.String(), errors.New("it does not exist"))
		}
		patch, err := edit(live{there})
		if err != nil || patch == nil {
			return err
		}
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		metadata["uid"], metadata["resourceVersion"] = string(there.GetUID()), there.GetResourceVersion()
		if err := held(ctx); err != nil {
			return err
		}
		if err = c.Patch(ctx, ref, patch); nf.KindOf(err) != nf.Conflict || err == nil {
			return err
		}
	}
	return nf.E(nf.Conflict, "change", ref.String(), errors.New("other clients keep changing it"))
}
