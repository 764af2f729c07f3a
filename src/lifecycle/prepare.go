package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// target is what an instance shall become.
type target struct {
	id, name          string
	project           string
	region, namespace string
	spec              nf.Spec
	revision          int   // that it becomes
	sight             sight // of the templates
}

// prepared is a target that could be brought about: rendered, ordered, and
// accepted by the region's preflight. Preparing changes nothing anywhere.
type prepared struct {
	target
	pkg       nf.Package
	plan      render.Plan
	encoded   []byte
	sensitive []string
	cluster   Cluster
	bounds    nf.Bounds
	window    *window   // nil: nothing is rendered
	hidden    []string  // texts of the region's Secrets that the plan repeats
	adoption  *adoption // nil: what is prepared is to be made
}

func (e *Engine) prepare(ctx context.Context, t target) (*prepared, error) {
	region, err := e.cfg.Catalog.Region(ctx, t.region)
	if err != nil {
		return nil, missing("cloud_region_id", t.region, err)
	}
	pkg, files, err := e.cfg.Catalog.Files(ctx, t.spec.Package)
	if err != nil {
		return nil, missing("csar_id", t.spec.Package, err)
	}
	return e.prepareOf(ctx, &prepared{target: t, pkg: pkg}, files, region)
}

// prepareOf prepares a target whose package has been read.
func (e *Engine) prepareOf(ctx context.Context, p *prepared, files render.Files, region nf.Region) (*prepared, error) {
	var err error
	if p.cluster, err = e.cfg.Open(ctx, p.region, p.project); err != nil {
		return nil, err
	}
	if err := e.bound(ctx, p, region); err != nil {
		return nil, err
	}
	if p.plan, err = e.render(ctx, p, content{p.pkg, files, p.spec.Inputs}, region); err != nil {
		return nil, p.secrecy().error(err)
	}
	return p, e.complete(ctx, p, region)
}

// complete lays the amendments over a plan, and holds it against the region.
func (e *Engine) complete(ctx context.Context, p *prepared, region nf.Region) error {
	if err := e.amend(ctx, p, region); err != nil {
		return p.secrecy().error(err)
	}
	if len(p.objects()) == 0 {
		return nf.E(nf.Invalid, "render", "package "+p.pkg.ID, nf.Violations{{Message: "it renders to no object at all"}})
	}
	if err := e.inspect(ctx, p); err != nil {
		return p.secrecy().error(located(err, p.plan))
	}
	p.hidden = append(p.hidden, p.window.repeated(p.plan)...)
	p.plan.Warnings = append(p.plan.Warnings, p.window.warnings...)
	secrets := p.secrecy()
	for i, warning := range p.plan.Warnings {
		p.plan.Warnings[i] = secrets.Text(warning)
	}
	var err error
	if p.encoded, err = render.Encode(p.plan); err != nil {
		return fmt.Errorf("cannot encode the plan: %w", err)
	}
	return nil
}

// content is a package with what it is rendered with.
type content struct {
	pkg    nf.Package
	files  render.Files
	inputs nf.Inputs
}

// render makes the plan of one package for a target.
func (e *Engine) render(ctx context.Context, p *prepared, c content, region nf.Region) (render.Plan, error) {
	renderer, ok := e.cfg.Renderers[c.pkg.Kind]
	if !ok {
		return render.Plan{}, nf.E(nf.Unsupported, "render", "package "+c.pkg.ID, fmt.Errorf("no renderer for packages of kind %q", c.pkg.Kind))
	}
	in := render.Input{
		Files: c.files,
		Builtins: map[string]string{
			"namespace": p.namespace, "vnf_id": p.id, "vnf_name": cmp.Or(p.name, p.id),
			"cloud_region_id": region.ID, "cloud_owner": region.Owner,
		},
		Inputs: c.inputs,
		Release: render.Release{
			Name: cmp.Or(p.spec.Release, p.name, p.id), Namespace: p.namespace, Revision: p.target.revision, Upgrade: p.target.revision > 1,
		},
		Region: p.window,
	}
	out, err := p.output(ctx, renderer, in)
	if err != nil {
		return render.Plan{}, unfit("render", c.pkg, err)
	}
	p.sensitive = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.sensitive, out.Sensitive))))
	p.own(out)
	plan, err := render.Order(out.Groups, p.namespace)
	if err != nil {
		return plan, unfit("order", c.pkg, err)
	}
	if plan.Hooks, err = p.hooks(out.Hooks); err != nil {
		return plan, unfit("order", c.pkg, err)
	}
	plan.Warnings = append(plan.Warnings, out.Warnings...)
	return plan, nil
}

// unfit returns the error that a package cannot be rendered or ordered. If there
// are violations, they are the cause: what a renderer says around them would say
// it again.
func unfit(op string, pkg nf.Package, err error) error {
	out := &nf.Error{Kind: nf.KindOf(err), Op: op, Subject: "package " + pkg.ID, Reason: nf.ReasonOf(err), Err: err}
	if v := nf.ViolationsOf(err); v != nil {
		out.Err = v
	}
	return out
}

// own labels what will be the instance's.
func (p *prepared) own(out render.Output) {
	if p.adoption != nil {
		p.adoption.own(p.id, out)
		return
	}
	for _, g := range out.Groups {
		for _, obj := range g.Objects {
			if !obj.Shared {
				render.Own(obj.Unstructured, p.id, p.spec.Inputs.ObjectLabels)
			}
		}
	}
	for _, h := range out.Hooks {
		render.Own(h.Unstructured, p.id, p.spec.Inputs.ObjectLabels)
	}
}

func (p *prepared) objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range p.plan.Objects() {
		out = append(out, obj)
	}
	return out
}

// withHooks returns every object that the region must be able to take.
func withHooks(plan render.Plan) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range plan.Objects() {
		out = append(out, obj)
	}
	for _, h := range plan.Hooks {
		out = append(out, h.Object)
	}
	return out
}

// missing says which field of the request named a thing that does not exist.
func missing(field, id string, err error) error {
	if nf.KindOf(err) != nf.NotFound {
		return err
	}
	return nf.E(nf.NotFound, "use", field+" "+id, nf.Violations{{Field: field, Message: fmt.Sprintf("%q does not exist", id)}})
}

// located adds, to violations about an object, the file and line in the package
// where the object was written.
func located(err error, plan render.Plan) error {
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		return err
	}
	places := map[string]render.Planned{}
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			places[refOf(obj.Object).Key()] = obj
		}
	}
	for _, h := range plan.Hooks {
		places[refOf(h.Object).Key()] = h
	}
	for i, v := range violations {
		if at, ok := places[v.Object.Key()]; ok && v.File == "" {
			violations[i].File, violations[i].Line = at.File, at.Line
		}
	}
	return rewritten(err, violations)
}

func refOf(obj *unstructured.Unstructured) nf.Ref {
	gvk := obj.GroupVersionKind()
	return nf.Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// planUser holds the plan's blob for as long as a revision, or the operation
// that was to bring it into force, may need it.
func planUser(operation string) string { return "plan/" + operation }

// revisionKey sorts as the numbers do.
func revisionKey(instance string, revision int) string {
	return fmt.Sprintf("%s/%08d", instance, revision)
}
