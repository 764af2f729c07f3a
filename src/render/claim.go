package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Claim is a PersistentVolumeClaim that binds a volume.
type Claim struct {
	nf.VolumeClaim

	Binding nf.Binding // that asks for it
}

// Claim returns the plan with its claims bound to volumes. A claim that the plan does not
// have is added in front, with the owner and the labels. The error is nf.Violations if a
// claim does not fit its volume: its access modes, its size, its mode or its class.
func (p Plan) Claim(claims []Claim, owner nf.Subject, labels map[string]string) (Plan, error) {
	out := p.clone()
	var wrong nf.Violations
	var missing []Planned
	for _, c := range claims {
		planned := out.claim(c.Binding.Claim)
		if planned == nil {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": p.Namespace, "name": c.Binding.Claim}, "spec": map[string]any{},
			}}
			c.bind(obj)
			Own(obj, owner, labels)
			missing = append(missing, Planned{Object: obj, Wait: WaitApplied})
			continue
		}
		planned.Object = planned.Object.DeepCopy()
		wrong = append(wrong, c.check(planned)...)
		c.bind(planned.Object)
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	if len(missing) > 0 {
		out.Stages = slices.Insert(out.Stages, 0, Stage{Name: "volumes", Objects: missing, Prelude: true})
	}
	return out, nil
}

// claim returns the claim with the name in the namespace of the plan, or nil.
func (p Plan) claim(name string) *Planned {
	for i := range p.Stages {
		for j := range p.Stages[i].Objects {
			planned := &p.Stages[i].Objects[j]
			obj, namespace := planned.Object, planned.Object.GetNamespace()
			if obj.GetAPIVersion() == "v1" && obj.GetKind() == "PersistentVolumeClaim" && obj.GetName() == name && (namespace == "" || namespace == p.Namespace) {
				return planned
			}
		}
	}
	return nil
}

// check returns a violation for each field of a claim that does not fit the volume.
func (c Claim) check(planned *Planned) (wrong nf.Violations) {
	spec := descend(planned.Object.Object, "spec")
	refuse := func(format string, args ...any) {
		v := c.Binding.At.Violation("claim", fmt.Sprintf("PersistentVolumeClaim %s ", c.Binding.Claim)+fmt.Sprintf(format, args...))
		if v.File == "" { // of the request: the package has the claim
			v.File, v.Line = planned.File, planned.Line
		}
		wrong = append(wrong, v)
	}
	modes, _, _ := unstructured.NestedStringSlice(spec, "accessModes")
	for _, mode := range modes {
		if !slices.Contains(c.AccessModes, mode) {
			refuse("has the access mode %s, and the volume has %v", mode, c.AccessModes)
		}
	}
	if storage := descend(spec, "resources", "requests")["storage"]; storage != nil {
		asked, err := resource.ParseQuantity(fmt.Sprint(storage))
		if has, _ := resource.ParseQuantity(c.Size); err == nil && asked.Cmp(has) > 0 {
			refuse("requests %v, and the volume has %s", storage, c.Size)
		}
	}
	for _, f := range []struct{ field, volume, otherwise string }{
		{"volumeMode", c.Mode, "Filesystem"}, {"storageClassName", c.Class, c.Class}, {"volumeName", c.PV, c.PV},
	} {
		has, there := spec[f.field].(string)
		if !there {
			has = f.otherwise
		}
		if has != f.volume {
			refuse("has the %s %q, and the volume %q", f.field, has, f.volume)
		}
	}
	if spec["selector"] != nil {
		refuse("has a selector, and cannot be bound to a given volume")
	}
	return wrong
}

// bind has a claim bind the volume.
func (c Claim) bind(obj *unstructured.Unstructured) {
	spec := ensure(obj.Object, "spec")
	spec["volumeName"], spec["storageClassName"] = c.PV, c.Class
	if c.Mode != "" {
		spec["volumeMode"] = c.Mode
	}
	if spec["accessModes"] == nil {
		modes := make([]any, len(c.AccessModes))
		for i, mode := range c.AccessModes {
			modes[i] = mode
		}
		spec["accessModes"] = modes
	}
	ensure(ensure(spec, "resources"), "requests")["storage"] = c.Size
}
