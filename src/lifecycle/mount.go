package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// mount binds claims of the plan to the volumes that the package and the target ask for,
// or to those of the present instance if these are kept. It adds a claim that the plan
// does not have.
func (pr *preparer) mount(ctx context.Context, p *prepared) error {
	wanted := nf.AskedVolumes(p.target.present.VolumeUses())
	if !p.keeps {
		wanted = nf.CombineBindings(p.declared.volumes, nf.AskedVolumes(p.target.spec.Volumes))
	}
	if len(wanted) == 0 {
		return nil
	}
	subject := "VNF instance " + p.target.id
	switch {
	case len(wanted) > nf.MaxVolumes:
		return nf.E(nf.Invalid, "use", subject, nf.Violations{{Field: "volumes", Message: fmt.Sprintf("and the volumes of the package are %d, and at most %d are allowed", len(wanted), nf.MaxVolumes)}})
	case pr.volumes == nil:
		return nf.E(nf.Unsupported, "use", subject, errors.New("this service has no volumes"))
	case p.adoption != nil:
		v := wanted[0].At.Violation("volume", "is not possible when objects are adopted: their claims are bound already")
		return nf.E(nf.Invalid, "use", subject, nf.Violations{v})
	}
	claims := make([]render.Claim, len(wanted))
	for i, b := range wanted {
		claim, err := pr.claim(ctx, p.target, b)
		if err != nil {
			return err
		}
		claims[i] = render.Claim{VolumeClaim: claim, Binding: b}
	}
	plan, err := p.plan.Claim(claims, subjectOf(p.target.id), p.target.spec.Inputs.ObjectLabels)
	if v := nf.ViolationsOf(err); v != nil {
		err = nf.E(nf.Invalid, "use", subject, v)
	}
	if err != nil {
		return err
	}
	p.plan, p.mounted = plan, nil
	for _, b := range wanted {
		p.mounted = append(p.mounted, b.VolumeUse)
	}
	if reflect.DeepEqual(p.mounted, p.target.spec.Volumes) {
		p.mounted = nil
	}
	return nil
}

// claim returns how the claim of a use must be to bind its volume. It returns nf.NotFound
// with a violation if the volume does not exist, or the caller may not use it and the
// instance does not use it yet, and nf.Conflict if it is in use.
func (pr *preparer) claim(ctx context.Context, t target, b nf.Binding) (nf.VolumeClaim, error) {
	v, err := pr.volumes.Get(ctx, nf.SharedID(t.region, b.Volume))
	has := slices.ContainsFunc(t.present.VolumeUses(), func(u nf.VolumeUse) bool { return u.Volume == b.Volume })
	if err == nil && !has && t.mayUse != nil {
		err = t.mayUse(ctx, v)
	}
	if nf.KindOf(err) == nf.NotFound {
		none := b.At.Violation("volume", fmt.Sprintf("cloud region %s has no volume %q", t.region, b.Volume))
		return nf.VolumeClaim{}, nf.E(nf.NotFound, "use", "volumes of "+t.region, nf.Violations{none})
	}
	if err != nil {
		return nf.VolumeClaim{}, err
	}
	claim, err := pr.volumes.Claim(ctx, v, t.namespace, b.Claim)
	if kind := nf.KindOf(err); kind == nf.Conflict || kind == nf.NotFound {
		return claim, nf.E(kind, "use", "VNF instance "+t.id, nf.Violations{b.At.Violation("volume", err.Error())})
	}
	return claim, err
}
