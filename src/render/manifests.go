package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Manifests returns the objects of the plan in the order in which they are
// applied, and then the hooks, each as content shows it: Masked or Whole.
func (p Plan) Manifests(content func(*unstructured.Unstructured) map[string]any) []nf.Manifest {
	var out []nf.Manifest
	show := func(stage string, of Planned) {
		out = append(out, nf.Manifest{Stage: stage, File: of.File, Line: of.Line, Events: of.Events, Object: content(of.Object)})
	}
	for _, stage := range p.Stages {
		for _, of := range stage.Objects {
			show(stage.Name, of)
		}
	}
	for _, hook := range p.Hooks {
		show("", hook)
	}
	return out
}

// Masked returns a function that copies an object, and masks the redactor's values
// and the values of a Secret.
func Masked(secrets nf.Redactor) func(*unstructured.Unstructured) map[string]any {
	return func(u *unstructured.Unstructured) map[string]any { return masked(u, secrets) }
}

// Whole returns the content of an object, which the caller must not change.
func Whole(u *unstructured.Unstructured) map[string]any { return u.Object }

func masked(u *unstructured.Unstructured, secrets nf.Redactor) map[string]any {
	out, _ := secrets.Value(u.Object).(map[string]any)
	if u.GetKind() != "Secret" || u.GetAPIVersion() != "v1" {
		return out
	}
	for _, field := range [...]string{"data", "stringData"} {
		values, _ := out[field].(map[string]any)
		for name := range values {
			values[name] = nf.Masked
		}
	}
	unstructured.RemoveNestedField(out, "metadata", "annotations", nf.AppliedAnnotation)
	return out
}
