package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// mount binds claims of the plan to the volumes of the target. It adds a claim that the
// plan does not have.
func (pr *preparer) mount(ctx context.Context, p *prepared) error {
	uses := p.target.spec.Volumes
	if len(uses) == 0 {
		return nil
	}
	subject := "VNF instance " + p.target.id
	if pr.volumes == nil {
		return nf.E(nf.Unsupported, "use", subject, errors.New("this service has no volumes"))
	}
	if p.adoption != nil {
		return nf.E(nf.Invalid, "use", subject, nf.Violations{{Field: "volumes", Message: "are not possible when objects are adopted: their claims are bound already"}})
	}
	claims := make([]render.Claim, 0, len(uses))
	for i, use := range uses {
		v, err := pr.volumes.Get(ctx, nf.SharedID(p.target.region, use.Volume))
		has := slices.ContainsFunc(p.target.present.Volumes, func(u nf.VolumeUse) bool { return u.Volume == use.Volume })
		if err == nil && !has && p.target.mayUse != nil {
			err = p.target.mayUse(ctx, v)
		}
		if nf.KindOf(err) == nf.NotFound {
			return nf.E(nf.NotFound, "use", "volumes of "+p.target.region, nf.Violations{nf.NoVolume(i, p.target.region, use.Volume)})
		}
		if err != nil {
			return err
		}
		volume, err := pr.volumes.Claim(ctx, v, p.target.namespace, use.Claim)
		if kind := nf.KindOf(err); kind == nf.Conflict || kind == nf.NotFound {
			return nf.E(kind, "use", subject, nf.Violations{{Field: fmt.Sprintf("volumes[%d].volume", i), Message: err.Error()}})
		}
		if err != nil {
			return err
		}
		claims = append(claims, render.Claim{VolumeClaim: volume, Name: use.Claim, Field: fmt.Sprintf("volumes[%d].claim", i)})
	}
	plan, err := p.plan.Claim(claims, subjectOf(p.target.id), p.target.spec.Inputs.ObjectLabels)
	if v := nf.ViolationsOf(err); v != nil {
		err = nf.E(nf.Invalid, "use", subject, v)
	}
	if err == nil {
		p.plan = plan
	}
	return err
}
