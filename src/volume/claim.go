package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Status returns a volume as its region has it.
func (k *Kind) Status(ctx context.Context, v nf.Volume) (nf.VolumeStatus, error) {
	_, l, err := k.find(ctx, v)
	if err != nil {
		return nf.VolumeStatus{}, nf.IgnoreNotFound(err)
	}
	claim, _ := l.claim()
	if claim == ownClaim(v) {
		claim = nf.Ref{} // the volume is without a claim
	}
	return nf.VolumeStatus{
		PV: l.GetName(), Phase: l.text("status", "phase"), Reason: l.text("status", "message"), Size: l.size(), Claim: claim, Node: l.node(),
	}, nil
}

// Claim returns how a claim binds a volume. A claim without a class that is bound to it keeps
// the size that it requests, also if the volume has grown. Claim returns nf.Conflict if the
// volume is bound to another claim, or reserved for one, and nf.NotFound without a
// PersistentVolume.
func (k *Kind) Claim(ctx context.Context, v nf.Volume, namespace, name string) (nf.VolumeClaim, error) {
	c, l, err := k.find(ctx, v)
	if err != nil {
		return nf.VolumeClaim{}, err
	}
	claim := claimRef(namespace, name)
	done, err := free(ctx, c, v, l, claim)
	if err != nil {
		return nf.VolumeClaim{}, err
	}
	spec, err := specOf(v)
	if err != nil {
		return nf.VolumeClaim{}, err
	}
	out := nf.VolumeClaim{PV: l.GetName(), Class: l.class(), Size: l.size(), Mode: l.text("spec", "volumeMode")}
	if smaller(out.Size, spec.Size) {
		out.Size = spec.Size // it is growing
	}
	out.AccessModes, _, _ = unstructured.NestedStringSlice(l.Object, "spec", "accessModes")
	if !done || out.Class != "" {
		return out, nil
	}
	there, err := lookup(ctx, c, claim)
	if err == nil && there != nil { // Kubernetes lets only claims with a class grow
		out.Size = cmp.Or(live{there}.text("spec", "resources", "requests", "storage"), out.Size)
	}
	return out, err
}

// Bind reserves a volume for a claim, which need not exist. It returns nf.Conflict as
// Claim does. It is idempotent. It calls held before a change, and returns its error.
func (k *Kind) Bind(ctx context.Context, held func(context.Context) error, v nf.Volume, namespace, name string) error {
	claim := claimRef(namespace, name)
	return k.reserve(ctx, held, v, func(c Cluster, l live) (map[string]any, error) {
		done, err := free(ctx, c, v, l, claim)
		if done || err != nil {
			return nil, err
		}
		return reservation(claim), nil
	})
}

// Unbind ends the reservation of a volume for a claim, if the claim does not exist. It
// is idempotent, does nothing if the volume does not exist, and calls held as Bind does.
func (k *Kind) Unbind(ctx context.Context, held func(context.Context) error, v nf.Volume, namespace, name string) error {
	claim := claimRef(namespace, name)
	err := k.reserve(ctx, held, v, func(c Cluster, l live) (map[string]any, error) {
		if has, _ := l.claim(); has != claim {
			return nil, nil
		}
		there, err := lookup(ctx, c, claim)
		if err != nil || there != nil {
			return nil, err
		}
		return reservation(ownClaim(v)), nil
	})
	return nf.IgnoreNotFound(err)
}

// reserve sets the reservation of the volume to that which edit returns; nil: it stays.
// It returns nf.NotFound without a PersistentVolume.
func (k *Kind) reserve(ctx context.Context, held func(context.Context) error, v nf.Volume, edit func(Cluster, live) (map[string]any, error)) error {
	c, pv, err := k.locate(ctx, v)
	if err != nil {
		return err
	}
	err = revise(ctx, c, held, pv, func(l live) (map[string]any, error) {
		if !l.ours(v) {
			return nil, missing(v)
		}
		reserved, err := edit(c, l)
		if err != nil || reserved == nil {
			return nil, err
		}
		reserved["uid"], reserved["resourceVersion"] = nil, nil
		return map[string]any{"spec": map[string]any{"claimRef": reserved}}, nil
	})
	if nf.KindOf(err) == nf.NotFound {
		err = missing(v)
	}
	return err
}

// find returns the PersistentVolume of a volume, and its region. It returns nf.NotFound
// if there is none.
func (k *Kind) find(ctx context.Context, v nf.Volume) (Cluster, live, error) {
	c, pv, err := k.locate(ctx, v)
	if err != nil {
		return nil, live{}, err
	}
	there, err := lookup(ctx, c, pv)
	if err == nil && (there == nil || !(live{there}).ours(v)) {
		err = missing(v)
	}
	return c, live{there}, err
}

// locate returns the ref of the PersistentVolume that a volume should have, and its
// region. It returns nf.NotFound if the volume has none yet.
func (k *Kind) locate(ctx context.Context, v nf.Volume) (Cluster, nf.Ref, error) {
	spec, err := specOf(v)
	if err != nil {
		return nil, nf.Ref{}, err
	}
	c, err := k.open(ctx, v.Region)
	if err != nil {
		return nil, nf.Ref{}, err
	}
	pv := volumeOf(v, spec)
	if pv.Name == "" {
		return nil, pv, missing(v)
	}
	return c, pv, nil
}

func missing(v nf.Volume) error {
	return nf.E(nf.NotFound, "use", "volume "+v.ID, errors.New("its PersistentVolume does not exist"))
}

// free returns nf.Conflict unless a claim may bind the volume. Done reports whether the
// claim is bound to it, or the volume reserved for it.
func free(ctx context.Context, c Cluster, v nf.Volume, l live, wanted nf.Ref) (done bool, err error) {
	claim, bound, err := boundTo(ctx, c, l)
	_, uid := l.claim()
	switch {
	case err != nil:
		return false, err
	case claim == wanted:
		return bound || uid == "", nil
	case bound, uid == "" && claim.Name != "" && claim != ownClaim(v):
		return false, nf.E(nf.Conflict, "use", "volume "+v.ID,
			fmt.Errorf("it is in use by the claim %s of namespace %s; a PersistentVolume binds one claim", claim.Name, claim.Namespace))
	}
	return false, nil
}
