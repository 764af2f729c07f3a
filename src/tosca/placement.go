package tosca

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func joined(file, name string) string { return path.Join(path.Dir(file), name) }

// policies translates the policies that are not about levels.
func (t *translator) policies() {
	for _, p := range t.scope.policies {
		r := t.scope.r
		switch {
		case r.derives(p.typ, typeLevels, typeVDULevels, typeInitialDelta, typeAspects, typeAspectDeltas): // the number of pods
		case r.derives(p.typ, typeAffinity, typeAntiAffinity):
			t.rule(p)
		case r.derives(p.typ, "tosca.policies.tacker.Scaling", "tosca.policy.tacker.Scaling"):
			t.tackerScaling(p)
		default:
			t.fault(p.file, p.key, "the policy %q of the type %q cannot be translated", p.name, nf.Clip(p.typ, maxQuote))
		}
	}
	for _, g := range t.scope.groups {
		if !t.scope.r.derives(g.typ, typePlacement) {
			t.fault(g.file, g.key, "the group %q of the type %q cannot be translated", g.name, nf.Clip(g.typ, maxQuote))
		}
	}
}

// rule translates a rule of affinity. One VDU is placed by its own pods. Among several,
// affinity is a label that all their pods have and require, so that the first pod can be
// placed; anti-affinity keeps the pods of each away from those of the others.
func (t *translator) rule(p entity) {
	at := slices.IndexFunc(t.f.Placement, func(r PlacementRule) bool { return r.Name == p.name })
	if at < 0 {
		t.fault(p.file, p.key, "the rule %q has no VDU", p.name)
		return
	}
	t.keys(p.file, get(p.node, "properties"), fmt.Sprintf("%q", p.name), "scope", "description")
	rule := t.f.Placement[at]
	key := t.topology(p.file, get(p.node, "properties", "scope"), p.key, rule.Scope)
	label := "placement-" + asLabel(p.name)
	if !labelKeyForm.MatchString(label) {
		t.fault(p.file, p.key, "the rule %q needs a shorter name, of which a label is made", p.name)
	}
	for i, vdu := range rule.VDUs {
		w := t.workloads[vdu]
		switch {
		case len(rule.VDUs) == 1:
			t.place(rule.Anti, key, w, w.selector)
		case !rule.Anti:
			w.labels[label] = "true"
			t.place(false, key, w, object{label: "true"})
		default:
			for _, other := range slices.Delete(slices.Clone(rule.VDUs), i, i+1) {
				t.place(true, key, w, t.workloads[other].selector)
			}
		}
	}
}

// topology returns the label of nodes that a scope stands for.
func (t *translator) topology(file string, n, absent *yaml.Node, scope string) string {
	switch scope {
	case "nfvi_node":
		return "kubernetes.io/hostname"
	case "zone":
		return "topology.kubernetes.io/zone"
	}
	t.fault(file, cmp.Or(n, absent), "the scope %q cannot be translated; use nfvi_node or zone", nf.Clip(scope, maxQuote))
	return ""
}

// maxTerms limits the terms of a workload, whose number grows with the square of the
// VDUs of a rule.
const maxTerms = 200

// place requires that pods are placed with, or apart from, those that labels select.
func (t *translator) place(anti bool, topology string, w *workload, labels object) {
	kind := "podAffinity"
	if anti {
		kind = "podAntiAffinity"
	}
	if len(w.affinity[kind]) == maxTerms {
		t.fault(w.file, w.key, "the rules for the pods of the VDU %q have more than %d terms", w.entity.name, maxTerms)
		return
	}
	w.affinity[kind] = append(w.affinity[kind], object{"labelSelector": object{"matchLabels": labels}, "topologyKey": topology})
}

// cpProperties are the properties of connection points that describe, or have the only
// value that a pod can have.
var cpProperties = []string{"layer_protocols", "role", "order", "protocol", "trunk_mode", "vnic_type"}

// cpProtocols faults addresses of connection points: the networks of pods assign them.
func (t *translator) cpProtocols(e entity) {
	t.oneOf(e.file, t.scope.property(e, "trunk_mode"), "trunk_mode", "false")
	t.oneOf(e.file, t.scope.property(e, "vnic_type"), "vnic_type", "normal")
	for item := range t.scope.list(e, "protocol") {
		t.keys(e.file, item, "protocol", "associated_layer_protocol")
	}
}

