package tosca

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Translation is a flavor in the terms of Kubernetes.
type Translation struct {
	Manifests []byte       // YAML documents, in the order of their creation
	Networks  []Attachment // of the workloads to networks of the service
	Warnings  []string     // of the descriptor's topology
}

// Attachment attaches a workload to a network.
type Attachment struct {
	Network   string // name of the network: that of the virtual link
	Workload  string // Deployment/web
	Interface string // in the pod
}

// Translate translates the VDUs of a flavor to manifests, with the pods of an
// instantiation level. An empty flavor is the only one; an empty level is the default
// one. The same descriptor gives the same bytes. Translate returns nf.Invalid with a
// violation for each part of the flavor that cannot be translated.
func Translate(files map[string][]byte, entry, flavor, level string) (Translation, error) {
	top, scopes, err := read(files, entry)
	if err != nil {
		return Translation{}, err
	}
	f, err := top.Flavor(flavor)
	if err != nil {
		return Translation{}, err
	}
	counts, err := f.Counts(level)
	if err != nil {
		return Translation{}, err
	}
	t := &translator{scope: scopes[f.ID], f: f, counts: counts, workloads: map[string]*workload{}}
	return t.translate()
}

// object is an object of Kubernetes, or a part of one.
type object = map[string]any

// translator translates one flavor.
type translator struct {
	scope     *scope
	f         Flavor
	counts    map[string]int
	workloads map[string]*workload // by VDU
	order     []string             // the VDUs, in the order of the descriptor
	services  []object
	networks  []Attachment
}

// workload is what a VDU becomes.
type workload struct {
	entity

	dns        string // name of the objects
	kind       string
	namespace  string
	labels     object // of the pods, in addition to those that select them
	selector   object
	containers []any
	config     map[string]string // of the ConfigMap; nil: there is none
	service    object            // of the VDU itself; nil: there is none
	scaler     object            // nil: there is none
	affinity   map[string][]any  // required terms by podAffinity and podAntiAffinity
	networks   []string          // of the annotation of multus
}

func (t *translator) fault(file string, at *yaml.Node, format string, args ...any) {
	t.scope.r.fault(file, at, format, args...)
}

// keys faults each key of a mapping that is not one of the given ones. It faults any value
// but a mapping and null.
func (t *translator) keys(file string, n *yaml.Node, what string, known ...string) {
	for key := range t.scope.r.mapping(file, n, what) {
		if !slices.Contains(known, key.Value) {
			t.fault(file, key, "%s: %q cannot be translated; use one of %s", what, nf.Clip(key.Value, maxQuote), strings.Join(known, ", "))
		}
	}
}

// properties faults each property of a node that is not translated and not a
// description.
func (t *translator) properties(e entity, known ...string) {
	t.keys(e.file, get(e.node, "properties"), fmt.Sprintf("%q", e.name), append([]string{"name", "description"}, known...)...)
}

// given faults each get_input of a node whose input has no value. It would be left out.
func given(t *translator, file string, n *yaml.Node) {
	if input := get(n, "get_input"); input != nil && input.Kind == yaml.ScalarNode && t.scope.input(input.Value) == nil {
		t.fault(file, input, "the input %q has no value: give it a default in topology_template.inputs", nf.Clip(input.Value, maxQuote))
		return
	}
	if n == nil || n.Kind == yaml.AliasNode {
		return
	}
	for _, inner := range n.Content {
		given(t, file, inner)
	}
}

func (t *translator) translate() (Translation, error) {
	s := t.scope
	for _, e := range s.nodes {
		if s.vnf == nil || e.key != s.vnf.key {
			given(t, e.file, e.node)
		}
		if s.isVDU(e) {
			t.vdu(e)
		}
	}
	for _, e := range s.nodes {
		t.node(e)
	}
	t.policies()
	t.unique()
	if len(t.order) == 0 && len(s.r.faults) == 0 {
		t.fault(s.main.file, nil, "the flavor %q has no VDU, so that there is nothing to translate", s.id)
	}
	if len(s.r.faults) > 0 {
		return Translation{}, nf.E(nf.Invalid, "translate", "the VNF descriptor", s.r.faults)
	}
	out := Translation{Networks: t.networks, Warnings: s.r.warnings}
	var err error
	out.Manifests, err = encode(t.objects())
	return out, err
}

// vdu translates a VDU.
func (t *translator) vdu(e entity) {
	w := &workload{entity: e, dns: t.f.VDUs[e.name].Name, kind: kindDeployment, affinity: map[string][]any{}, labels: object{}}
	t.workloads[e.name] = w
	t.order = append(t.order, e.name)
	switch r := t.scope.r; {
	case r.derives(e.typ, typeTackerVDU):
		t.tackerVDU(w)
	case r.derives(e.typ, typeDeployable):
		t.deployable(w)
	case r.derives(e.typ, typeCompute):
		t.compute(w)
	default:
		t.fault(e.file, e.key, "the VDU %q of the type %s cannot be translated: it does not describe containers", e.name, e.typ)
	}
	if !isLabel(w.dns) {
		t.fault(e.file, e.key, "the VDU %q would be the workload %q, which is not a DNS label: give it another name", e.name, nf.Clip(w.dns, maxQuote))
	}
}

