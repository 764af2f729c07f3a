package tosca

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// tackerVDU translates a VDU of Tacker's own type: its components (vnfcs) are the
// containers of one pod.
func (t *translator) tackerVDU(w *workload) {
	t.properties(w.entity, "namespace", "mapping_ports", "labels", "vnfcs", "service_type", "mgmt_driver", "config_drive")
	w.selector = object{"selector": w.dns}
	t.oneOf(w.file, t.scope.property(w.entity, "mgmt_driver"), "mgmt_driver", "noop")
	t.oneOf(w.file, t.scope.property(w.entity, "config_drive"), "config_drive", "false")
	if w.namespace = t.scope.text(w.entity, "namespace"); w.namespace != "" && !isLabel(w.namespace) {
		t.fault(w.file, t.scope.property(w.entity, "namespace"), "namespace must be a DNS label")
	}
	t.tackerLabels(w)
	vnfcs := t.scope.property(w.entity, "vnfcs")
	seen := map[string]bool{}
	for key, node := range pairs(vnfcs) {
		name := asLabel(key.Value)
		if !isLabel(name) || seen[name] {
			t.fault(w.file, key, "the component %q needs another name: the container %q is there, or is not a DNS label", nf.Clip(key.Value, maxQuote), name)
		}
		seen[name] = true
		w.containers = append(w.containers, t.component(w, name, key, node))
	}
	if len(w.containers) == 0 {
		t.fault(w.file, w.key, "the VDU %q has no vnfcs, so that it has no containers: a virtual machine cannot be translated", w.entity.name)
	}
	t.mappedPorts(w)
}

// tackerLabels reads labels in the form "key: value".
func (t *translator) tackerLabels(w *workload) {
	for item := range t.scope.list(w.entity, "labels") {
		text := scalar(item)
		for key, value := range pairs(item) { // without quotes, it is a mapping
			text = key.Value + ":" + scalar(value)
		}
		key, value, found := strings.Cut(text, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch _, taken := w.selector[key]; {
		case !found || !labelKeyForm.MatchString(key) || !valueForm.MatchString(value):
			t.fault(w.file, item, "a label must have the form \"key: value\", and be one of Kubernetes")
		case taken:
			t.fault(w.file, item, "the label %q is that which selects the pods", key)
		default:
			w.labels[key] = value
		}
	}
}

// component translates a component to a container.
func (t *translator) component(w *workload, name string, key, node *yaml.Node) object {
	t.keys(w.file, node, fmt.Sprintf("the component %q", key.Value), "num_cpus", "mem_size", "image", "config", "command", "args", "ports")
	out := object{"name": name, "imagePullPolicy": "IfNotPresent"}
	if image := get(node, "image"); image != nil {
		out["image"] = t.image(w.file, image)
	} else {
		t.fault(w.file, key, "the component %q has no image", key.Value)
	}
	resources := object{}
	if cpus := get(node, "num_cpus"); cpus != nil {
		resources["cpu"] = t.cpus(w.file, cpus, "num_cpus")
	}
	if size := get(node, "mem_size"); size != nil {
		resources["memory"] = t.size(w.file, size, "mem_size")
	}
	if len(resources) > 0 {
		out["resources"] = object{"limits": resources, "requests": resources}
	}
	for _, list := range [...]string{"command", "args"} {
		if n := get(node, list); n != nil {
			out[list] = t.texts(w.file, n, list)
		}
	}
	var ports []any
	for _, port := range t.texts(w.file, get(node, "ports"), "ports") {
		ports = append(ports, object{"containerPort": t.port(w.file, get(node, "ports"), port.(string), "ports")})
	}
	if len(ports) > 0 {
		out["ports"] = ports
	}
	if config := get(node, "config"); config != nil {
		out["env"] = t.config(w, config)
	}
	return out
}

// config adds lines of the form "key: value" to the ConfigMap of the VDU, and returns the
// variables of the container that refer to them.
func (t *translator) config(w *workload, n *yaml.Node) []any {
	n = t.scope.resolve(n)
	var out []any
	if n == nil || n.Kind != yaml.ScalarNode {
		t.fault(w.file, n, "config must be a text with lines of the form \"key: value\"")
		return nil
	}
	seen := map[string]bool{}
	for line := range strings.Lines(n.Value) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		former, taken := w.config[key]
		switch {
		case !found || !envForm.MatchString(key):
			t.fault(w.file, n, "config must have lines of the form \"key: value\", with keys that can be variables; %q is not", nf.Clip(key, maxQuote))
			return nil
		case seen[key] || taken && former != value:
			t.fault(w.file, n, "config has the key %q twice; the components of a VDU share one ConfigMap", key)
			return nil
		}
		if w.config == nil {
			w.config = map[string]string{}
		}
		seen[key], w.config[key] = true, value
		out = append(out, object{"name": key, "valueFrom": object{"configMapKeyRef": object{"name": w.dns, "key": key}}})
	}
	return out
}

