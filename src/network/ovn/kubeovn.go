package ovn

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const kubeOVNGroup = "kubeovn.io"

var (
	subnetKind = nf.Ref{Group: kubeOVNGroup, Version: "v1", Kind: "Subnet"}
	vpcKind    = nf.Ref{Group: kubeOVNGroup, Version: "v1", Kind: "Vpc"}
	vlanKind   = nf.Ref{Group: kubeOVNGroup, Version: "v1", Kind: "Vlan"}
	dnsKind    = nf.Ref{Group: kubeOVNGroup, Version: "v1", Kind: "VpcDns"}
)

// The fields of a specification that are those of a Subnet, and those of a Vpc.
var (
	subnetFields = []string{
		"gatewayType", "gatewayNode", "natOutgoing", "externalEgressGateway", "private", "allowSubnets", "logicalGateway",
		"disableGatewayCheck", "enableIPv6RA", "ipv6RAConfigs", "acls", "allowEWTraffic", "enableLb", "mtu", "vpc",
	}
	vpcFields = []string{"staticRoutes", "policyRoutes"}
)

var optText = schema.Optional(schema.Text)

var kubeOVNShape = schema.Shape{
	Fields: map[string]schema.Field{
		"subnets": subnets, "gateways": gateways, "exclude": exclude, "mtu": schema.Optional(schema.Integer(schema.MinMTU, schema.MaxMTU)),
		"vpc": schema.Optional(objectName), "own_vpc": flag,
		"vlan": schema.Optional(schema.Object(schema.Shape{
			Fields: map[string]schema.Field{"name": schema.Optional(objectName), "id": schema.Optional(schema.Integer(0, 4094)), "provider": schema.Optional(objectName)},
			OneOf:  []string{"name", "id"}, Together: [][2]string{{"id", "provider"}},
		})),
		"dhcp": schema.Optional(schema.Object(dhcpShape)),
		"dns":  schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{"replicas": schema.Filled(schema.Integer(1, 3), int64(2))}})),

		"gatewayType": schema.Implied(schema.Word("distributed", "centralized"), "distributed"), "gatewayNode": optText,
		"natOutgoing": flag, "externalEgressGateway": schema.Optional(address), "private": flag, "allowSubnets": schema.Optional(sorted(subnet)),
		"logicalGateway": flag, "disableGatewayCheck": flag, "enableIPv6RA": flag, "ipv6RAConfigs": schema.Optional(schema.Parsed(parsePairs)),
		"acls": schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{
			"direction": schema.Required(schema.Word("from-lport", "to-lport")), "priority": schema.Required(schema.Integer(0, 32767)),
			"match": schema.Required(schema.Text), "action": schema.Required(schema.Word("allow", "allow-related", "allow-stateless", "drop", "reject")),
		}}))),
		"allowEWTraffic": flag, "enableLb": schema.Optional(schema.Boolean),

		"staticRoutes": schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{
			"policy": schema.Optional(schema.Word("policyDst", "policySrc")), "cidr": schema.Required(subnet), "nextHopIP": schema.Required(address), "routeTable": optText,
		}}))),
		"policyRoutes": schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{
			"priority": schema.Required(schema.Integer(0, 32767)), "match": schema.Required(schema.Text),
			"action": schema.Required(schema.Word("allow", "drop", "reroute")), "nextHopIP": schema.Optional(address),
		}}))),
	},
	Apart: [][2]string{
		{"vpc", "own_vpc"}, {"natOutgoing", "externalEgressGateway"}, {"natOutgoing", "own_vpc"}, {"gatewayType", "own_vpc"}, {"externalEgressGateway", "own_vpc"},
	},
	Needs: [][2]string{
		{"staticRoutes", "own_vpc"}, {"policyRoutes", "own_vpc"}, {"allowSubnets", "private"}, {"gatewayNode", "gatewayType"},
		{"logicalGateway", "vlan"}, {"ipv6RAConfigs", "enableIPv6RA"}, {"allowEWTraffic", "acls"},
	},
}

// vpcName is the name of a network's own Vpc: kube-ovn rejects a Subnet with the name of
// its Vpc.
func vpcName(n nf.Network) string { return n.Name + "-vpc" }

// provider ties the Subnet of a network to its definition. Without it, pods would get
// addresses of the default Subnet.
func provider(n nf.Network, namespace string) string { return n.Name + "." + namespace + ".ovn" }

func checkKubeOVN(c *schema.Checker, s spec, _ nf.NetworkRegion) {
	checkAddresses(c, s)
	has := map[bool]bool{}
	for _, p := range prefixes(s, "subnets") {
		has[p.Addr().Is6()] = true
	}
	if s["enableIPv6RA"] == true && !has[true] {
		c.Fault("spec.enableIPv6RA", "has no effect without a subnet of IPv6")
	}
	if s["dns"] != nil && s["own_vpc"] != true && s["vpc"] == nil {
		c.Fault("spec.dns", "has no effect without own_vpc or vpc: kube-ovn gives a VpcDns to a Vpc")
	}
	for i, r := range schema.ListOf(s, "policyRoutes") {
		route, _ := r.(map[string]any)
		if (route["action"] == "reroute") != (route["nextHopIP"] != nil) {
			c.Fault(fmt.Sprintf("spec.policyRoutes[%d].nextHopIP", i), "is required for the action reroute, and for no other one")
		}
	}
	checkDHCP(c, s, has)
}

