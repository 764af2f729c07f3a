package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Compute returns the plan with compute profiles of its workloads. The resources of a profile
// replace those of the container that has the same names; its labels of nodes, its spread and
// its tolerations are added to those of the pods. A workload that has got its profile already
// is not changed, so that Compute can be repeated. Hooks and shared objects have no profiles.
//
// The error is nf.Violations.
func (p Plan) Compute(asked []Compute) (Plan, error) {
	out := p.clone()
	all := out.targets()
	given := map[*Planned]bool{}
	var wrong nf.Violations
	for _, c := range asked {
		chosen, fault := choose(all, c.Workload)
		switch {
		case fault != "" && c.Optional:
			continue
		case fault != "":
			wrong = append(wrong, c.violation("workload", "%s", fault))
			continue
		}
		for _, t := range chosen {
			if given[t.planned] {
				wrong = append(wrong, c.violation("workload", "%s has another compute profile", t.Workload.Name()))
				continue
			}
			if given[t.planned] = true; t.planned.Computed {
				continue
			}
			t.planned.Object, t.planned.Computed = t.planned.Object.DeepCopy(), true
			wrong = append(wrong, t.compute(c)...)
		}
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	return out, nil
}

// compute gives the pods of a workload a profile.
func (t target) compute(c Compute) nf.Violations {
	template := t.planned.Object.Object
	if len(t.kind.template) > 0 {
		template = descend(template, t.kind.template...)
	}
	spec := ensure(template, "spec")
	if spec == nil {
		return t.violation("", "is not a template of pods")
	}
	wrong := t.requireNodes(spec, c.Profile)
	wrong = append(wrong, t.spread(spec, template, c)...)
	wrong = append(wrong, t.tolerate(spec, c.Profile.Tolerations)...)
	if t.kind.machine {
		return append(wrong, t.sizeMachine(spec, c)...)
	}
	return append(wrong, t.sizeContainer(spec, c)...)
}

// sizeContainer gives a container the resources of a profile.
func (t target) sizeContainer(spec map[string]any, c Compute) nf.Violations {
	requests, limits := resourcesOf(c.Profile)
	if c.Container == "" && len(requests)+len(limits) == 0 {
		return nil
	}
	containers, _ := spec["containers"].([]any)
	var names []string
	index := -1
	for i, item := range containers {
		container, _ := item.(map[string]any)
		name := fmt.Sprint(container["name"])
		if names = append(names, name); index < 0 && container != nil && (c.Container == "" || c.Container == name) {
			index = i
		}
	}
	if index < 0 && c.Container == "" {
		return nf.Violations{c.violation("workload", "%s has no containers", t.Workload.Name())}
	}
	if index < 0 {
		return nf.Violations{c.violation("container", "%s has no container %q; its containers are %s", t.Workload.Name(), c.Container, strings.Join(names, ", "))}
	}
	container, _ := containers[index].(map[string]any)
	if len(requests)+len(limits) == 0 {
		return nil
	}
	resources := ensure(container, "resources")
	if !overlay(resources, "requests", requests) || !overlay(resources, "limits", limits) {
		return t.violation(fmt.Sprintf("spec.containers[%d].resources", index), "cannot hold the resources of a compute profile")
	}
	return t.checkResources(resources, c, "container "+names[index])
}

// resourcesOf returns the requests and the limits of a container with a profile. Of huge pages
// and devices, they must be equal.
func resourcesOf(p nf.ComputeProfile) (requests, limits map[string]string) {
	both := map[string]string{}
	for size, amount := range p.HugePages {
		both["hugepages-"+size] = amount
	}
	for name, count := range p.Devices {
		both[name] = fmt.Sprint(count)
	}
	requests, limits = maps.Clone(both), both
	maps.Copy(requests, p.Requests)
	maps.Copy(limits, p.Limits)
	return requests, limits
}

// overlay sets the entries of a map in a field. It reports whether the field can be one.
func overlay(m map[string]any, field string, entries map[string]string) bool {
	if len(entries) == 0 {
		return true
	}
	to := ensure(m, field)
	for name, v := range entries {
		if to == nil {
			return false
		}
		to[name] = v
	}
	return true
}

// checkResources checks what a profile and the workload's own resources amount to. The rest
// of the rules is that of the region.
func (t target) checkResources(resources map[string]any, c Compute, of string) (wrong nf.Violations) {
	requests, limits := descend(resources, "requests"), descend(resources, "limits")
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if limit, has := limits[name]; has && above(requests[name], limit) {
			wrong = append(wrong, c.violation("profile", "requests %v of %s, and %s of %s has the limit %v", requests[name], name, of, t.Workload.Name(), limit))
		}
	}
	has := func(name string) bool { return requests[name] != nil || limits[name] != nil }
	if len(c.Profile.HugePages) > 0 && !has("cpu") && !has("memory") {
		wrong = append(wrong, c.violation("profile", "has huge pages, which require cpu or memory: neither it nor %s of %s requests them", of, t.Workload.Name()))
	}
	return wrong
}

