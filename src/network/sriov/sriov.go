// Package sriov is the driver of networks whose interfaces are virtual functions of
// SR-IOV: each attachment takes one from an extended resource, which a device plugin on
// the nodes offers.
//
// A network is a NetworkAttachmentDefinition of the CNI plugin sriov, or a SriovNetwork,
// from which the SR-IOV network operator makes the definition. Both have the same
// fields, which package multus checks. The driver does not configure network cards: that
// is work for the operator of a region.
//
// All functions are pure. The package does not access a cluster, and does not count free
// functions.
package sriov

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Driver is the driver "sriov" of networks.
type Driver struct{}

// operated is the kind of the networks of the operator, and a type of specifications.
var operated = nf.Ref{Group: "sriovnetwork.openshift.io", Version: "v1", Kind: "SriovNetwork"}

// The fields that are the driver's, and the other type of specifications: the CNI plugin.
const (
	typeField      = "type"
	namespaceField = "operator_namespace"
	resourceField  = "resource_name"
	plugin         = "sriov"
)

var (
	namespaceValue  = schema.Matching(schema.LabelPattern, "the name of a namespace")
	resourcePattern = regexp.MustCompile(`/[A-Za-z0-9_]+$`)
)

// Kinds returns the kind of the operator.
func (Driver) Kinds() []nf.Ref { return []nf.Ref{operated} }

// Normalize checks a specification and returns it in its canonical form. By default, its
// type is SriovNetwork in a region with the operator. The error is nf.Invalid with all
// violations; their fields begin with "spec".
func (Driver) Normalize(raw json.RawMessage, region nf.NetworkRegion) (json.RawMessage, error) {
	out, err := schema.Parse(raw, func(c *schema.Checker, given map[string]any) map[string]any {
		return check(c, given, region)
	})
	if err != nil {
		return nil, err
	}
	return schema.Canonical(out)
}

func check(c *schema.Checker, given map[string]any, region nf.NetworkRegion) map[string]any {
	kind := plugin
	if region.Serves(operated) {
		kind = operated.Kind
	}
	if given[typeField] != nil {
		kind, _ = schema.Word(plugin, operated.Kind)(c, "spec."+typeField, given[typeField]).(string)
	}
	rest := maps.Clone(given)
	delete(rest, typeField)
	namespace := given[namespaceField]
	if kind == operated.Kind {
		delete(rest, namespaceField)
		if namespace == nil {
			namespace = "sriov-network-operator"
		}
		namespace = namespaceValue(c, "spec."+namespaceField, namespace)
	}
	text, err := schema.Canonical(rest)
	if err == nil {
		text, err = multus.SRIOV().Normalize(text, region)
	}
	c.Wrong = append(c.Wrong, nf.ViolationsOf(err)...)
	out, wrong := schema.Decode(text)
	if err != nil || wrong != nil || kind != operated.Kind {
		return out
	}
	checkOperated(c, out)
	out[typeField], out[namespaceField] = kind, namespace
	return out
}

// checkOperated reports what the operator changes without a word.
func checkOperated(c *schema.Checker, s map[string]any) {
	if s["cni_version"] != "1.0.0" {
		c.Fault("spec.cni_version", "must be 1.0.0: the operator writes it")
	}
	if resource, _ := s[resourceField].(string); !resourcePattern.MatchString(resource) {
		c.Fault("spec."+resourceField, "must end with letters, digits or '_': the operator has no other resources")
	}
	if text, err := schema.Canonical(s["ipam"]); err == nil && strings.ContainsAny(string(text), " \t") {
		c.Fault("spec.ipam", "must not contain blanks: the operator drops them")
	}
}

// NodeLocal reports whether a normalized specification gives addresses that are unique
// on each node only, and does not say that this is intended.
func (Driver) NodeLocal(spec json.RawMessage) bool { return multus.SRIOV().NodeLocal(spec) }

// Frozen reports another type: the definition would get another owner while it exists. It
// also reports what multus.Driver does.
func (Driver) Frozen(before, after json.RawMessage, attached bool) nf.Violations {
	c := &schema.Checker{}
	was, is, _ := schema.Change(c, before, after)
	for _, field := range []string{typeField, namespaceField} {
		if was[field] != is[field] {
			c.Fault("spec."+field, "cannot be changed; delete the network and create it again")
		}
	}
	if len(c.Wrong) == 0 {
		return multus.SRIOV().Frozen(before, after, attached)
	}
	return c.Wrong
}

