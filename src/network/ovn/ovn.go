// Package ovn is the driver of networks that are logical switches of OVN: it turns the
// specification of a network into the objects of the controller of a region, and
// attachments into elements and annotations that this controller reads.
//
// A flavor is one such controller: kube-ovn, ovn-kubernetes, nodus, or the one of kud's
// role ovn, kud-ovn. The driver finds the flavor by the kinds that a region serves; kud-ovn
// has none of its own, so it must be named. The fields of each flavor are a table. A
// specification that a controller would accept without an effect is an error, and so is
// a request that the flavor cannot carry out; the message gives the reason.
//
// All functions are pure. The package does not access a cluster, and does not write to
// the databases of OVN.
package ovn

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Driver is the driver "ovn" of networks.
type Driver struct{}

// flavorField names the flavor of a specification.
const flavorField = "flavor"

// spec is a normalized specification.
type spec = map[string]any

// flavor is a controller of logical switches.
type flavor struct {
	marks   []nf.Ref // kinds that only a region with the controller serves
	shape   schema.Shape
	check   func(c *schema.Checker, s spec, region nf.NetworkRegion)
	objects func(n nf.Network, namespace string, s spec) ([]*unstructured.Unstructured, error)
	connect func(t *attaching)
	frozen  func(c *schema.Checker, before, after spec, attached bool)
}

var flavors = map[string]flavor{
	"kube-ovn": {
		marks: []nf.Ref{subnetKind}, shape: kubeOVNShape, check: checkKubeOVN,
		objects: kubeOVNObjects, connect: connectKubeOVN, frozen: frozenKubeOVN,
	},
	"ovn-kubernetes": {
		marks: []nf.Ref{userNetworkKind, clusterNetworkKind, egressKind}, shape: ovnKubernetesShape, check: checkOVNKubernetes,
		objects: ovnKubernetesObjects, connect: connectOVNKubernetes, frozen: frozenAll,
	},
	"nodus": {
		marks: []nf.Ref{nodusKind}, shape: nodusShape, check: checkNodus,
		objects: nodusObjects, connect: connectNodus, frozen: frozenAll,
	},
	kudOVN: {
		shape: kudShape, check: checkKud, objects: kudObjects, connect: connectKud, frozen: frozenKud,
	},
}

// Kinds returns the kinds by which the flavor of a region is found.
func (Driver) Kinds() (all []nf.Ref) {
	for _, name := range schema.SortedKeys(flavors) {
		all = append(all, flavors[name].marks...)
	}
	return all
}

// Normalize checks a specification and returns it in its canonical form, with the flavor
// of the region. The error is nf.Invalid with all violations; their fields begin with
// "spec".
func (Driver) Normalize(raw json.RawMessage, region nf.NetworkRegion) (json.RawMessage, error) {
	out, err := schema.Parse(raw, func(c *schema.Checker, given map[string]any) map[string]any {
		name := flavorOf(c, given, region)
		if name == "" {
			return nil
		}
		rest := maps.Clone(given)
		delete(rest, flavorField)
		s := flavors[name].shape.Check(c, "spec", rest)
		flavors[name].check(c, s, region)
		s[flavorField] = name
		return s
	})
	if err != nil {
		return nil, err
	}
	return schema.Canonical(out)
}

// flavorOf returns the flavor that a specification names, or that of the region.
func flavorOf(c *schema.Checker, given map[string]any, region nf.NetworkRegion) string {
	const path = "spec." + flavorField
	if given[flavorField] != nil {
		name, _ := schema.Word(schema.SortedKeys(flavors)...)(c, path, given[flavorField]).(string)
		return name
	}
	var found []string
	for _, name := range schema.SortedKeys(flavors) {
		if slices.ContainsFunc(flavors[name].marks, region.Serves) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		c.Fault(path, "is required: the region serves the kinds of no controller of OVN; kud-ovn has no kinds, so it cannot be found")
	case 1:
		return found[0]
	default:
		c.Fault(path, "is required: the region serves the kinds of %s", strings.Join(found, " and "))
	}
	return ""
}

// NodeLocal returns false: OVN gives an address once in a network.
func (Driver) NodeLocal(json.RawMessage) bool { return false }

// Frozen returns a violation for each field whose change the controller rejects or
// ignores, or that would leave pods with addresses outside of the network.
func (Driver) Frozen(before, after json.RawMessage, attached bool) nf.Violations {
	c := &schema.Checker{}
	was, is, ok := schema.Change(c, before, after)
	switch {
	case !ok:
	case was[flavorField] != is[flavorField]:
		c.Fault("spec."+flavorField, "%s: it is %v", replaceIt, was[flavorField])
	default:
		flavors[textOf(is, flavorField)].frozen(c, was, is, attached)
	}
	return c.Wrong
}

const replaceIt = "cannot be changed; delete the network and create it again"

// frozenAll reports each field that differs.
func frozenAll(c *schema.Checker, before, after spec, _ bool) {
	freeze(c, before, after, slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
}

// freeze reports the fields of the lists that differ.
func freeze(c *schema.Checker, before, after spec, fields ...[]string) {
	all := slices.Concat(fields...)
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		if !equal(before[name], after[name]) {
			c.Fault(schema.Member("spec", name), replaceIt)
		}
	}
}

func equal(a, b any) bool {
	one, err := schema.Canonical(a)
	other, wrong := schema.Canonical(b)
	return err == nil && wrong == nil && string(one) == string(other)
}

// Objects returns the objects of a network, without labels of an owner. The
// specification must be normalized.
func (Driver) Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error) {
	s, f, err := read(n)
	if err != nil {
		return nil, err
	}
	return f.objects(n, namespace, s)
}

// read returns the specification of a network, which is normalized, and its flavor. It
// is not checked again: a later release can be stricter than the one that stored it.
func read(n nf.Network) (spec, flavor, error) {
	s, err := schema.Decode(n.Spec)
	if err != nil {
		return nil, flavor{}, fmt.Errorf("cannot read the specification of network %q: %w", n.Name, err)
	}
	f, known := flavors[textOf(s, flavorField)]
	if !known {
		return nil, f, nf.E(nf.Unsupported, "read", "network "+n.Name, nf.Violations{{Field: "spec." + flavorField, Message: "is unknown to this service"}})
	}
	return s, f, nil
}

// object returns an object of a kind. Its namespace is empty if it is cluster-scoped.
func object(kind nf.Ref, namespace, name string, content any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	u.SetAPIVersion(kind.APIVersion())
	u.SetKind(kind.Kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// definition returns a NetworkAttachmentDefinition with a configuration of CNI.
func definition(n nf.Network, namespace string, config map[string]any) (*unstructured.Unstructured, error) {
	config["name"] = n.Name
	text, err := schema.Canonical(config)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the configuration of network %q: %w", n.Name, err)
	}
	return object(definitionKind, namespace, n.Name, map[string]any{"config": string(text)}), nil
}

var definitionKind = nf.Ref{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}