func kubeOVNObjects(n nf.Network, namespace string, s spec) ([]*unstructured.Unstructured, error) {
	d, err := definition(n, namespace, map[string]any{
		"cniVersion": "1.0.0", "type": "kube-ovn", "server_socket": "/run/openvswitch/kube-ovn-daemon.sock", "provider": provider(n, namespace),
	})
	if err != nil {
		return nil, err
	}
	content := given(map[string]any{
		"protocol": protocol(textsOf(s, "subnets")), "cidrBlock": strings.Join(textsOf(s, "subnets"), ","),
		"gateway": strings.Join(textsOf(s, "gateways"), ","), "excludeIps": excluded(s), "provider": provider(n, namespace),
	}, s, subnetFields...)
	var out []*unstructured.Unstructured
	if s["own_vpc"] == true {
		content["vpc"] = vpcName(n)
		out = append(out, object(vpcKind, "", vpcName(n), given(map[string]any{}, s, vpcFields...)))
	}
	if vlan, ok := s["vlan"].(map[string]any); ok {
		content["vlan"] = vlan["name"]
		if vlan["name"] == nil {
			content["vlan"] = n.Name
			out = append(out, object(vlanKind, "", n.Name, given(map[string]any{}, vlan, "id", "provider")))
		}
	}
	writeDHCP(content, s)
	out = append(out, object(subnetKind, "", n.Name, content), d)
	if dns, ok := s["dns"].(map[string]any); ok {
		out = append(out, object(dnsKind, "", n.Name, given(map[string]any{"vpc": content["vpc"], "subnet": n.Name}, dns, "replicas")))
	}
	return out, nil
}

func protocol(subnets []string) string {
	switch {
	case len(subnets) > 1:
		return "Dual"
	case len(subnets) == 1 && is6(subnets[0]):
		return "IPv6"
	}
	return "IPv4"
}

// excluded returns the exclusions with the gateways. kube-ovn would add them, and the
// field would have two owners.
func excluded(s spec) []any {
	out := schema.ListOf(s, "exclude")
	for _, gateway := range textsOf(s, "gateways") {
		a, _ := ends(gateway)
		within := false
		for _, span := range textsOf(s, "exclude") {
			first, last := ends(span)
			within = within || first.Compare(a) <= 0 && a.Compare(last) <= 0
		}
		if !within {
			out = append(out, gateway)
		}
	}
	sortTexts(out)
	return out
}

// frozenKubeOVN reports a move to another Vpc or VLAN, and subnets that no longer contain
// those in which pods can have addresses.
func frozenKubeOVN(c *schema.Checker, before, after spec, attached bool) {
	if !attached {
		return
	}
	freeze(c, before, after, []string{"vpc", "own_vpc", "vlan"})
	for _, was := range prefixes(before, "subnets") {
		if is := subnetOf(prefixes(after, "subnets"), was.Addr()); !is.IsValid() || is.Bits() > was.Bits() {
			c.Fault("spec.subnets", "must contain %s while pods are attached: they can have its addresses", was)
		}
	}
}

// connectKubeOVN asks for addresses by annotations: one for a single pod, and a list from
// which each pod takes one.
func connectKubeOVN(t *attaching) {
	prefix := provider(t.network, t.namespace) + ".kubernetes.io/"
	t.annotated = true // KubeVirt copies the annotations of a machine's template to its pod
	ips := t.ips()
	switch {
	case len(ips) == 0:
	case t.replicas == 1:
		t.oneOfEach(ips)
		t.annotations[prefix+"ip_address"] = join(texts(ips, false), ",")
	case t.replicas < 0 || len(ips) < t.replicas:
		t.checker.Fault("ips", "are %d, and the workload has %s; each pod needs one", len(ips), schema.Pods(t.replicas))
	case len(schema.ListOf(t.spec, "subnets")) > 1:
		t.checker.Fault("ips", "a workload with several pods gets fixed addresses only in a network of one family")
	default:
		t.annotations[prefix+"ip_pool"] = join(texts(ips, false), ",")
	}
	if mac := t.mac(); mac != "" {
		t.annotations[prefix+"mac_address"] = mac
		t.selection["mac"] = mac // KubeVirt sets it in the machine
	}
	t.rates(prefix)
}

// rates limits the traffic of the interface, in Mbit/s.
func (t *attaching) rates(prefix string) {
	b := t.asked.Bandwidth
	if b == nil {
		return
	}
	rate := func(name string, rate, burst int64) {
		switch {
		case burst != 0:
			t.checker.Fault("bandwidth."+name+"_burst", "kube-ovn sets the burst by itself")
		case rate < 0 || rate%1_000_000 != 0:
			t.checker.Fault("bandwidth."+name+"_rate", "must be a multiple of 1000000 bits per second: kube-ovn counts in Mbit/s")
		case rate > 0:
			t.annotations[prefix+name+"_rate"] = strconv.FormatInt(rate/1_000_000, 10)
		}
	}
	rate("ingress", b.IngressRate, b.IngressBurst)
	rate("egress", b.EgressRate, b.EgressBurst)
}
