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

// preparer turns requests into prepared targets. It records nothing and changes
// nothing in a region.
type preparer struct {
	records   *records
	catalog   Catalog
	renderers map[string]render.Renderer // by package kind
	open      OpenCluster
	newID     func() string
	apart     bool // see Config
	guard     DeletionGuard
	networks  Networks     // nil: none
	regions   Regions      // nil: none are chosen
	volumes   Volumes      // nil: none
	workloads Workloads    // nil: none
	flavors   FlavorLabels // nil: none
	owners    Owners       // nil: none
	memory    *planMemory
	held      *heldPlan // by the request that the preparer is for
}

// target is the desired state of an instance.
type target struct {
	id, name          string
	project           string
	region, namespace string
	spec              nf.Spec
	present           nf.Instance  // before the change; zero if it is created
	revision          int          // the number of the new revision
	access            secretAccess // what templates see of Secrets
	mayAttach         func(ctx context.Context, n nf.Network, create bool) error
	placed            *nf.Placed // how the region was chosen; nil: it was given
	strict            bool       // parameters that have no effect are errors
	adopt             bool       // objects that exist without an owner are adopted
	mayUse            func(context.Context, nf.Volume) error
	mayRegister       func(ctx context.Context, region string) error
}

// names returns the strings that differ between the objects of two instances of a
// package with the same inputs.
func (t target) names() []string {
	return append([]string{t.id, t.name, t.spec.Release, t.namespace}, t.spec.Namespaces...)
}

// prepared is a valid target: rendered, ordered, and accepted by the region's
// preflight check. Preparing changes nothing.
type prepared struct {
	target    target
	pkg       nf.Package
	plan      render.Plan
	encoded   []byte
	sensitive []string
	cluster   Cluster
	bounds    nf.Bounds
	view      *regionView     // nil: nothing is rendered
	hidden    []string        // secret texts of the region or the package that the plan contains
	adoption  *adoption       // nil: the objects are to be created
	existing  int             // the number of the objects that exist
	found     []nf.Change     // the objects to adopt that exist; nf.Adopted if they are not the instance's yet
	bare      map[string]bool // see bareJobs

	keeps    bool            // the workloads keep the attachments and the volumes of the present instance
	declared declared        // by the package
	notes    string          // of the package, masked and cut
	attached []nf.Attachment // all attachments; nil: those that the request asks for
	computed []nf.ComputeUse // compute profiles of the workloads, resolved
	mounted  []nf.VolumeUse  // all uses of volumes; nil: those that the request asks for

	registered []nf.WorkloadCluster // all clusters that become regions; nil: those of the request
}

// declared is what a package asks for in addition to its objects.
type declared struct {
	networks []nf.Connection
	volumes  []nf.Binding
	clusters []nf.DeclaredCluster // that become regions, unless the request has a list
	profiles map[string]nf.ComputeProfile
}

// revision returns the prepared target as revision number n.
func (p *prepared) revision(n int) nf.Revision {
	return nf.Revision{
		Instance: p.target.id, Number: n, Package: p.target.spec.Package, PackageDigest: p.pkg.Digest,
		Inputs: p.target.spec.Inputs, Sensitive: p.sensitive, Labels: p.target.spec.Labels, Description: p.target.spec.Description,
		Release: p.target.spec.Release, Namespaces: p.target.spec.Namespaces, Amendments: p.target.spec.Amendments, Annotations: p.target.spec.Annotations,
		Hidden: p.hidden, Networks: p.target.spec.Networks, Attached: p.attached, Volumes: p.target.spec.Volumes, Bound: p.mounted, Drift: p.target.spec.Drift, Claims: p.target.spec.Claims,
		Workloads: p.target.spec.Workloads, Registered: p.registered, Compute: p.computed, Notes: p.notes, AAI: p.target.spec.AAI,
	}
}

// prepare prepares a target. With an adoption, its objects run already.
func (pr *preparer) prepare(ctx context.Context, t target, a *adoption) (*prepared, error) {
	region, err := pr.catalog.Region(ctx, t.region)
	if err != nil {
		return nil, missing("cloud_region_id", t.region, err)
	}
	p := &prepared{target: t, adoption: a}
	if err := pr.renderOwn(ctx, p, region); err != nil {
		return nil, err
	}
	return p, pr.complete(ctx, p, region)
}

// renderOwn renders the target's own package into the plan.
func (pr *preparer) renderOwn(ctx context.Context, p *prepared, region nf.Region) error {
	pkg, files, done, err := pr.catalog.Files(ctx, p.target.spec.Package)
	if err != nil {
		return missing("csar_id", p.target.spec.Package, err)
	}
	defer done()
	if same := p.target.present.Package == pkg.ID && p.target.present.PackageDigest == pkg.Digest; !same {
		if err := enabled("csar_id", pkg); err != nil {
			return err
		}
	}
	p.pkg = pkg
	if err := pr.bound(ctx, p, region); err != nil {
		return err
	}
	if p.bare, err = bareJobs(ctx, pr.records, p.target.present); err != nil {
		return err
	}
	var out render.Output
	if p.plan, out, err = pr.render(ctx, p, content{pkg, files, p.target.spec.Inputs}, region); err != nil {
		return p.redactor().error(err)
	}
	p.declared, p.notes = declared{out.Networks, out.Volumes, out.Clusters, out.Profiles}, out.Notes
	return nil
}

