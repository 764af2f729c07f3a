package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// attachMachine adds connections to the networks and interfaces of the template of
// a virtual machine. KubeVirt makes the annotation of the machine's pod from them,
// and requests the resources of the networks itself.
//
// KubeVirt passes only the MAC address of a connection to multus, and replaces the
// annotation of multus that the template has. It copies the others to the pod.
func (t target) attachMachine(namespace string, template map[string]any, connections []nf.Connection) nf.Violations {
	if descend(template, "metadata", "annotations")[networksAnnotation] != nil {
		return t.violation("metadata.annotations["+networksAnnotation+"]", "is replaced by KubeVirt; use spec.networks in place of it")
	}
	m, wrong := t.machine(descend(template, "spec"))
	for _, c := range connections {
		wrong = append(wrong, m.unsupported(c, t.Workload)...)
	}
	if len(wrong) > 0 {
		return wrong
	}
	m.keepPodNetwork()
	s := m.selections(namespace)
	given := len(s.list)
	added, wrong := s.add(t.Workload, connections)
	for i, c := range added {
		m.add(s.list[given+i]["interface"], c)
	}
	m.spec["networks"], m.devices["interfaces"] = m.networks, m.interfaces
	return append(wrong, t.annotate(template, connections)...)
}

// machine is the specification of a virtual machine instance. A network and its
// interface have the same name.
type machine struct {
	spec, devices        map[string]any
	networks, interfaces []any
}

// machine reads the specification of the workload's virtual machine instances.
func (t target) machine(spec map[string]any) (machine, nf.Violations) {
	m := machine{spec: spec, devices: ensure(ensure(spec, "domain"), "devices")}
	if m.devices == nil {
		return m, t.violation("spec.domain.devices", "must be an object")
	}
	var isList bool
	if m.networks, isList = spec["networks"].([]any); !isList && spec["networks"] != nil {
		return m, t.violation("spec.networks", "must be a list")
	}
	if m.interfaces, isList = m.devices["interfaces"].([]any); !isList && m.devices["interfaces"] != nil {
		return m, t.violation("spec.domain.devices.interfaces", "must be a list")
	}
	m.networks, m.interfaces = slices.Clone(m.networks), slices.Clone(m.interfaces)
	return m, nil
}

// unsupported reports the requests of a connection that KubeVirt drops. It passes those
// on that the connection has in annotations of its own.
func (machine) unsupported(c nf.Connection, w Workload) (wrong nf.Violations) {
	fault := func(field, hint string) {
		message := fmt.Sprintf("KubeVirt does not pass it to the network of %s; %s", w.Name(), hint)
		wrong = append(wrong, c.Violation(field, message))
	}
	if len(c.IPs) > 0 && !c.Annotated {
		fault("ips", "set the address in networkData of the machine's cloud-init volume")
	}
	if _, port := c.Selection["cni-args"]; port && len(c.IPs) == 0 && !c.Annotated {
		fault("mac", "it selects a port of the network, and a machine needs a network without ports")
	}
	if len(c.DefaultRoute) > 0 {
		fault("default_route", "set the route in networkData of the machine's cloud-init volume")
	}
	if c.Bandwidth != nil && !c.Annotated && *c.Bandwidth != (nf.Bandwidth{}) {
		fault("bandwidth", "set limits in the plugin bandwidth of the network's chain")
	}
	return wrong
}

// keepPodNetwork lists the network of the pod, if KubeVirt adds it by itself: it
// does so only while no network is listed.
func (m *machine) keepPodNetwork() {
	if len(m.networks) > 0 || len(m.interfaces) > 0 || m.devices["autoattachPodInterface"] == false {
		return
	}
	m.networks = []any{map[string]any{"name": "default", "pod": map[string]any{}}}
	m.interfaces = []any{map[string]any{"name": "default", "masquerade": map[string]any{}}}
}

// selections returns the networks as elements of the annotation that KubeVirt
// makes. Networks that are not of multus are elements without a name.
func (m *machine) selections(namespace string) *selections {
	s := &selections{namespace: namespace}
	for _, v := range m.networks {
		network, _ := v.(map[string]any)
		entry := map[string]any{"interface": network["name"]}
		if full, _ := descend(network, "multus")["networkName"].(string); full != "" {
			if in, name, both := strings.Cut(full, "/"); both {
				entry["namespace"], entry["name"] = in, name
			} else {
				entry["name"] = full
			}
		}
		for _, v := range m.interfaces {
			i, _ := v.(map[string]any)
			if mac, _ := i["macAddress"].(string); mac != "" && i["name"] == network["name"] {
				entry["mac"] = strings.ToLower(mac)
			}
		}
		s.list = append(s.list, entry)
	}
	s.used = make([]bool, len(s.list))
	return s
}

// add adds the network of a connection and its interface.
func (m *machine) add(name any, c nf.Connection) {
	binding := "bridge"
	if len(c.Resources) > 0 {
		binding = "sriov"
	}
	full := fmt.Sprintf("%v/%v", c.Selection["namespace"], c.Selection["name"])
	m.networks = append(m.networks, map[string]any{"name": name, "multus": map[string]any{"networkName": full}})
	i := map[string]any{"name": name, binding: map[string]any{}}
	if mac := c.Selection["mac"]; mac != nil {
		i["macAddress"] = mac
	}
	m.interfaces = append(m.interfaces, i)
}