// requireNodes requires the labels of a profile of the nodes. Terms are alternatives, so that
// each one that the pods have gets them.
func (t target) requireNodes(spec map[string]any, p nf.ComputeProfile) nf.Violations {
	alternatives := p.FlavorNodes
	if len(alternatives) == 0 {
		alternatives = []map[string]string{nil}
	}
	required := make([][]any, len(alternatives))
	for i, labels := range alternatives {
		if required[i] = append(expressions(p.Node), expressions(labels)...); len(required[i]) == 0 {
			return nil // every node will do
		}
	}
	const path = "requiredDuringSchedulingIgnoredDuringExecution"
	selector := ensure(ensure(ensure(spec, "affinity"), "nodeAffinity"), path)
	own, isList := selector["nodeSelectorTerms"].([]any)
	if selector == nil || !isList && selector["nodeSelectorTerms"] != nil {
		return t.violation("spec.affinity", "cannot hold the labels of a compute profile")
	}
	if len(own) == 0 {
		own = []any{map[string]any{}}
	}
	var terms []any
	for _, item := range own {
		for _, more := range required {
			term, _ := item.(map[string]any)
			out := maps.Clone(term)
			if out == nil {
				out = map[string]any{}
			}
			has, _ := out["matchExpressions"].([]any)
			out["matchExpressions"] = append(slices.Clone(has), more...)
			terms = append(terms, out)
		}
	}
	selector["nodeSelectorTerms"] = terms
	return nil
}

// expressions returns what nodes with labels match.
func expressions(labels map[string]string) (out []any) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		e := map[string]any{"key": key, "operator": "In", "values": []any{labels[key]}}
		if labels[key] == nf.AnyValue {
			e = map[string]any{"key": key, "operator": "Exists"}
		}
		out = append(out, e)
	}
	return out
}

// spread spreads the pods of a workload over nodes or zones, unless its own constraints do so.
func (t target) spread(spec, template map[string]any, c Compute) nf.Violations {
	key := map[nf.ComputeSpread]string{nf.SpreadNodes: "kubernetes.io/hostname", nf.SpreadZones: "topology.kubernetes.io/zone"}[c.Profile.Spread]
	if key == "" {
		return nil
	}
	constraints, isList := spec["topologySpreadConstraints"].([]any)
	if !isList && spec["topologySpreadConstraints"] != nil {
		return t.violation("spec.topologySpreadConstraints", "must be a list")
	}
	for _, item := range constraints {
		if own, _ := item.(map[string]any); own["topologyKey"] == key && own["whenUnsatisfiable"] != "ScheduleAnyway" {
			return nil // Kubernetes rejects a second one
		}
	}
	labels := descend(t.planned.Object.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		labels = maps.Clone(descend(template, "metadata", "labels"))
		maps.DeleteFunc(labels, func(name string, _ any) bool { return strings.HasPrefix(name, nf.ReservedPrefix) })
	}
	if len(labels) == 0 {
		return nf.Violations{c.violation("profile", "spreads pods, and the pods of %s have no labels", t.Workload.Name())}
	}
	spec["topologySpreadConstraints"] = append(slices.Clone(constraints), map[string]any{
		"maxSkew": int64(1), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": map[string]any{"matchLabels": maps.Clone(labels)},
	})
	return nil
}

// tolerate adds tolerations to those of the pods.
func (t target) tolerate(spec map[string]any, more []nf.Toleration) nf.Violations {
	all, isList := spec["tolerations"].([]any)
	if !isList && spec["tolerations"] != nil {
		return t.violation("spec.tolerations", "must be a list")
	}
	all = slices.Clone(all)
	for _, toleration := range more {
		item := map[string]any{}
		for name, text := range map[string]string{"key": toleration.Key, "operator": toleration.Operator, "value": toleration.Value, "effect": toleration.Effect} {
			if text != "" {
				item[name] = text
			}
		}
		if !slices.ContainsFunc(all, func(has any) bool { return reflect.DeepEqual(has, any(item)) }) {
			all = append(all, item)
		}
	}
	if len(more) > 0 {
		spec["tolerations"] = all
	}
	return nil
}
