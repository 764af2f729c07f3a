package tosca

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// nameLabel selects the pods of a workload.
const nameLabel = "app.kubernetes.io/name"

// deployable translates a deployable unit of OS containers.
func (t *translator) deployable(w *workload) {
	t.properties(w.entity, "vdu_profile", "mcio_identification_data", "is_num_of_instances_cluster_based")
	w.selector = object{nameLabel: w.dns}
	t.oneOf(w.file, t.scope.property(w.entity, "is_num_of_instances_cluster_based"), "is_num_of_instances_cluster_based", "false")
	mcio := t.scope.property(w.entity, "mcio_identification_data")
	t.keys(w.file, mcio, "mcio_identification_data", "name", "type")
	if kind := t.oneOf(w.file, get(mcio, "type"), "the type of mcio_identification_data", kindDeployment, kindStatefulSet, kindDaemonSet); kind != "" {
		w.kind = kind
	}
	t.profile(w)
	seen := map[string]bool{}
	for key, value := range named(get(w.node, "requirements")) {
		name := scalar(cmp.Or(get(value, "node"), value))
		at := slices.IndexFunc(t.scope.nodes, func(e entity) bool { return e.name == name && t.scope.r.derives(e.typ, typeContainer) })
		switch {
		case key.Value != "container":
			t.fault(w.file, key, "%q: the requirement %q cannot be translated", w.entity.name, nf.Clip(key.Value, maxQuote))
		case at < 0:
			t.fault(w.file, value, "%q requires the container %q, which is not an OsContainer", w.entity.name, nf.Clip(name, maxQuote))
		default:
			w.containers = append(w.containers, t.container(t.scope.nodes[at], seen))
		}
	}
	if len(w.containers) == 0 {
		t.fault(w.file, w.key, "the VDU %q requires no container, so that there is nothing to run", w.entity.name)
	}
	if w.kind == kindStatefulSet {
		w.service = object{"clusterIP": "None", "selector": w.selector}
	}
}

// container translates an OS container.
func (t *translator) container(e entity, seen map[string]bool) object {
	t.properties(e, "requested_cpu_resources", "cpu_resource_limit", "requested_memory_resources", "memory_resource_limit", "requested_ephemeral_storage_resources",
		"ephemeral_storage_resource_limit", "extended_resource_requests", "huge_pages_resources")
	name := asLabel(cmp.Or(t.scope.text(e, "name"), e.name))
	if !isLabel(name) || seen[name] {
		t.fault(e.file, e.key, "the container %q needs another name: the pod has %q already, or it is not a DNS label", e.name, name)
	}
	seen[name] = true
	out := object{"name": name, "image": t.softwareImage(e)}
	requests, limits := object{}, object{}
	for _, q := range [...]struct {
		property, resource string
		into               object
	}{
		{"requested_cpu_resources", "cpu", requests},
		{"cpu_resource_limit", "cpu", limits},
		{"requested_memory_resources", "memory", requests},
		{"memory_resource_limit", "memory", limits},
		{"requested_ephemeral_storage_resources", "ephemeral-storage", requests},
		{"ephemeral_storage_resource_limit", "ephemeral-storage", limits},
	} {
		value := t.scope.property(e, q.property)
		switch {
		case isNull(value):
		case q.resource == "cpu":
			q.into[q.resource] = milliCPUs(int64(t.scope.number(e.file, value, q.property, 0)))
		default:
			q.into[q.resource] = t.size(e.file, value, q.property)
		}
	}
	t.extended(e, requests, limits)
	resources := object{}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	if len(resources) > 0 {
		out["resources"] = resources
	}
	return out
}

// extended adds extended resources and huge pages, whose limits are their requests.
func (t *translator) extended(e entity, requests, limits object) {
	add := func(at *yaml.Node, name string, value any) {
		if !labelKeyForm.MatchString(name) || requests[name] != nil {
			t.fault(e.file, at, "the resource %q is there twice, or cannot be one of Kubernetes", nf.Clip(name, maxQuote))
			return
		}
		requests[name], limits[name] = value, value
	}
	for item := range t.scope.list(e, "extended_resource_requests") {
		t.keys(e.file, item, "extended_resource_requests", "extended_resource", "amount")
		add(item, scalar(t.scope.resolve(get(item, "extended_resource"))), t.scope.number(e.file, get(item, "amount"), "amount", 0))
	}
	pages := t.scope.property(e, "huge_pages_resources")
	if !isNull(pages) && requests["cpu"] == nil && requests["memory"] == nil && limits["cpu"] == nil && limits["memory"] == nil {
		t.fault(e.file, pages, "huge pages need requested_cpu_resources or requested_memory_resources, too")
	}
	for item := range t.scope.r.list(e.file, pages, "huge_pages_resources") {
		t.keys(e.file, item, "huge_pages_resources", "hugepage_size", "requested_size")
		if page := t.size(e.file, get(item, "hugepage_size"), "hugepage_size"); page != "" {
			add(item, "hugepages-"+page, t.size(e.file, get(item, "requested_size"), "requested_size"))
		}
	}
}

// softwareImage returns the reference of the image of a container or a VDU.
func (t *translator) softwareImage(e entity) string {
	var image *yaml.Node
	for key, artifact := range pairs(get(e.node, "artifacts")) {
		file := cmp.Or(get(artifact, "file"), artifact)
		if typ := scalar(get(artifact, "type")); typ != "" && !t.scope.r.derives(typ, "tosca.artifacts.nfv.SwImage") || image != nil {
			t.fault(e.file, key, "the artifact %q of %q cannot be translated: a container has one software image", nf.Clip(key.Value, maxQuote), e.name)
			continue
		}
		t.oneOf(e.file, get(artifact, "properties", "container_format"), "container_format", containerFormats...)
		if image = file; t.inPackage(e, scalar(file)) {
			t.fault(e.file, file, "the image of %q is a file of the CSAR, which nodes cannot pull: load it into a registry, and name its reference here", e.name)
			return ""
		}
	}
	if image == nil {
		t.fault(e.file, e.key, "%q has no artifact of the type tosca.artifacts.nfv.SwImage with the reference of its image", e.name)
		return ""
	}
	return t.image(e.file, image)
}

