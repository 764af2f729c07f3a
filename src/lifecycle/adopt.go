package lifecycle

import (
	"context"
	"fmt"
	"slices"

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

// bareJobs returns the Jobs of an adopted instance whose templates lack the owner label, as
// "namespace/name": the template of a Job cannot be changed.
func bareJobs(ctx context.Context, s *records, in nf.Instance) (map[string]bool, error) {
	if !in.Adopted || in.Revision == 0 {
		return nil, nil
	}
	plan, _, err := s.planInForce(ctx, in)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, obj := range plan.Objects() {
		_, labelled, _ := unstructured.NestedString(obj.Object, "spec", "template", "metadata", "labels", nf.OwnerLabel)
		if obj.GroupVersionKind().GroupKind() == jobKind && !labelled {
			out[obj.GetNamespace()+"/"+obj.GetName()] = true
		}
	}
	return out, nil
}

// preflight checks the prepared target against the region.
func (p *prepared) preflight(ctx context.Context) (err error) {
	switch {
	case p.target.adopt:
		return p.preflightUnowned(ctx)
	case p.adoption == nil:
		p.existing, err = p.cluster.Preflight(ctx, subjectOf(p.target.id), p.bounds, withHooks(p.plan))
		return err
	}
	if p.found, err = p.cluster.PreflightAdopt(ctx, subjectOf(p.target.id), p.bounds, p.adoption.selector, p.objects()); err != nil {
		return err
	}
	return p.preflightHooks(ctx, p.plan.Hooks)
}

// preflightHooks finds the objects that earlier runs of hooks have left.
func (p *prepared) preflightHooks(ctx context.Context, hooks []render.Planned) error {
	seen := map[string]bool{}
	for _, h := range hooks {
		found, err := p.cluster.PreflightAdopt(ctx, subjectOf(p.target.id), p.bounds, selectorOf(h), []*unstructured.Unstructured{h.Object})
		if err != nil {
			return err
		}
		for _, c := range found {
			if !seen[c.Key()] {
				p.found, seen[c.Key()] = append(p.found, c), true
			}
		}
	}
	return nil
}

// unowned selects the objects that a new instance adopts.
func unowned() nf.AdoptionSelector { return nf.AdoptionSelector{Unowned: true} }

// adopts returns what selects the objects that a new instance adopts; nil if it adopts
// none.
func (p *prepared) adopts() *nf.AdoptionSelector {
	if !p.target.adopt || len(p.found) == 0 {
		return nil
	}
	selector := unowned()
	return &selector
}

// preflightUnowned checks a target that adopts the objects that have no owner. The plan
// then contains the present content of each. Objects that hooks have left are adopted
// as an adoption does.
func (p *prepared) preflightUnowned(ctx context.Context) error {
	found, err := p.cluster.PreflightAdopt(ctx, subjectOf(p.target.id), p.bounds, unowned(), withHooks(p.plan))
	if err != nil {
		return err
	}
	p.existing = len(found)
	exists := map[string]nf.Change{}
	for _, c := range found {
		exists[c.Key()] = c
	}
	p.found = nil
	var late nf.Violations
	for _, stage := range p.plan.Stages {
		for i, obj := range stage.Objects {
			c, ok := exists[nf.RefOf(obj.Object).Key()]
			if !ok {
				continue
			}
			p.found = append(p.found, c)
			switch {
			case c.Action != nf.Adopted || obj.Former != nil:
			case p.target.present.ID != "": // a retry, whose plan is stored already
				late = append(late, nf.Violation{Object: c.Ref}.Saying(nf.Text{Message: c.Message, Mentions: c.Mentions}))
			default:
				if err := p.keepFormer(ctx, &stage.Objects[i]); err != nil {
					return err
				}
			}
		}
	}
	if len(late) > 0 {
		return nf.E(nf.Conflict, "adopt", "objects that did not exist when the instance was created", late)
	}
	return p.preflightHooks(ctx, slices.DeleteFunc(slices.Clone(p.plan.Hooks), func(h render.Planned) bool {
		return exists[nf.RefOf(h.Object).Key()].Action != nf.Adopted
	}))
}

// adopted returns a change for each object of an adoption, and for what hooks have left.
func (p *prepared) adopted() []nf.Change {
	found := map[string]nf.Change{}
	for _, c := range p.found {
		found[c.Key()] = c
	}
	var out []nf.Change
	for _, it := range itemsOf(p.plan, nil) {
		change, ok := found[it.Key()]
		if !ok {
			change = nf.Change{Ref: it.Ref, Action: nf.Unchanged, Message: "it does not exist"}
		}
		out = append(out, change)
		delete(found, it.Key())
	}
	for _, c := range p.found {
		if _, left := found[c.Key()]; left {
			out = append(out, c)
		}
	}
	return out
}

// withoutLeft returns the objects without those that hooks have left and that have no
// owner. They are adopted and deleted before they are created again, so the API server
// must not compare them with the present ones.
func (p *prepared) withoutLeft(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	left := map[string]bool{}
	for _, h := range p.plan.Hooks {
		left[nf.RefOf(h.Object).Key()] = slices.ContainsFunc(p.found, func(c nf.Change) bool { return c.Action == nf.Adopted && c.Key() == nf.RefOf(h.Object).Key() })
	}
	return slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return left[nf.RefOf(u).Key()] })
}

// keepFormer adds the present content of an object to the plan, so that it can be
// restored. An adopted object is not deleted in order to recreate it.
func (p *prepared) keepFormer(ctx context.Context, obj *render.Planned) error {
	live, err := p.cluster.Lookup(ctx, nf.RefOf(obj.Object))
	if err != nil || live == nil {
		return err
	}
	former := &unstructured.Unstructured{Object: live}
	delete(live, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "ownerReferences", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(live, "metadata", field)
	}
	obj.Former, obj.Recreate = former.Object, false
	return nil
}

// formerObjects returns the former content of the objects of a plan, as the owner's.
func formerObjects(plan render.Plan, owner nf.Subject) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if obj.Former != nil {
				former := (&unstructured.Unstructured{Object: obj.Former}).DeepCopy()
				render.Tag(former, owner)
				out = append(out, former)
			}
		}
	}
	return out
}

// withoutAdopted returns an inventory in which the objects that the instance adopted are
// to be kept, if it never had an active revision.
func withoutAdopted(in nf.Instance) []nf.Item {
	out := slices.Clone(in.Inventory)
	for i := range out {
		out[i].Keep = out[i].Keep || out[i].Adopted && in.Revision == 0
	}
	return out
}

// selectorOf returns the selector for an object that an earlier run of a hook
// left in the region: the object has the hook's own annotations.
func selectorOf(h render.Planned) nf.AdoptionSelector {
	return nf.AdoptionSelector{Annotations: h.Object.GetAnnotations()}
}