// mappedPorts makes the Service of a VDU. A port is "80:8080": that of the Service, and
// that of the container.
func (t *translator) mappedPorts(w *workload) {
	n := t.scope.property(w.entity, "mapping_ports")
	var ports []any
	seen := map[int]bool{}
	for _, item := range t.texts(w.file, n, "mapping_ports") {
		outer, inner, both := strings.Cut(item.(string), ":")
		if !both {
			inner = outer
		}
		port, target := t.port(w.file, n, outer, "mapping_ports"), t.port(w.file, n, inner, "mapping_ports")
		if seen[port] && port > 0 {
			t.fault(w.file, n, "mapping_ports has the port %d twice", port)
		}
		seen[port] = true
		ports = append(ports, object{"name": fmt.Sprintf("tcp-%d", port), "port": port, "targetPort": target, "protocol": "TCP"})
	}
	kind := t.oneOf(w.file, t.scope.property(w.entity, "service_type"), "service_type", "ClusterIP", "NodePort")
	if len(ports) == 0 {
		if kind != "" {
			t.fault(w.file, w.key, "the VDU %q has a service_type, but no mapping_ports", w.entity.name)
		}
		return
	}
	w.service = object{"ports": ports, "selector": w.selector}
	if kind != "" {
		w.service["type"] = kind
	}
}

// tackerCP attaches the pods of a VDU to a network that exists in the cluster.
func (t *translator) tackerCP(e entity) {
	t.properties(e, "management", "order")
	t.oneOf(e.file, t.scope.property(e, "management"), "management", "true", "false")
	point := t.f.ConnectionPoints[e.name]
	w := t.workloads[point.VDU]
	if w == nil {
		t.fault(e.file, e.key, "the connection point %q is not bound to a VDU", e.name)
		return
	}
	network := t.f.Links[point.Link].Network
	if !isLabel(network) {
		t.fault(e.file, e.key, "the connection point %q needs a virtual link with a network_name that is a DNS label", e.name)
		return
	}
	if slices.Contains(w.networks, network) {
		t.fault(e.file, e.key, "the VDU %q has two connection points in the network %q", point.VDU, network)
		return
	}
	w.networks = append(w.networks, network)
}

// tackerScaling makes the autoscaler of VDUs.
func (t *translator) tackerScaling(p entity) {
	t.keys(p.file, get(p.node, "properties"), fmt.Sprintf("%q", p.name), "min_instances", "max_instances", "target_cpu_utilization_percentage")
	s := t.scope
	least := s.number(p.file, s.property(p, "min_instances"), "min_instances", 1)
	most := s.number(p.file, s.property(p, "max_instances"), "max_instances", 0)
	use := s.number(p.file, s.property(p, "target_cpu_utilization_percentage"), "target_cpu_utilization_percentage", 0)
	if most < 1 || least < 1 || least > most || use < 1 {
		t.fault(p.file, p.key, "%q needs max_instances, not less than min_instances, and target_cpu_utilization_percentage, each at least 1", p.name)
	}
	for target := range t.scope.r.list(p.file, get(p.node, "targets"), "targets") {
		w := t.workloads[scalar(target)]
		switch {
		case w == nil:
			t.fault(p.file, target, "%q is not a VDU", nf.Clip(scalar(target), maxQuote))
			continue
		case w.scaler != nil:
			t.fault(p.file, target, "the VDU %q has another scaling policy; Kubernetes has one autoscaler of a workload", scalar(target))
			continue
		case slices.ContainsFunc(w.containers, withoutCPU):
			t.fault(p.file, target, "the VDU %q needs num_cpus in each component: the use of CPUs is measured by it", scalar(target))
			continue
		}
		w.scaler = object{
			"minReplicas": least, "maxReplicas": most, "scaleTargetRef": object{"apiVersion": "apps/v1", "kind": w.kind, "name": w.dns},
			"metrics": []any{object{"type": "Resource", "resource": object{"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": use}}}},
		}
	}
}

func withoutCPU(container any) bool {
	resources, _ := container.(object)["resources"].(object)
	requests, _ := resources["requests"].(object)
	return requests["cpu"] == nil
}
