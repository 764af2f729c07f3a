package ovn_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fieldsOf returns the fields of violations.
func fieldsOf(v nf.Violations) (out []string) {
	for _, one := range v {
		out = append(out, one.Field)
	}
	slices.Sort(out)
	return out
}

// TestWrong lists specifications that are rejected, with the fields of all their
// violations.
func TestWrong(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		region string
		spec   string
		fields []string
	}{
		"NotJSON":       {"a specification is JSON", "kube-ovn", `{`, []string{"spec"}},
		"NoController":  {"no flavor can be found", "kud-ovn", `{"subnets": ["10.1.0.0/24"]}`, []string{"spec.flavor"}},
		"UnknownFlavor": {"a flavor is one of the driver's", "kube-ovn", `{"flavor": "calico"}`, []string{"spec.flavor"}},
		"OtherFlavor":   {"fields are those of the flavor", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "topology": "Layer2"}`, []string{"spec.topology"}},
		"All":           {"all violations are reported at once", "kube-ovn", `{"subnets": ["10.1.0.5/24"], "mtu": 10, "vpc": "A"}`, []string{"spec.mtu", "spec.subnets[0]", "spec.vpc"}},

		"NoSubnet":        {"a Subnet has a CIDR", "kube-ovn", `{}`, []string{"spec.subnets"}},
		"EmptySubnets":    {"and at least one", "kube-ovn", `{"subnets": []}`, []string{"spec.subnets"}},
		"TwoOfFamily":     {"a Subnet has one CIDR of each family", "kube-ovn", `{"subnets": ["10.1.0.0/24", "10.2.0.0/24"]}`, []string{"spec.subnets[1]"}},
		"HostBits":        {"a CIDR has no host bits", "kube-ovn", `{"subnets": ["10.1.0.9/24"]}`, []string{"spec.subnets[0]"}},
		"Small":           {"kube-ovn rejects one address", "kube-ovn", `{"subnets": ["10.1.0.9/32", "fd00::1/128"]}`, []string{"spec.subnets[0]", "spec.subnets[1]"}},
		"GatewayOutside":  {"a gateway is in its subnet", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "gateways": ["10.2.0.1"]}`, []string{"spec.gateways[0]"}},
		"Broadcast":       {"a gateway is no broadcast address", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "gateways": ["10.1.0.255"]}`, []string{"spec.gateways[0]"}},
		"NetworkAddress":  {"nor that of the subnet", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "gateways": ["10.1.0.0"]}`, []string{"spec.gateways[0]"}},
		"ExcludeOutside":  {"an exclusion outside has no effect", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "exclude": ["10.1.0.250..10.1.1.9"]}`, []string{"spec.exclude[0]"}},
		"ExcludeBackward": {"a range has an order", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "exclude": ["10.1.0.9..10.1.0.8"]}`, []string{"spec.exclude[0]"}},
		"ExcludeOverlap":  {"kube-ovn would merge them, and own the field", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "exclude": ["10.1.0.5..10.1.0.9", "10.1.0.9"]}`, []string{"spec.exclude[1]"}},
		"TwoVpcs":         {"a Subnet is in one Vpc", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vpc": "a", "own_vpc": true}`, []string{"spec.vpc"}},
		"RoutesNoVpc":     {"routes are those of the own Vpc", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "own_vpc": false, "staticRoutes": [{"cidr": "0.0.0.0/0", "nextHopIP": "10.1.0.2"}]}`, []string{"spec.staticRoutes"}},
		"NatInVpc":        {"NAT works in the default Vpc only", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "own_vpc": true, "natOutgoing": true}`, []string{"spec.natOutgoing"}},
		"NatAndGateway":   {"kube-ovn rejects both", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "natOutgoing": true, "externalEgressGateway": "10.1.0.7"}`, []string{"spec.natOutgoing"}},
		"GatewayNode":     {"a node needs the centralized type", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "gatewayType": "distributed", "gatewayNode": "a"}`, []string{"spec.gatewayNode"}},
		"Reroute":         {"a reroute has a next hop", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "own_vpc": true, "policyRoutes": [{"priority": 1, "match": "ip4", "action": "reroute"}]}`, []string{"spec.policyRoutes[0].nextHopIP"}},
		"VlanHalf":        {"a VLAN has a provider network", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vlan": {"id": 5}}`, []string{"spec.vlan"}},
		"VlanBoth":        {"a VLAN is named or made", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vlan": {"name": "a", "id": 5, "provider": "b"}}`, []string{"spec.vlan"}},
		"VlanID":          {"a VLAN id has 12 bits", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vlan": {"id": 4095, "provider": "b"}}`, []string{"spec.vlan.id"}},
		"LogicalGateway":  {"an overlay has one anyway", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "logicalGateway": true}`, []string{"spec.logicalGateway"}},
		"AllowPublic":     {"a public subnet allows all", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "allowSubnets": ["10.2.0.0/24"]}`, []string{"spec.allowSubnets"}},
		"RAWithoutIPv6":   {"advertisements are of IPv6", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "enableIPv6RA": true}`, []string{"spec.enableIPv6RA"}},
		"RAPairs":         {"kube-ovn ignores what is no pair", "kube-ovn", `{"subnets": ["fd00::/64"], "enableIPv6RA": true, "ipv6RAConfigs": "address_mode=slaac,min_interval"}`, []string{"spec.ipv6RAConfigs"}},
		"DNSWithoutVpc":   {"a VpcDns needs a Vpc", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "dns": {}}`, []string{"spec.dns"}},
		"DNSReplicas":     {"at most three", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vpc": "a", "dns": {"replicas": 4}}`, []string{"spec.dns.replicas"}},
		"DHCPServer":      {"no client of its family asks", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "dhcp": {"dns_servers": ["fd00::53"]}}`, []string{"spec.dhcp.dns_servers[0]"}},
		"DHCPTwoNTP":      {"kube-ovn would write a broken option", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "dhcp": {"ntp_servers": ["10.1.0.2", "10.1.0.3"]}}`, []string{"spec.dhcp.ntp_servers[1]"}},
		"DHCPv6MTU":       {"DHCPv6 has no MTU", "kube-ovn", `{"subnets": ["fd00::/64"], "dhcp": {"mtu": 1400}}`, []string{"spec.dhcp.mtu"}},
		"DHCPExtra":       {"blanks, commas and own options", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "dhcp": {"extra": {"bootfile_name": "a b", "hostname": "x,y", "router": "10.1.0.1", "66": "x"}}}`, []string{"spec.dhcp.extra.66", "spec.dhcp.extra.bootfile_name", "spec.dhcp.extra.hostname", "spec.dhcp.extra.router"}},
		"DHCPDomain":      {"a quote would end the text", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "dhcp": {"domain_name": "a\"b"}}`, []string{"spec.dhcp.domain_name"}},

		"Topology":        {"a topology is one of three", "ovn-kubernetes", `{"topology": "layer2"}`, []string{"spec.topology"}},
		"Primary":         {"no pod attaches to a primary network", "ovn-kubernetes", `{"topology": "Layer2", "role": "Primary"}`, []string{"spec.role"}},
		"UDNDHCP":         {"O21 is not possible here", "ovn-kubernetes", `{"topology": "Layer2", "dhcp": {}, "dns": {"replicas": 1}}`, []string{"spec.dhcp", "spec.dns"}},
		"Layer3NoSubnet":  {"each node needs a part", "ovn-kubernetes", `{"topology": "Layer3"}`, []string{"spec.subnets"}},
		"Layer2Part":      {"Layer2 has no parts", "ovn-kubernetes", `{"topology": "Layer2", "subnets": ["10.128.0.0/16/24"]}`, []string{"spec.subnets[0]"}},
		"PartTooLarge":    {"a part is smaller than the whole", "ovn-kubernetes", `{"topology": "Layer3", "subnets": ["10.128.0.0/16/16"]}`, []string{"spec.subnets[0]"}},
		"LocalnetNoName":  {"a localnet has a physical network", "ovn-kubernetes", `{"topology": "Localnet"}`, []string{"spec.physicalNetworkName"}},
		"LocalnetComma":   {"its name is part of a list", "ovn-kubernetes", `{"topology": "Localnet", "physicalNetworkName": "a,b"}`, []string{"spec.physicalNetworkName"}},
		"LocalnetUDN":     {"a UserDefinedNetwork cannot be a localnet", "ovn-kubernetes", `{"topology": "Localnet", "physicalNetworkName": "a", "kind": "UserDefinedNetwork"}`, []string{"spec.kind"}},
		"VLANLayer2":      {"a VLAN is that of a localnet", "ovn-kubernetes", `{"topology": "Layer2", "vlanID": 5}`, []string{"spec.vlanID"}},
		"VLANZero":        {"an access VLAN has an id from 1", "ovn-kubernetes", `{"topology": "Localnet", "physicalNetworkName": "a", "vlanID": 0}`, []string{"spec.vlanID"}},
		"MTUSmall":        {"IPv6 needs 1280", "ovn-kubernetes", `{"topology": "Layer2", "subnets": ["fd00::/64"], "mtu": 1000}`, []string{"spec.mtu"}},
		"ExcludeUDN":      {"a UserDefinedNetwork of Layer2 excludes nothing", "ovn-kubernetes", `{"topology": "Layer2", "subnets": ["10.1.0.0/24"], "excludeSubnets": ["10.1.0.0/28"]}`, []string{"spec.excludeSubnets"}},
		"ExcludeLarger":   {"an exclusion is part of a subnet", "ovn-kubernetes", `{"topology": "Localnet", "physicalNetworkName": "a", "subnets": ["10.1.0.0/24"], "excludeSubnets": ["10.1.0.0/16"]}`, []string{"spec.excludeSubnets[0]"}},
		"PersistentNoIPs": {"without subnets there is no address to keep", "ovn-kubernetes", `{"topology": "Layer2", "allowPersistentIPs": true}`, []string{"spec.allowPersistentIPs"}},

		"NodusDNS":      {"nodus never reads it", "nodus", `{"subnets": ["10.1.0.0/24"], "dns": {}}`, []string{"spec.dns"}},
		"NodusBoth":     {"a provider network is of one type", "nodus", `{"subnets": ["10.1.0.0/24"], "vlan": {"vlanId": 5, "providerInterfaceName": "eth1"}, "direct": {"providerInterfaceName": "eth1"}}`, []string{"spec.vlan"}},
		"NodusLabels":   {"labels need the selector specific", "nodus", `{"subnets": ["10.1.0.0/24"], "direct": {"providerInterfaceName": "eth1", "nodeLabelList": ["a=b"]}}`, []string{"spec.direct.nodeLabelList"}},
		"NodusSelector": {"and specific needs labels", "nodus", `{"subnets": ["10.1.0.0/24"], "vlan": {"vlanId": 5, "providerInterfaceName": "eth1", "vlanNodeSelector": "specific"}}`, []string{"spec.vlan.nodeLabelList"}},

		"KudSubnets":  {"static gives the addresses", "kud-ovn", `{"flavor": "kud-ovn", "subnets": ["10.1.0.0/24"], "dhcp": {}}`, []string{"spec.dhcp", "spec.subnets"}},
		"KudPort":     {"a port has addresses", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01"}]}`, []string{"spec.ports[0].ips"}},
		"KudTwice":    {"two ports differ", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}, {"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/16"]}]}`, []string{"spec.ports[1].ips[0]", "spec.ports[1].mac", "spec.ports[1].name"}},
		"KudPortName": {"the name is part of CNI_ARGS", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "a;b", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, []string{"spec.ports[0].name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ovn.Driver{}.Normalize(json.RawMessage(tc.spec), regions[tc.region])
			if diff := cmp.Diff(tc.fields, fieldsOf(nf.ViolationsOf(err))); diff != "" || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestFlavor finds the flavor of a region, unless there are several.
func TestFlavor(t *testing.T) {
	t.Parallel()
	both := serving("Subnet", "Network")
	_, err := ovn.Driver{}.Normalize(json.RawMessage(`{"subnets": ["10.1.0.0/24"]}`), both)
	if diff := cmp.Diff([]string{"spec.flavor"}, fieldsOf(nf.ViolationsOf(err))); diff != "" {
		t.Errorf("a region with two controllers: %v", err)
	}
	want := `{"flavor":"nodus","gateways":["10.1.0.1"],"subnets":["10.1.0.0/24"]}`
	if got := normal(t, `{"flavor": "nodus", "subnets": ["10.1.0.0/24"]}`, both); string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPlugins names the plugin of the flavor that no controller installs.
func TestPlugins(t *testing.T) {
	t.Parallel()
	for flavor, want := range map[string]map[string]string{
		`{"flavor": "kud-ovn"}`: {"spec.flavor": "kud-ovn"}, `{"flavor": "kube-ovn"}`: nil, `{`: nil,
	} {
		if diff := cmp.Diff(want, ovn.Driver{}.Plugins(json.RawMessage(flavor))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", flavor, diff)
		}
	}
}

// TestWrongAttachments lists attachments that are rejected, with the fields of all their
// violations.
func TestWrongAttachments(t *testing.T) {
	t.Parallel()
	limits := &nf.Bandwidth{IngressRate: 1_000_000, IngressBurst: 1000}
	cases := map[string]struct {
		reason  string
		network string
		asks    nf.Attachment
		pods    int
		fields  []string
	}{
		"Malformed":     {"an address is one", "kube-ovn/plain", nf.Attachment{IPs: []string{"x"}, MAC: "y", DefaultRoute: []string{"z"}}, 1, []string{"default_route[0]", "ips[0]", "mac"}},
		"Outside":       {"an address is in the subnets", "kube-ovn/plain", nf.Attachment{IPs: []string{"10.2.0.9"}}, 1, []string{"ips[0]"}},
		"Gateway":       {"and not the gateway", "kube-ovn/plain", nf.Attachment{IPs: []string{"10.1.0.1"}}, 1, []string{"ips[0]"}},
		"Broadcast":     {"nor the broadcast address", "kube-ovn/plain", nf.Attachment{IPs: []string{"10.1.0.255"}}, 1, []string{"ips[0]"}},
		"Length":        {"the prefix length is that of the subnet", "kube-ovn/plain", nf.Attachment{IPs: []string{"10.1.0.9/16"}}, 1, []string{"ips[0]"}},
		"Twice":         {"an address counts once", "kube-ovn/pool", nf.Attachment{IPs: []string{"10.1.0.9", "10.1.0.9"}}, 2, []string{"ips[1]"}},
		"TwoOfFamily":   {"a pod has one address of each family", "kube-ovn/plain", nf.Attachment{IPs: []string{"10.1.0.9", "10.1.0.10"}}, 1, []string{"ips[1]"}},
		"SmallPool":     {"each pod needs an address", "kube-ovn/pool", nf.Attachment{IPs: []string{"10.1.0.9", "10.1.0.10"}}, 3, []string{"ips"}},
		"UnknownPods":   {"and their number is known", "kube-ovn/pool", nf.Attachment{IPs: []string{"10.1.0.9", "10.1.0.10"}}, -1, []string{"ips"}},
		"DualPool":      {"a pool is of one family", "kube-ovn/dual", nf.Attachment{IPs: []string{"10.1.0.9", "fd00::9"}}, 2, []string{"ips"}},
		"MACs":          {"two pods cannot share a MAC address", "kube-ovn/plain", nf.Attachment{MAC: "02:00:00:00:00:09"}, 2, []string{"mac"}},
		"Burst":         {"kube-ovn takes no burst", "kube-ovn/plain", nf.Attachment{Bandwidth: limits}, 1, []string{"bandwidth.ingress_burst"}},
		"Rate":          {"kube-ovn counts in Mbit/s", "kube-ovn/plain", nf.Attachment{Bandwidth: &nf.Bandwidth{EgressRate: 1}}, 1, []string{"bandwidth.egress_rate"}},
		"TwoRoutes":     {"multus sets one route of each family", "kube-ovn/plain", nf.Attachment{DefaultRoute: []string{"10.1.0.1", "10.1.0.2"}}, 1, []string{"default_route[1]"}},
		"Layer2IPs":     {"the controller gives the addresses", "ovn-kubernetes/layer2", nf.Attachment{IPs: []string{"10.1.0.9"}}, 1, []string{"ips"}},
		"Layer3IPs":     {"each node gives them", "ovn-kubernetes/layer3", nf.Attachment{IPs: []string{"10.128.0.9/16"}, Bandwidth: limits}, 1, []string{"bandwidth", "ips", "ips[0]"}},
		"Layer2Bare":    {"an address without a subnet has a prefix length", "ovn-kubernetes/layer2-no-ipam", nf.Attachment{IPs: []string{"10.1.0.9"}}, 1, []string{"ips[0]"}},
		"Layer2Pods":    {"two pods cannot share an address", "ovn-kubernetes/layer2-no-ipam", nf.Attachment{IPs: []string{"10.1.0.9/24"}}, 2, []string{"ips"}},
		"NoAddress":     {"a route needs an address", "ovn-kubernetes/layer2-no-ipam", nf.Attachment{DefaultRoute: []string{"10.1.0.1"}}, 1, []string{"default_route"}},
		"NodusNoName":   {"the annotation names the interface", "nodus/network", nf.Attachment{Bandwidth: limits}, 1, []string{"bandwidth", "interface"}},
		"NodusTwo":      {"nodus takes one address", "nodus/network", nf.Attachment{Interface: "net1", IPs: []string{"10.1.0.9", "fd00::9"}}, 1, []string{"ips[1]"}},
		"KudNoAddress":  {"static gives no address", "kud-ovn/named-by-pod", nf.Attachment{}, 1, []string{"ips"}},
		"KudLimits":     {"OVN limits the port", "kud-ovn/named-by-pod", nf.Attachment{IPs: []string{"10.1.0.9/24"}, Bandwidth: limits}, 1, []string{"bandwidth"}},
		"KudNoPort":     {"a port is chosen", "kud-ovn/ports", nf.Attachment{}, 1, []string{"ips"}},
		"KudOtherPort":  {"among those of the network", "kud-ovn/ports", nf.Attachment{MAC: "02:00:00:00:00:77"}, 1, []string{"mac"}},
		"KudMixedPorts": {"not two at once", "kud-ovn/ports", nf.Attachment{IPs: []string{"10.1.0.9/24"}, MAC: "02:00:00:00:00:02"}, 1, []string{"ips"}},
		"KudPods":       {"two pods cannot share a port", "kud-ovn/ports", nf.Attachment{IPs: []string{"10.1.0.9/24"}}, 2, []string{"network"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := networks[tc.network]
			n := nf.Network{Name: "oam", Spec: normal(t, m.spec, regions[m.region])}
			_, err := ovn.Driver{}.Connect(n, namespace, tc.asks, tc.pods)
			if diff := cmp.Diff(tc.fields, fieldsOf(nf.ViolationsOf(err))); diff != "" {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestFrozen lists changes, with the fields that cannot change.
func TestFrozen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		region        string
		before, after string
		attached      bool
		fields        []string
	}{
		"DHCP":         {"pods ask again", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/24"], "dhcp": {}}`, true, nil},
		"Grow":         {"all addresses remain", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/16", "fd00::/64"]}`, true, nil},
		"Shrink":       {"a pod can have an address outside", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/25"]}`, true, []string{"spec.subnets"}},
		"ShrinkUnused": {"no pod has an address", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/25"]}`, false, nil},
		"Vpc":          {"a Subnet in use stays in its Vpc", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/24"], "own_vpc": true}`, true, []string{"spec.own_vpc"}},
		"Vlan":         {"and on its VLAN", "kube-ovn", `{"subnets": ["10.1.0.0/24"], "vlan": {"name": "a"}}`, `{"subnets": ["10.1.0.0/24"], "vlan": {"name": "b"}}`, true, []string{"spec.vlan"}},
		"Immutable":    {"a UserDefinedNetwork cannot change, even if it is unused", "ovn-kubernetes", `{"topology": "Layer2"}`, `{"topology": "Layer2", "mtu": 1400}`, false, []string{"spec.mtu"}},
		"Flavor":       {"nor the flavor of a network", "kube-ovn", `{"subnets": ["10.1.0.0/24"]}`, `{"flavor": "nodus", "subnets": ["10.1.0.0/24"]}`, false, []string{"spec.flavor"}},
		"Nodus":        {"nodus ignores changes", "nodus", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/24"], "exclude": ["10.1.0.9"]}`, false, []string{"spec.exclude"}},
		"Same":         {"an equal specification is no change", "nodus", `{"subnets": ["10.1.0.0/24"]}`, `{"subnets": ["10.1.0.0/24"], "gateways": ["10.1.0.1"]}`, true, nil},
		"Definition":   {"a definition can change", "kud-ovn", `{"flavor": "kud-ovn"}`, `{"flavor": "kud-ovn", "mtu": 1400}`, true, nil},
		"KudPorts":     {"the pods are on the switch of the controller", "kud-ovn", `{"flavor": "kud-ovn"}`, `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, true, []string{"spec.ports"}},
		"KudMore":      {"a port can be added", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, `{"flavor": "kud-ovn", "ports": [{"name": "b", "mac": "02:00:00:00:00:02", "ips": ["10.1.0.8/24"]}, {"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, true, nil},
		"KudLess":      {"pods may be on the port", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "b", "mac": "02:00:00:00:00:02", "ips": ["10.1.0.8/24"]}, {"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, true, []string{"spec.ports"}},
		"KudMAC":       {"with its addresses", "kud-ovn", `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:02", "ips": ["10.1.0.9/24"]}]}`, true, []string{"spec.ports"}},
		"KudFree":      {"no pod is on a switch", "kud-ovn", `{"flavor": "kud-ovn"}`, `{"flavor": "kud-ovn", "ports": [{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}]}`, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			region := regions[tc.region]
			v := ovn.Driver{}.Frozen(normal(t, tc.before, region), normal(t, tc.after, region), tc.attached)
			if diff := cmp.Diff(tc.fields, fieldsOf(v)); diff != "" {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, v, diff)
			}
		})
	}
}
