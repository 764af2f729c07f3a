package ovn

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var (
	userNetworkKind    = nf.Ref{Group: "k8s.ovn.org", Version: "v1", Kind: "UserDefinedNetwork"}
	clusterNetworkKind = nf.Ref{Group: "k8s.ovn.org", Version: "v1", Kind: "ClusterUserDefinedNetwork"}
	egressKind         = nf.Ref{Group: "k8s.ovn.org", Version: "v1", Kind: "EgressIP"} // also without network segmentation
)

// The topologies of a network.
const (
	layer2   = "Layer2"
	layer3   = "Layer3"
	localnet = "Localnet"
)

var physicalPattern = regexp.MustCompile(`^[^\s,:]{1,253}$`)

var ovnKubernetesShape = schema.Shape{Fields: map[string]schema.Field{
	"topology": schema.Required(schema.Word(layer2, layer3, localnet)),
	"kind":     schema.Optional(schema.Word(userNetworkKind.Kind, clusterNetworkKind.Kind, definitionKind.Kind)),
	"role":     schema.Implied(schema.Parsed(parseRole), "Secondary"),
	"subnets":  schema.Optional(families(schema.Parsed(parseHostSubnet), "subnet")), "excludeSubnets": schema.Optional(sorted(subnet)),
	"mtu": schema.Optional(schema.Integer(576, 65536)), "allowPersistentIPs": flag,
	"physicalNetworkName": schema.Optional(schema.Matching(physicalPattern, "the name of a physical network, without ',' and ':'")),
	"vlanID":              schema.Optional(schema.Integer(1, 4094)),
	"dhcp":                refused("ovn-kubernetes answers only virtual machines of KubeVirt, with fixed options"),
	"dns":                 refused("ovn-kubernetes has no name server for a network"),
}}

func parseRole(s string) (string, error) {
	if s == "Secondary" {
		return s, nil
	}
	return "", fmt.Errorf("must be Secondary: a primary network replaces eth0 of all pods of a namespace, and no pod can be attached to it")
}

// parseHostSubnet parses a subnet, and for Layer3 the prefix length of the part of each
// node: 10.128.0.0/16/24.
func parseHostSubnet(s string) (string, error) {
	if strings.Count(s, "/") < 2 {
		return schema.ParseSubnet(s)
	}
	at := strings.LastIndex(s, "/")
	p, err := schema.ParseSubnet(s[:at])
	if err != nil {
		return "", err
	}
	prefix := netip.MustParsePrefix(p)
	bits, err := strconv.ParseUint(s[at+1:], 10, 8)
	if err != nil || int(bits) <= prefix.Bits() || int(bits) >= prefix.Addr().BitLen() {
		return "", fmt.Errorf("%q is not a subnet with the prefix length for each node, such as 10.128.0.0/16/24", nf.Clip(s, 64))
	}
	return fmt.Sprintf("%s/%d", p, bits), nil
}

// split returns a subnet, and the prefix length for each node; 0: none.
func split(text string) (cidr string, bits int64) {
	if strings.Count(text, "/") < 2 {
		return text, 0
	}
	at := strings.LastIndex(text, "/")
	bits, _ = strconv.ParseInt(text[at+1:], 10, 64)
	return text[:at], bits
}

func checkOVNKubernetes(c *schema.Checker, s spec, region nf.NetworkRegion) {
	topology := textOf(s, "topology")
	if s["kind"] == nil {
		s["kind"] = kindFor(topology, region)
	}
	kind := textOf(s, "kind")
	only := func(field string, can bool, with string) {
		if s[field] != nil && !can {
			c.Fault("spec."+field, "has no effect without %s", with)
		}
	}
	only("physicalNetworkName", topology == localnet, "the topology Localnet")
	only("vlanID", topology == localnet, "the topology Localnet")
	only("excludeSubnets", topology == localnet || topology == layer2 && kind == definitionKind.Kind, "the topology Localnet")
	only("allowPersistentIPs", topology != layer3, "the topology Layer2 or Localnet")
	only("excludeSubnets", s["subnets"] != nil, "subnets")
	only("allowPersistentIPs", s["subnets"] != nil, "subnets")
	switch {
	case topology == localnet && s["physicalNetworkName"] == nil && !c.Reports("spec.physicalNetworkName"):
		c.Fault("spec.physicalNetworkName", "is required for the topology Localnet")
	case topology == localnet && kind == userNetworkKind.Kind:
		c.Fault("spec.kind", "must be ClusterUserDefinedNetwork or NetworkAttachmentDefinition for the topology Localnet")
	case topology == layer3 && s["subnets"] == nil:
		c.Fault("spec.subnets", "is required for the topology Layer3")
	}
	if n := len(schema.ListOf(s, "excludeSubnets")); n > 25 {
		c.Fault("spec.excludeSubnets", "are %d, and at most 25 are possible", n)
	}
	checkSubnets(c, s, topology)
}

