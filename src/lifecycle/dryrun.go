package lifecycle

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// dryRun has the region's API server check the prepared objects: all of them if
// the request asks for that, otherwise those that preflight may have misjudged
// and that it has not accepted recently, with the names of another instance. If
// the request asks for it, objects that could not be checked are a warning.
func (pr *preparer) dryRun(ctx context.Context, in nf.Instance, p *prepared, opts nf.Options) error {
	objects := withHooks(p.plan)
	var names []string
	if opts.Check != nf.CheckServer {
		names = p.target.names()
		var previous render.Plan
		if in.Revision > 0 {
			var err error
			if previous, _, err = pr.records.planInForce(ctx, in); err != nil {
				return err
			}
		}
		objects = needDryRun(objects, previous)
	}
	if objects = p.withoutLeft(objects); len(objects) == 0 {
		return nil
	}
	unchecked, err := p.cluster.DryRun(ctx, subjectOf(p.target.id), objects, names)
	if err != nil {
		return p.redactor().error(located(err, p.plan))
	}
	if opts.Check == nf.CheckServer && len(unchecked) > 0 {
		p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("the API server did not check %s (objects in all: %d): the kind or namespace "+
			"does not exist yet, or the dry run was refused for another reason than a field", unchecked[0], len(unchecked)))
	}
	return nil
}

// preview compares the plan with the region, and adds the objects that would be
// pruned from the present instance.
func (pr *preparer) preview(ctx context.Context, in nf.Instance, p *prepared) (nf.Preview, error) {
	redactor := newRedactor(p.revision(0), inForce(in)) // what templates read is already masked
	changes, err := p.diff(ctx)
	if err != nil {
		return nf.Preview{}, redactor.error(located(err, p.plan))
	}
	redactor.changes(changes)
	if err := p.dryRunHooks(ctx); err != nil {
		return nf.Preview{}, redactor.error(located(err, p.plan))
	}
	for _, c := range p.found { // what hooks have left is not compared
		if c.Action == nf.Adopted && !slices.ContainsFunc(changes, func(o nf.Change) bool { return o.Key() == c.Key() }) {
			changes = append(changes, c)
		}
	}
	pruned := outside(in.Inventory, p.plan)
	for _, it := range pruned {
		change := nf.Change{Ref: it.Ref, Action: nf.Deleted}
		if it.Keep {
			change.Action = nf.Orphaned
		}
		changes = append(changes, change)
	}
	return nf.Preview{Changes: changes, Warnings: p.plan.Warnings, Confirm: pr.guard.digest(in, pruned)}, nil
}

// diff compares the objects with the region. An object that would be deleted
// and recreated, because a field is immutable, is reported as nf.Recreated.
func (p *prepared) diff(ctx context.Context) ([]nf.Change, error) {
	var planned []render.Planned
	var objects []*unstructured.Unstructured
	for _, stage := range p.plan.Stages {
		for _, obj := range stage.Objects {
			if !obj.Shared {
				planned, objects = append(planned, obj), append(objects, obj.Object)
			}
		}
	}
	var recreated []nf.Change
	for {
		changes, err := p.cluster.Diff(ctx, subjectOf(p.target.id), nf.AdoptionSelector{Unowned: p.target.adopt}, objects)
		ref, ok := replaceable(planned, err)
		at := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return nf.RefOf(obj) == ref })
		if !ok || at < 0 {
			return append(changes, recreated...), err
		}
		objects = slices.Delete(objects, at, at+1)
		recreated = append(recreated, nf.Change{Ref: ref, Action: nf.Recreated})
	}
}

// dryRunHooks has the API server check hook objects, which a diff does not show.
func (p *prepared) dryRunHooks(ctx context.Context) error {
	hooks := p.withoutLeft(withHooks(render.Plan{Hooks: p.plan.Hooks}))
	if len(hooks) == 0 {
		return nil
	}
	_, err := p.cluster.DryRun(ctx, subjectOf(p.target.id), hooks, nil)
	return err
}

// needDryRun returns the objects that an API server may reject although they fit
// the region's schemas. These are the objects of Kubernetes' own kinds that are
// not in the former plan with the same content. For custom resources, the schemas state
// everything that an API server itself checks.
func needDryRun(objects []*unstructured.Unstructured, previous render.Plan) []*unstructured.Unstructured {
	taken := map[string]*unstructured.Unstructured{}
	for _, u := range withHooks(previous) {
		taken[nf.RefOf(u).Key()] = u
	}
	return slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
		group := u.GroupVersionKind().Group
		if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") || u.GetLabels()[nf.OwnerLabel] == "" {
			return true
		}
		was := taken[nf.RefOf(u).Key()]
		return was != nil && reflect.DeepEqual(was.Object, u.Object)
	})
}