// Plugins returns the CNI plugins that a network needs on the nodes, by the fields of its
// normalized specification. The operator installs the plugin sriov.
func (Driver) Plugins(spec json.RawMessage) map[string]string {
	out := multus.SRIOV().Plugins(spec)
	if out["spec."+typeField] == operated.Kind {
		delete(out, "spec."+typeField)
	}
	return out
}

// Resources returns the extended resource of the virtual functions. See multus.Driver.
func (Driver) Resources(spec json.RawMessage) map[string]string {
	return multus.SRIOV().Resources(spec)
}

// asPlugin returns a network with the specification of the CNI plugin, and the namespace
// of the operator; empty: the network is not the operator's.
func asPlugin(n nf.Network) (nf.Network, string, error) {
	s, err := schema.Decode(n.Spec)
	if err != nil {
		return n, "", fmt.Errorf("cannot read the specification of network %q: %w", n.Name, err)
	}
	namespace, _ := s[namespaceField].(string)
	s[typeField] = plugin
	delete(s, namespaceField)
	n.Spec, err = schema.Canonical(s)
	return n, namespace, err
}

// Layout returns the resource, the VLAN and the ranges of a network. See multus.Driver.
func (Driver) Layout(n nf.Network) (nf.Layout, error) {
	n, _, err := asPlugin(n)
	if err != nil {
		return nf.Layout{}, err
	}
	return multus.SRIOV().Layout(n)
}

// Connect checks an attachment of a workload to a network, and returns it as an element
// of the annotation, with the virtual function that it takes. See multus.Driver.
func (Driver) Connect(n nf.Network, namespace string, a nf.Attachment, replicas int) (nf.Connection, error) {
	n, _, err := asPlugin(n)
	if err != nil {
		return nf.Connection{}, err
	}
	return multus.SRIOV().Connect(n, namespace, a, replicas)
}

// Objects returns the NetworkAttachmentDefinitions of a network, or the SriovNetworks from
// which the operator makes them, without labels of an owner: one, or two if the
// specification has fixed addresses. The specification must be normalized.
func (Driver) Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error) {
	n, operator, err := asPlugin(n)
	if err != nil {
		return nil, err
	}
	definitions, err := multus.SRIOV().Objects(n, namespace)
	if err != nil || operator == "" {
		return definitions, err
	}
	var out []*unstructured.Unstructured
	for _, definition := range definitions {
		content, err := contentOf(definition)
		if err != nil {
			return nil, fmt.Errorf("cannot encode network %q: %w", n.Name, err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		u.SetAPIVersion(operated.APIVersion())
		u.SetKind(operated.Kind)
		u.SetNamespace(operator)
		u.SetName(definition.GetName())
		out = append(out, u)
	}
	return out, nil
}

// renamed are the fields of the plugin by those of a SriovNetwork.
var renamed = map[string]string{
	"vlan": "vlan", "vlanQoS": "vlanQoS", "vlanProto": "vlanProto", "trust": "trust",
	"spoofChk": "spoofchk", "linkState": "link_state", "minTxRate": "min_tx_rate", "maxTxRate": "max_tx_rate",
}

// contentOf returns the specification of the SriovNetwork from which the operator makes a
// definition.
func contentOf(definition *unstructured.Unstructured) (map[string]any, error) {
	text, _, err := unstructured.NestedString(definition.Object, "spec", "config")
	if err != nil {
		return nil, err
	}
	config, err := schema.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	plugins := schema.ListOf(config, "plugins")
	main, _ := plugins[0].(map[string]any)
	_, resource, _ := strings.Cut(definition.GetAnnotations()[multus.ResourceAnnotation], "/")
	out := map[string]any{"networkNamespace": definition.GetNamespace(), "resourceName": resource}
	for field, from := range renamed {
		if n, isNumber := main[from].(json.Number); isNumber {
			out[field], err = n.Int64()
		} else if main[from] != nil {
			out[field] = main[from]
		}
		if err != nil {
			return nil, err
		}
	}
	var chained []string
	for field, v := range map[string]any{"ipam": main["ipam"], "capabilities": main["capabilities"]} {
		text, err := schema.Canonical(v)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[field] = string(text)
		}
	}
	for _, p := range plugins[1:] {
		text, err := schema.Canonical(p)
		if err != nil {
			return nil, err
		}
		chained = append(chained, string(text))
	}
	if len(chained) > 0 {
		out["metaPlugins"] = strings.Join(chained, ",")
	}
	return out, nil
}