// checkSubnets checks the subnets of a network, and its exclusions and MTU against them.
func checkSubnets(c *schema.Checker, s spec, topology string) {
	var all []netip.Prefix
	for i, text := range textsOf(s, "subnets") {
		cidr, bits := split(text)
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		all = append(all, p)
		if bits > 0 && topology != layer3 {
			c.Fault(fmt.Sprintf("spec.subnets[%d]", i), "%s has a part for each node, which only the topology Layer3 has", text)
		}
		if mtu, ok := s["mtu"].(int64); ok && p.Addr().Is6() && mtu < 1280 {
			c.Fault("spec.mtu", "must be at least 1280 with a subnet of IPv6")
		}
	}
	for i, p := range prefixes(s, "excludeSubnets") {
		if within := subnetOf(all, p.Addr()); !within.IsValid() || within.Bits() > p.Bits() {
			c.Fault(fmt.Sprintf("spec.excludeSubnets[%d]", i), "%s is outside of the subnets", p)
		}
	}
}

// kindFor returns the kind for a topology that the region serves.
func kindFor(topology string, region nf.NetworkRegion) string {
	switch {
	case topology == localnet && region.Serves(clusterNetworkKind):
		return clusterNetworkKind.Kind
	case topology != localnet && region.Serves(userNetworkKind):
		return userNetworkKind.Kind
	}
	return definitionKind.Kind
}

func ovnKubernetesObjects(n nf.Network, namespace string, s spec) ([]*unstructured.Unstructured, error) {
	switch textOf(s, "kind") {
	case userNetworkKind.Kind:
		return []*unstructured.Unstructured{object(userNetworkKind, namespace, n.Name, userNetwork(s))}, nil
	case clusterNetworkKind.Kind:
		return []*unstructured.Unstructured{object(clusterNetworkKind, "", n.Name, map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"network":           userNetwork(s),
		})}, nil
	}
	config := given(map[string]any{
		"cniVersion": "1.0.0", "type": "ovn-k8s-cni-overlay", "netAttachDefName": namespace + "/" + n.Name,
		"topology": strings.ToLower(textOf(s, "topology")), "role": "secondary",
	}, s, "mtu", "vlanID", "physicalNetworkName", "allowPersistentIPs")
	for _, field := range []string{"subnets", "excludeSubnets"} {
		if all := textsOf(s, field); len(all) > 0 {
			config[field] = strings.Join(all, ",")
		}
	}
	d, err := definition(n, namespace, config)
	return []*unstructured.Unstructured{d}, err
}

// userNetwork returns the specification that both kinds of networks have.
func userNetwork(s spec) map[string]any {
	topology := textOf(s, "topology")
	layer := given(map[string]any{"role": "Secondary"}, s, "mtu")
	parts := make([]any, 0, 2)
	for _, text := range textsOf(s, "subnets") {
		switch cidr, bits := split(text); {
		case topology == layer3 && bits > 0:
			parts = append(parts, map[string]any{"cidr": cidr, "hostSubnet": bits})
		case topology == layer3:
			parts = append(parts, map[string]any{"cidr": cidr})
		default:
			parts = append(parts, cidr)
		}
	}
	if len(parts) > 0 {
		layer["subnets"] = parts
	} else {
		layer["ipam"] = map[string]any{"mode": "Disabled"}
	}
	if s["allowPersistentIPs"] == true {
		layer["ipam"] = map[string]any{"mode": "Enabled", "lifecycle": "Persistent"}
	}
	if topology == localnet {
		given(layer, s, "physicalNetworkName", "excludeSubnets")
		if s["vlanID"] != nil {
			layer["vlan"] = map[string]any{"mode": "Access", "access": map[string]any{"id": numeric(s["vlanID"])}}
		}
	}
	return map[string]any{"topology": topology, strings.ToLower(topology): layer}
}

func connectOVNKubernetes(t *attaching) {
	switch ips := t.ips(); {
	case len(ips) == 0:
	case t.spec["topology"] == layer3:
		t.checker.Fault("ips", "the network does not take addresses: each node gives those of its part of a Layer3 network")
	case t.spec["subnets"] != nil:
		t.checker.Fault("ips", "the network does not take addresses: ovn-kubernetes takes them only in a network without subnets")
	default:
		schema.Single(t.checker, "ips", "a fixed address", t.replicas)
		t.selection["ips"] = texts(ips, true)
	}
	if mac := t.mac(); mac != "" {
		t.selection["mac"] = mac
	}
	if len(t.asked.DefaultRoute) > 0 && t.spec["subnets"] == nil && len(t.asked.IPs) == 0 {
		t.checker.Fault("default_route", "the interface has no address: the network has no subnets, and the attachment no ips")
	}
	t.unlimited("ovn-kubernetes has no limits for an attachment")
}