// node translates a node that is not a VDU.
func (t *translator) node(e entity) {
	r := t.scope.r
	switch {
	case t.scope.isVDU(e), r.derives(e.typ, typeVNF), r.derives(e.typ, typeContainer):
	case r.derives(e.typ, typesLink...):
		t.properties(e, "connectivity_type", "vl_profile", "network_name", "vendor") // the network has them
	case r.derives(e.typ, typeVirtualCP):
		t.virtualCP(e)
	case r.derives(e.typ, typeTackerCP, "tosca.nodes.nfv.CP"):
		t.tackerCP(e)
	case r.derives(e.typ, "tosca.nodes.nfv.VnfExtCp"):
		t.properties(e, cpProperties...)
		t.cpProtocols(e)
	case r.derives(e.typ, typesCP...):
		t.vduCP(e)
	default:
		t.fault(e.file, e.key, "the node %q of the type %q cannot be translated", e.name, nf.Clip(e.typ, maxQuote))
	}
}

// unique faults VDUs that would become the same objects.
func (t *translator) unique() {
	seen := map[string]string{}
	for _, id := range t.order {
		w := t.workloads[id]
		if first, twice := seen[w.dns]; twice {
			t.fault(w.file, w.key, "the VDU %q would have the workload %q of the VDU %q", id, w.dns, first)
		}
		seen[w.dns] = id
	}
	for _, svc := range t.services {
		name := svc["metadata"].(object)["name"].(string)
		if of, twice := seen[name]; twice && (t.workloads[of] == nil || t.workloads[of].service != nil) {
			t.fault(t.scope.main.file, nil, "two nodes would be the Service %q", name)
		}
		seen[name] = ""
	}
}

// objects returns the objects of all VDUs, and then the Services of virtual connection
// points.
func (t *translator) objects() []object {
	var out []object
	for _, id := range t.order {
		w := t.workloads[id]
		if w.config != nil {
			data := object{}
			for key, value := range w.config {
				data[key] = value
			}
			out = append(out, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": w.metadata(), "data": data})
		}
		out = append(out, t.workload(id, w))
		if w.scaler != nil {
			out = append(out, object{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": w.metadata(), "spec": w.scaler})
		}
		if w.service != nil {
			out = append(out, object{"apiVersion": "v1", "kind": "Service", "metadata": w.metadata(), "spec": w.service})
		}
	}
	return append(out, t.services...)
}

func (w *workload) metadata() object {
	out := object{"name": w.dns, "labels": w.allLabels()}
	if w.namespace != "" {
		out["namespace"] = w.namespace
	}
	return out
}

func (w *workload) allLabels() object {
	out := maps.Clone(w.labels)
	maps.Copy(out, w.selector)
	return out
}

// workload returns the workload of a VDU.
func (t *translator) workload(id string, w *workload) object {
	pod := object{"containers": w.containers}
	affinity := object{}
	for kind, terms := range w.affinity {
		affinity[kind] = object{"requiredDuringSchedulingIgnoredDuringExecution": terms}
	}
	if len(affinity) > 0 {
		pod["affinity"] = affinity
	}
	meta := object{"labels": w.allLabels()}
	if len(w.networks) > 0 {
		meta["annotations"] = object{"k8s.v1.cni.cncf.io/networks": multus(w.networks)}
	}
	spec := object{"selector": object{"matchLabels": w.selector}, "template": object{"metadata": meta, "spec": pod}}
	if w.scaler == nil && w.kind != kindDaemonSet {
		spec["replicas"] = t.replicas(id)
	}
	if w.kind == kindStatefulSet {
		spec["serviceName"] = w.dns
	}
	return object{"apiVersion": "apps/v1", "kind": w.kind, "metadata": w.metadata(), "spec": spec}
}

// replicas returns the pods of the level, or those that the VDU begins with.
func (t *translator) replicas(id string) int {
	vdu := t.f.VDUs[id]
	if count, given := t.counts[id]; given {
		return count
	}
	if vdu.Initial >= 0 {
		return vdu.Initial
	}
	return cmp.Or(vdu.Min, 1)
}

// encode returns objects as YAML documents. The keys of mappings are sorted.
func encode(objects []object) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, o := range objects {
		if err := encoder.Encode(o); err != nil {
			return nil, fmt.Errorf("cannot write %v: %w", o["kind"], err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("cannot write the manifests: %w", err)
	}
	return out.Bytes(), nil
}

const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"

	typeContainer = "tosca.nodes.nfv.Vdu.OsContainer"
	typeVirtualCP = "tosca.nodes.nfv.VirtualCp"
	typeTackerCP  = "tosca.nodes.nfv.CP.Tacker"
)