// complete layers the amendments over the plan, and checks it against the
// region.
func (pr *preparer) complete(ctx context.Context, p *prepared, region nf.Region) error {
	if err := pr.amend(ctx, p, region); err != nil {
		return p.redactor().error(err)
	}
	if err := pr.held.hold(ctx, p.plan); err != nil {
		return err
	}
	if err := pr.compute(ctx, p); err != nil {
		return p.redactor().error(located(err, p.plan))
	}
	if err := pr.attach(ctx, p); err != nil {
		return p.redactor().error(located(err, p.plan))
	}
	if err := pr.mount(ctx, p); err != nil {
		return p.redactor().error(located(err, p.plan))
	}
	if err := pr.registrable(ctx, p); err != nil {
		return err
	}
	if len(p.objects()) == 0 {
		return nf.E(nf.Invalid, "render", "package "+p.pkg.ID, nf.Violations{{Message: "it renders to no objects"}})
	}
	if err := p.inspect(ctx); err != nil {
		return p.redactor().error(located(err, p.plan))
	}
	p.hidden = p.view.repeated(p.plan)
	p.plan.Warnings = append(p.plan.Warnings, p.view.warnings...)
	redactor := p.redactor()
	for i, warning := range p.plan.Warnings {
		p.plan.Warnings[i] = redactor.values.Text(warning)
	}
	p.notes = nf.Clip(redactor.values.Text(p.notes), nf.MaxNotes)
	var err error
	if p.encoded, err = render.Encode(p.plan); err != nil {
		return fmt.Errorf("cannot encode the plan: %w", err)
	}
	return nil
}

// content is a package and the inputs to render it with.
type content struct {
	pkg    nf.Package
	files  render.Files
	inputs nf.Inputs
}

// render returns the plan of one package for a target, and the output of its renderer.
func (pr *preparer) render(ctx context.Context, p *prepared, c content, region nf.Region) (render.Plan, render.Output, error) {
	renderer, ok := pr.renderers[c.pkg.Kind]
	if !ok {
		return render.Plan{}, render.Output{}, nf.E(nf.Unsupported, "render", "package "+c.pkg.ID, fmt.Errorf("no renderer for packages of kind %q", c.pkg.Kind))
	}
	in := render.Input{
		Files: c.files,
		Builtins: map[string]string{
			"namespace": p.target.namespace, "vnf_id": p.target.id, "vnf_name": cmp.Or(p.target.name, p.target.id),
			"cloud_region_id": region.ID, "cloud_owner": region.Owner,
		},
		Inputs: c.inputs,
		Release: render.Release{
			Name: cmp.Or(p.target.spec.Release, p.target.name, p.target.id), Namespace: p.target.namespace, Revision: p.target.revision, Upgrade: p.target.revision > 1,
		},
		Region: p.view,
		Strict: p.target.strict,
	}
	out, err := p.output(ctx, renderer, in)
	if err != nil {
		return render.Plan{}, out, renderError("render", c.pkg, err)
	}
	p.view.seen = append(p.view.seen, out.Secrets...)
	p.sensitive = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.sensitive, out.Sensitive))))
	p.own(out)
	plan, err := render.Order(out.Groups, p.target.namespace)
	if err != nil {
		return plan, out, renderError("order", c.pkg, err)
	}
	if plan.Hooks, err = p.orderHooks(out.Hooks); err != nil {
		return plan, out, renderError("order", c.pkg, err)
	}
	plan.Warnings = slices.Concat(plan.Warnings, out.Warnings, plan.Virtlet())
	return plan, out, nil
}

// renderError returns the error for a package that cannot be rendered or ordered.
// If there are violations, they alone are the cause, because the renderer's text
// around them would repeat it.
func renderError(op string, pkg nf.Package, err error) error {
	out := &nf.Error{Kind: nf.KindOf(err), Op: op, Subject: "package " + pkg.ID, Reason: nf.ReasonOf(err), Err: err}
	if v := nf.ViolationsOf(err); v != nil {
		out.Err = v
	}
	return out
}

// own labels the objects that will belong to the instance.
func (p *prepared) own(out render.Output) {
	if p.adoption != nil {
		p.adoption.own(subjectOf(p.target.id), out)
		return
	}
	for _, g := range out.Groups {
		for _, obj := range g.Objects {
			switch place := cmp.Or(obj.GetNamespace(), p.target.namespace); {
			case obj.Shared:
			case obj.GroupVersionKind().GroupKind() == jobKind && p.bare[place+"/"+obj.GetName()]:
				render.Tag(obj.Unstructured, subjectOf(p.target.id))
			default:
				render.Own(obj.Unstructured, subjectOf(p.target.id), p.target.spec.Inputs.ObjectLabels)
			}
		}
	}
	for _, h := range out.Hooks {
		render.Own(h.Unstructured, subjectOf(p.target.id), p.target.spec.Inputs.ObjectLabels)
	}
}

func (p *prepared) objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range p.plan.Objects() {
		out = append(out, obj)
	}
	return out
}

// enabled returns nf.Conflict if a package that the field names is disabled.
func enabled(field string, pkg nf.Package) error {
	if !pkg.Disabled {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "package " + pkg.ID, Reason: nf.ReasonDisabled,
		Err: nf.Violations{{Field: field, Message: "is disabled; enable the package or use another one"}}}
}

// missing adds the request field to the error for an object that does not
// exist.
func missing(field, id string, err error) error {
	if nf.KindOf(err) != nf.NotFound {
		return err
	}
	return nf.E(nf.NotFound, "use", field+" "+id, nf.Violations{{Field: field, Message: fmt.Sprintf("%q does not exist", id)}})
}
