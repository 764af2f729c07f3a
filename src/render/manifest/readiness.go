package manifest

import (
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/readiness"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// checkReadiness reports rules for kinds of which the package has no document. A
// document whose kind depends on a variable may be of any kind.
func (p *parsedPackage) checkReadiness(r *report) {
	has := map[string]bool{} // "Kind.group"
	for _, d := range slices.Concat(p.documents...) {
		version, kind := get(d.root, "apiVersion"), get(d.root, "kind")
		if version == nil || kind == nil {
			continue
		}
		if strings.Contains(version.Value+kind.Value, "$") {
			return
		}
		group, _, _ := strings.Cut(version.Value, "/")
		has[kind.Value+"."+group] = true
	}
	for _, rule := range p.meta.readiness {
		for _, group := range rule.Groups {
			for _, kind := range rule.Kinds {
				if !has[kind+"."+group] {
					r.add(place{rule.File, rule.Line}, "readiness", "the package has no object of kind %s in group %s", kind, group)
				}
			}
		}
	}
}

// annotate adds to each object the first rule for its kind.
func (p *parsedPackage) annotate(objects []render.Object) {
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		i := slices.IndexFunc(p.meta.readiness, func(rule *readiness.Rule) bool { return rule.Matches(gvk.Group, gvk.Version, gvk.Kind, nil) })
		if i >= 0 {
			render.Annotate(o.Unstructured, readiness.Annotation, p.meta.readiness[i].Judgment.Annotation())
		}
	}
}
