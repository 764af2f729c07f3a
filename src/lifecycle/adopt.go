package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Adopt accepts that what runs in a region already becomes an instance, and
// returns its queued operation. Nothing of it is changed but whose it is: no
// object is applied and no hook runs before the next change of the instance.
// What the package says and is not there is in the inventory all the same, so
// that it is seen to be missing. When the operation fails, everything is let go
// of again. Adopt fails as Instantiate does; nf.NotFound is also that there is no
// such release.
func (e *Engine) Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.adoptRunning(ctx, req) })
}

// adoption is what is taken over, and how it is known.
type adoption struct {
	claim  nf.Claim
	inputs *nf.Inputs // that the release was made with; nil: none was looked for
}

func (e *Engine) adoptRunning(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	t, err := e.newTarget(ctx, &req.InstantiateRequest)
	if err != nil {
		return nf.Operation{}, err
	}
	region, err := e.cfg.Catalog.Region(ctx, t.region)
	if err != nil {
		return nf.Operation{}, missing("cloud_region_id", t.region, err)
	}
	pkg, files, err := e.cfg.Catalog.Files(ctx, t.spec.Package)
	if err != nil {
		return nf.Operation{}, missing("csar_id", t.spec.Package, err)
	}
	p, err := e.prepareOf(ctx, &prepared{target: t, pkg: pkg, adoption: &adoption{claim: req.Claim}}, files, region)
	if err != nil {
		return nf.Operation{}, err
	}
	req.OnFailure = nf.Undo // half of it is nothing that anybody wants
	op := e.newOperation(nf.Adopt, p.target, req.Options)
	op.Takes = &p.adoption.claim
	return e.begin(ctx, op, p)
}

// output is what a package renders to, or what was released of it.
func (p *prepared) output(ctx context.Context, renderer render.Renderer, in render.Input) (render.Output, error) {
	if p.adoption == nil || len(p.adoption.claim.Annotations)+len(p.adoption.claim.Labels) > 0 {
		return renderer.Render(ctx, in)
	}
	adopter, ok := renderer.(render.Adopter)
	if !ok {
		return render.Output{}, nf.E(nf.Unsupported, "adopt", "package "+p.pkg.ID, fmt.Errorf("packages of kind %q have no releases", p.pkg.Kind))
	}
	out, inputs, claim, err := adopter.Released(ctx, in)
	if err != nil {
		return out, err
	}
	p.adoption.claim, p.adoption.inputs = claim, &inputs
	p.spec.Inputs = inputs
	return out, nil
}

// own labels objects that run already, and hooks that will be made.
func (a *adoption) own(id string, out render.Output) {
	tag := render.Tag
	if a.claim.Labels[nf.OwnerLabel] == id {
		// Their pods bear it, too, and would be restarted by a plan without it.
		tag = func(obj *unstructured.Unstructured, id string) { render.Own(obj, id, nil) }
	}
	for _, g := range out.Groups {
		for _, obj := range g.Objects {
			if !obj.Shared {
				tag(obj.Unstructured, id)
			}
		}
	}
	for _, h := range out.Hooks {
		render.Own(h.Unstructured, id, nil)
	}
}

// preflight holds what was prepared against the region.
func (p *prepared) preflight(ctx context.Context) error {
	if p.adoption == nil {
		return p.cluster.Preflight(ctx, p.id, p.bounds, withHooks(p.plan))
	}
	if err := p.cluster.PreflightAdopt(ctx, p.id, p.bounds, p.adoption.claim, p.objects()); err != nil {
		return err
	}
	for _, h := range p.plan.Hooks {
		if err := p.cluster.PreflightAdopt(ctx, p.id, p.bounds, leftBy(h), []*unstructured.Unstructured{h.Object}); err != nil {
			return err
		}
	}
	return nil
}

// leftBy is what an object bears that a hook has left: nobody puts more on it
// than it says itself.
func leftBy(h render.Planned) nf.Claim { return nf.Claim{Annotations: h.Object.GetAnnotations()} }

// takeOver writes what is taken over into the inventory, and then makes it the
// instance's.
func (r *run) takeOver(ctx context.Context) error {
	if r.op.Takes == nil {
		return errors.New("cannot adopt without a claim")
	}
	items := itemsOf(r.plan, nil)
	if err := r.enlistHooks(ctx, func(inventory []nf.Item) []nf.Item { return merge(inventory, slices.Concat(r.leftItems(), items)) }); err != nil {
		return err
	}
	refs := make([]nf.Ref, len(items))
	for i, it := range items {
		refs[i] = it.Ref
	}
	changes, err := r.cluster.Adopt(ctx, r.op.Instance, *r.op.Takes, refs)
	var left []nf.Change
	if err == nil {
		left, err = r.takeOverHooks(ctx)
	}
	if kept := r.keepChanges(ctx, append(slices.Clone(changes), left...)); err == nil {
		err = kept
	}
	if err != nil {
		return err
	}
	absent := 0
	for _, c := range changes {
		if c.UID == "" {
			absent++
		}
	}
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current, step.Changes = len(refs), len(refs)-absent, len(changes)+len(left)
		if absent > 0 {
			step.Message = fmt.Sprintf("%d of %d objects do not exist", absent, len(refs))
		}
		op.Applied = r.now()
	})
	return nil
}

// leftItems returns the inventory of what hooks may have left.
func (r *run) leftItems() []nf.Item {
	var out []nf.Item
	for _, h := range r.plan.Hooks {
		it := itemOf(len(r.plan.Stages), h.Object)
		it.Hook = true
		out = append(out, it)
	}
	return out
}

// takeOverHooks makes the instance's what hooks have left, and returns that: it
// is in the way of the hooks when they run again, and nobody else deletes it.
func (r *run) takeOverHooks(ctx context.Context) ([]nf.Change, error) {
	var left []nf.Change
	there := map[string]bool{}
	for _, h := range r.plan.Hooks {
		changes, err := r.cluster.Adopt(ctx, r.op.Instance, leftBy(h), []nf.Ref{refOf(h.Object)})
		if err != nil {
			return left, err
		}
		for _, c := range changes {
			if c.UID != "" && !there[c.Key()] {
				left, there[c.Key()] = append(left, c), true
			}
		}
	}
	return left, r.enlistHooks(ctx, func(inventory []nf.Item) []nf.Item {
		return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return it.Hook && !there[it.Key()] })
	})
}
