// Package multus is the driver of networks that multus attaches: it turns the
// specification of a network into NetworkAttachmentDefinitions, and attachments
// into elements of the annotation k8s.v1.cni.cncf.io/networks.
//
// A specification is the configuration of a main plugin of CNI with its IPAM and
// the plugins chained after it; or it names a definition that exists; or it is a
// raw configuration. The fields of each plugin are tables in plugins.go.
// Combinations that multus or a plugin accepts without an effect are errors.
//
// All functions are pure: the same input gives the same output. The package does
// not access a cluster. It does not know which plugins the nodes of a region have.
package multus

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Driver is the driver "multus" of networks.
type Driver struct {
	device string // the only main plugin, of devices; empty: any of plugins, or another form
}

// SRIOV returns the driver of networks whose main plugin is sriov. Package sriov decides
// which objects these networks have.
func SRIOV() Driver { return Driver{device: "sriov"} }

// definition is the kind of the objects of networks.
var definition = nf.Ref{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// ResourceAnnotation ties a definition to an extended resource.
const ResourceAnnotation = "k8s.v1.cni.cncf.io/resourceName"

// Kinds returns nil: a specification depends on no API of its region.
func (Driver) Kinds() []nf.Ref { return nil }

// Frozen reports what cannot be changed while instances are attached: the templates of
// their pods name the definition and the resource, and their pods may have the fixed
// addresses, which would be given to others. Other changes reach the pods that are created
// after them.
func (Driver) Frozen(before, after json.RawMessage, attached bool) nf.Violations {
	c := &schema.Checker{}
	was, is, ok := schema.Change(c, before, after)
	if !ok || !attached {
		return c.Wrong
	}
	for _, field := range []string{existingField, resourceField} {
		if !reflect.DeepEqual(was[field], is[field]) {
			c.Fault("spec."+field, "cannot be changed while instances are attached: it is in the templates of their pods")
		}
	}
	for _, address := range schema.ListOf(was, fixedField) {
		if !slices.Contains(schema.ListOf(is, fixedField), address) {
			c.Fault("spec."+fixedField, "must keep %v while instances are attached", address)
		}
	}
	return c.Wrong
}

// Normalize checks a specification and returns it in its canonical form: with
// defaults and sorted keys. Specifications that mean the same have the same
// canonical form. The error is nf.Invalid with all violations; their fields begin
// with "spec".
func (d Driver) Normalize(spec json.RawMessage, region nf.NetworkRegion) (json.RawMessage, error) {
	out, err := schema.Parse(spec, func(c *schema.Checker, given map[string]any) map[string]any {
		return d.check(c, resolved(c, given, region))
	})
	if err != nil {
		return nil, err
	}
	return schema.Canonical(out)
}

// Objects returns the NetworkAttachmentDefinitions of a network, without labels of
// an owner: one; two if the specification has fixed addresses; none if it names
// an existing definition. The specification must be normalized.
func (Driver) Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error) {
	spec, err := read(n)
	if err != nil {
		return nil, err
	}
	if spec[existingField] != nil {
		return nil, nil
	}
	names := []string{n.Name}
	if len(schema.ListOf(spec, fixedField)) > 0 {
		names = append(names, n.Name+fixedSuffix)
	}
	var out []*unstructured.Unstructured
	for i, name := range names {
		config, err := configOf(n.Name, spec, i > 0)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the configuration of network %q: %w", n.Name, err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": config}}}
		u.SetAPIVersion(definition.APIVersion())
		u.SetKind(definition.Kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		if resource, _ := spec[resourceField].(string); resource != "" {
			u.SetAnnotations(map[string]string{ResourceAnnotation: resource})
		}
		out = append(out, u)
	}
	return out, nil
}

// NodeLocal reports whether a normalized specification gives addresses that are
// unique on each node only, and does not say that this is intended. Two pods of
// such a network on two nodes can have the same address.
func (Driver) NodeLocal(spec json.RawMessage) bool {
	m, err := schema.Decode(spec)
	return err == nil && m[nodeLocalField] != true && ipamOf(m)["type"] == hostLocal
}

// read returns the specification of a network, which is normalized. It is not
// checked again: a later release can be stricter than the one that stored it.
func read(n nf.Network) (map[string]any, error) {
	spec, err := schema.Decode(n.Spec)
	if err != nil {
		return nil, fmt.Errorf("cannot read the specification of network %q: %w", n.Name, err)
	}
	return spec, nil
}