// vduCP attaches the pods of a VDU to the network that has the name of the virtual link.
// Without a link, the pods have the network of the cluster, and the networks of the
// request.
func (t *translator) vduCP(e entity) {
	t.properties(e, cpProperties...)
	t.cpProtocols(e)
	point := t.f.ConnectionPoints[e.name]
	w := t.workloads[point.VDU]
	if w == nil {
		t.fault(e.file, e.key, "the connection point %q is not bound to a VDU", e.name)
		return
	}
	if point.Link == "" {
		if to := linkOf(e); to != nil {
			t.fault(e.file, to, "the connection point %q has the link %q, which is not a virtual link of the VNF", e.name, nf.Clip(scalar(to), maxQuote))
		}
		return
	}
	network := asLabel(point.Link)
	if !isLabel(network) {
		t.fault(e.file, e.key, "the virtual link %q would be the network %q, which is not a DNS label", point.Link, network)
	}
	a := Attachment{Network: network, Workload: w.kind + "/" + w.dns}
	if point.Order > 0 {
		a.Interface = fmt.Sprintf("net%d", point.Order)
	}
	t.networks = append(t.networks, a)
}

// virtualCP translates a virtual connection point to a Service of the pods of its
// targets. An external one has ports of the nodes.
func (t *translator) virtualCP(e entity) {
	t.properties(e, append(slices.Clone(cpProperties), "additionalServiceData", "additional_service_data")...)
	t.cpProtocols(e)
	name := asLabel(e.name)
	selector, label := object{}, "virtual-cp-"+name
	var targets []*workload
	for key, value := range named(get(e.node, "requirements")) {
		w := t.workloads[scalar(cmp.Or(get(value, "node"), value))]
		if key.Value != "target" || w == nil {
			t.fault(e.file, key, "the requirement %q of the connection point %q cannot be translated: it must be target, with a VDU", nf.Clip(key.Value, maxQuote), e.name)
			continue
		}
		targets = append(targets, w)
	}
	switch len(targets) {
	case 0:
		t.fault(e.file, e.key, "the connection point %q has no target", e.name)
	case 1:
		selector = targets[0].selector
	default:
		for _, w := range targets {
			w.labels[label] = "true"
		}
		selector[label] = "true"
	}
	if !isLabel(label) {
		t.fault(e.file, e.key, "the connection point %q needs a shorter name, of which a DNS label is made", e.name)
	}
	spec := object{"selector": selector, "ports": t.servicePorts(e)}
	if t.f.ConnectionPoints[e.name].External != "" {
		spec["type"] = "NodePort"
	}
	t.services = append(t.services, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": spec})
}

// servicePorts returns the ports of a virtual connection point.
func (t *translator) servicePorts(e entity) []any {
	var out []any
	seen := map[string]bool{}
	data := cmp.Or(t.scope.property(e, "additionalServiceData"), t.scope.property(e, "additional_service_data"))
	for item := range t.scope.r.list(e.file, data, "additionalServiceData") {
		t.keys(e.file, item, "additionalServiceData", "portData")
		for port := range t.scope.r.list(e.file, get(item, "portData"), "portData") {
			t.keys(e.file, port, "portData", "name", "protocol", "port", "portConfigurable")
			t.oneOf(e.file, get(port, "portConfigurable"), "portConfigurable", "false")
			name := asLabel(scalar(t.scope.resolve(get(port, "name"))))
			if !isLabel(name) || seen[name] {
				t.fault(e.file, port, "a port of %q needs a name of its own", e.name)
			}
			seen[name] = true
			number := t.port(e.file, port, scalar(t.scope.resolve(get(port, "port"))), "port")
			protocol := strings.ToUpper(t.oneOf(e.file, get(port, "protocol"), "protocol", "TCP", "UDP", "SCTP", "tcp", "udp", "sctp"))
			out = append(out, object{"name": name, "port": number, "targetPort": number, "protocol": cmp.Or(protocol, "TCP")})
		}
	}
	if len(out) == 0 {
		t.fault(e.file, e.key, "the connection point %q has no portData, so that it has no port", e.name)
	}
	return out
}
