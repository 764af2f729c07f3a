package render

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sizeMachine gives a virtual machine of KubeVirt the resources of a profile. KubeVirt gives
// them to its pod. Huge pages are the machine's memory.
func (t target) sizeMachine(spec map[string]any, c Compute) (wrong nf.Violations) {
	name, p := t.Workload.Name(), c.Profile
	refuse := func(field, hint string) {
		wrong = append(wrong, c.violation(field, "%s is a virtual machine, which cannot have %s", name, hint))
	}
	if c.Container != "" {
		refuse("container", "a compute profile for one container")
	}
	if len(p.Devices) > 0 {
		refuse("profile", "a compute profile with devices: its spec.domain.devices names them")
	}
	if p.Requests["ephemeral-storage"]+p.Limits["ephemeral-storage"] != "" {
		refuse("profile", "a compute profile with ephemeral-storage")
	}
	if len(p.HugePages) > 1 {
		refuse("profile", "a compute profile with huge pages of two sizes")
	}
	sized := len(p.Requests)+len(p.Limits)+len(p.HugePages) > 0
	if instancetype := descend(t.planned.Object.Object, "spec", "instancetype"); sized && instancetype != nil {
		refuse("profile", "a compute profile with resources, because it has an instancetype")
	}
	if len(wrong) > 0 || !sized {
		return wrong
	}
	domain := ensure(spec, "domain")
	var resources map[string]any
	if len(p.Requests)+len(p.Limits) > 0 {
		resources = ensure(domain, "resources")
	}
	if !overlay(resources, "requests", p.Requests) || !overlay(resources, "limits", p.Limits) {
		return t.violation("spec.domain.resources", "cannot hold the resources of a compute profile")
	}
	for _, size := range slices.Sorted(maps.Keys(p.HugePages)) {
		memory := ensure(domain, "memory")
		pages := ensure(memory, "hugepages")
		if pages == nil {
			return t.violation("spec.domain.memory", "cannot hold the huge pages of a compute profile")
		}
		pages["pageSize"], memory["guest"] = size, p.HugePages[size]
	}
	q := c
	q.Profile.HugePages = nil // KubeVirt requests them for the pod
	return t.checkResources(resources, q, "the domain")
}
