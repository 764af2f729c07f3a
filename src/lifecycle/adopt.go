package lifecycle

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// adoption describes the objects to adopt, and how they are recognized.
type adoption struct {
	selector nf.AdoptionSelector
	inputs   *nf.Inputs // of the release; nil if no release was read
}

// output returns the package's rendered output, or that of the existing
// release.
func (p *prepared) output(ctx context.Context, renderer render.Renderer, in render.Input) (render.Output, error) {
	if p.adoption == nil || len(p.adoption.selector.Annotations)+len(p.adoption.selector.Labels) > 0 {
		return renderer.Render(ctx, in)
	}
	adopter, ok := renderer.(render.Adopter)
	if !ok {
		return render.Output{}, nf.E(nf.Unsupported, "adopt", "package "+p.pkg.ID, fmt.Errorf("packages of kind %q have no releases", p.pkg.Kind))
	}
	p.view.access = secretsSearched
	out, inputs, selector, err := adopter.Released(ctx, in)
	p.view.access = p.target.access
	if err != nil {
		return out, err
	}
	p.adoption.selector, p.adoption.inputs = selector, &inputs
	p.target.spec.Inputs = inputs
	return out, nil
}

// own labels existing objects, and hooks that will be created.
func (a *adoption) own(owner nf.Subject, out render.Output) {
	tag := render.Tag
	if nf.OwnerOf(a.selector.Labels) == owner {
		// Their pods have the label, too: a plan without it would restart them.
		tag = func(obj *unstructured.Unstructured, owner nf.Subject) { render.Own(obj, owner, nil) }
	}
	for _, g := range out.Groups {
		for _, obj := range g.Objects {
			if !obj.Shared {
				tag(obj.Unstructured, owner)
			}
		}
	}
	for _, h := range out.Hooks {
		render.Own(h.Unstructured, owner, nil)
	}
}

// preflight checks the prepared target against the region.
func (p *prepared) preflight(ctx context.Context) (err error) {
	if p.adoption == nil {
		p.existing, err = p.cluster.Preflight(ctx, subjectOf(p.target.id), p.bounds, withHooks(p.plan))
		return err
	}
	if err := p.cluster.PreflightAdopt(ctx, subjectOf(p.target.id), p.bounds, p.adoption.selector, p.objects()); err != nil {
		return err
	}
	for _, h := range p.plan.Hooks {
		if err := p.cluster.PreflightAdopt(ctx, subjectOf(p.target.id), p.bounds, selectorOf(h), []*unstructured.Unstructured{h.Object}); err != nil {
			return err
		}
	}
	return nil
}

// selectorOf returns the selector for an object that an earlier run of a hook
// left in the region: the object has the hook's own annotations.
func selectorOf(h render.Planned) nf.AdoptionSelector {
	return nf.AdoptionSelector{Annotations: h.Object.GetAnnotations()}
}