var containerFormats = []string{"docker", "DOCKER", "oci", "OCI"}

func (t *translator) inPackage(e entity, name string) bool {
	_, atTop := t.scope.r.files[name]
	_, beside := t.scope.r.files[joined(e.file, name)]
	return atTop || beside || strings.HasPrefix(name, ".")
}

// compute translates a VDU whose software image is a container's.
func (t *translator) compute(w *workload) {
	data := t.scope.property(w.entity, "sw_image_data")
	format := scalar(t.scope.resolve(get(data, "container_format")))
	if !slices.Contains(containerFormats, format) {
		t.fault(w.file, w.key, "the VDU %q is not a container: its sw_image_data must have the container_format docker; a virtual machine cannot be translated", w.entity.name)
		return
	}
	t.properties(w.entity, "vdu_profile", "sw_image_data", "boot_order")
	w.selector = object{nameLabel: w.dns}
	t.profile(w)
	for key := range named(get(w.node, "requirements")) {
		t.fault(w.file, key, "%q: the requirement %q cannot be translated", w.entity.name, nf.Clip(key.Value, maxQuote))
	}
	out := object{"name": asLabel(w.dns)}
	if get(w.node, "artifacts") != nil {
		out["image"] = t.softwareImage(w.entity)
	} else {
		out["image"] = versioned(t, w.file, t.image(w.file, get(data, "name")), get(data, "version"))
	}
	if resources := t.virtualCompute(w); len(resources) > 0 {
		out["resources"] = object{"requests": resources, "limits": resources}
	}
	w.containers = []any{out}
}

// versioned returns the reference of an image with a version as its tag, unless it has a
// tag or a digest.
func versioned(t *translator, file, ref string, n *yaml.Node) string {
	n = t.scope.resolve(n)
	if scalar(n) == "" || ref == "" || strings.ContainsAny(ref[strings.LastIndex(ref, "/")+1:], ":@") {
		return ref
	}
	if ref += ":" + scalar(n); !imageForm.MatchString(ref) {
		t.fault(file, n, "the version %q of the image must be a tag", nf.Clip(scalar(n), maxQuote))
	}
	return ref
}

// virtualCompute returns the resources of the capability of a compute node.
func (t *translator) virtualCompute(w *workload) object {
	t.keys(w.file, get(w.node, "capabilities"), fmt.Sprintf("%q", w.entity.name), "virtual_compute")
	properties := get(w.node, "capabilities", "virtual_compute", "properties")
	t.keys(w.file, properties, "virtual_compute", "virtual_memory", "virtual_cpu")
	out := object{}
	cpu := t.scope.resolve(get(properties, "virtual_cpu"))
	if cpu != nil {
		t.keys(w.file, cpu, "virtual_cpu", "num_virtual_cpu", "virtual_cpu_pinning")
		out["cpu"] = t.cpus(w.file, cmp.Or(get(cpu, "num_virtual_cpu"), cpu), "num_virtual_cpu")
	}
	if memory := t.scope.resolve(get(properties, "virtual_memory")); memory != nil {
		t.keys(w.file, memory, "virtual_memory", "virtual_mem_size")
		out["memory"] = t.size(w.file, cmp.Or(get(memory, "virtual_mem_size"), memory), "virtual_mem_size")
	}
	t.pinning(w, t.scope.resolve(get(cpu, "virtual_cpu_pinning")), out)
	return out
}

// pinning checks that nodes can give a pod CPUs of its own: their static CPU manager does so
// for whole numbers of CPUs, if the requests of the pod are its limits.
func (t *translator) pinning(w *workload, n *yaml.Node, resources object) {
	t.keys(w.file, n, "virtual_cpu_pinning", "virtual_cpu_pinning_policy")
	if t.oneOf(w.file, get(n, "virtual_cpu_pinning_policy"), "virtual_cpu_pinning_policy", "static", "dynamic") != "static" {
		return
	}
	cpus, _ := resources["cpu"].(string)
	if memory, _ := resources["memory"].(string); cpus == "" || strings.HasSuffix(cpus, "m") || memory == "" {
		t.fault(w.file, n, "CPU pinning of the policy static needs a whole number in num_virtual_cpu, and virtual_mem_size")
	}
}

// profile translates what the profile of a VDU says of its pods among each other.
func (t *translator) profile(w *workload) {
	profile := t.scope.property(w.entity, "vdu_profile")
	t.keys(w.file, profile, "vdu_profile", "min_number_of_instances", "max_number_of_instances", "local_affinity_or_antiaffinity_rule")
	for rule := range t.scope.r.list(w.file, get(profile, "local_affinity_or_antiaffinity_rule"), "local_affinity_or_antiaffinity_rule") {
		t.keys(w.file, rule, "local_affinity_or_antiaffinity_rule", "type", "scope")
		kind := t.oneOf(w.file, get(rule, "type"), "the type of the rule", "affinity", "anti_affinity")
		if isNull(get(rule, "type")) {
			t.fault(w.file, rule, "a local_affinity_or_antiaffinity_rule needs the type affinity or anti_affinity")
			continue
		}
		t.place(kind == "anti_affinity", t.topology(w.file, get(rule, "scope"), rule, scalar(get(rule, "scope"))), w, w.selector)
	}
}
