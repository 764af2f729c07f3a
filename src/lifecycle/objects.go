package lifecycle

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// withHooks returns all objects of a plan, including hooks.
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

// namespacesOf returns the namespaces of a plan's objects, and those that it
// contains as objects, sorted.
func namespacesOf(plan render.Plan) []string {
	names := map[string]bool{}
	for _, obj := range withHooks(plan) {
		if ref := nf.RefOf(obj); isNamespace(ref) {
			names[ref.Name] = true
		} else if ref.Namespace != "" {
			names[ref.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func isNamespace(ref nf.Ref) bool { return ref.Group == "" && ref.Kind == "Namespace" }

// replaceable returns the object of an immutable-field error, if its package
// allows the object to be recreated.
func replaceable(objects []render.Planned, err error) (nf.Ref, bool) {
	if nf.ReasonOf(err) != nf.ReasonImmutable {
		return nf.Ref{}, false
	}
	for _, v := range nf.ViolationsOf(err) {
		for _, obj := range objects {
			if ref := nf.RefOf(obj.Object); obj.Recreate && ref.Key() == v.Object.Key() {
				return ref, true
			}
		}
	}
	return nf.Ref{}, false
}

// allowRecreation allows the recreation of those objects of a plan of which another plan
// allows it: the undoing of a change may recreate what the change has recreated.
func allowRecreation(plan, as render.Plan) {
	allowed := map[string]bool{}
	for _, stage := range as.Stages {
		for _, obj := range stage.Objects {
			allowed[nf.RefOf(obj.Object).Key()] = obj.Recreate
		}
	}
	for _, stage := range plan.Stages {
		for i, obj := range stage.Objects {
			stage.Objects[i].Recreate = obj.Recreate || allowed[nf.RefOf(obj.Object).Key()]
		}
	}
}

// located adds the file in the package, and the line, to violations about an
// object. The line is the field's, or the object's if the plan does not know
// it.
func located(err error, plan render.Plan) error {
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		return err
	}
	places := map[string]render.Planned{}
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			places[nf.RefOf(obj.Object).Key()] = obj
		}
	}
	for _, h := range plan.Hooks {
		places[nf.RefOf(h.Object).Key()] = h
	}
	for i, v := range violations {
		if at, ok := places[v.Object.Key()]; ok && v.File == "" {
			violations[i].File, violations[i].Line = at.File, at.LineOf(v.Field)
		}
	}
	return rewritten(err, violations)
}
