package multus_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWrong lists specifications that are rejected, with the fields of all their
// violations.
func TestWrong(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spec   string
		fields []string
	}{
		"NotJSON":          {"a specification is JSON", `{`, []string{"spec"}},
		"List":             {"it is an object", `[]`, []string{"spec"}},
		"Trailing":         {"it is one object", `{"type": "macvlan"} {}`, []string{"spec"}},
		"Empty":            {"it has a plugin", `{}`, []string{"spec.type"}},
		"Null":             {"null is no object", `null`, []string{"spec.type"}},
		"Unknown":          {"an unknown plugin needs raw", `{"type": "sriov"}`, []string{"spec.type"}},
		"TypeNumber":       {"the type is text", `{"type": 5}`, []string{"spec.type"}},
		"TwoForms":         {"the forms exclude each other", `{"type": "macvlan", "existing": {"namespace": "a", "name": "b"}}`, []string{"spec.existing"}},
		"UnknownField":     {"a field that no plugin reads has no effect", `{"type": "macvlan", "vlan": 5}`, []string{"spec.vlan"}},
		"OddField":         {"the path of a name with dots is unambiguous", `{"type": "macvlan", "a.b": 5}`, []string{"spec[a.b]"}},
		"All":              {"all violations are reported at once", `{"type": "macvlan", "mode": "x", "mtu": 10, "ipam": {"type": "static", "x": 1}}`, []string{"spec.ipam.x", "spec.mode", "spec.mtu"}},
		"Version":          {"the version is one that multus and plugins read", `{"type": "macvlan", "cni_version": "1.1.0"}`, []string{"spec.cni_version"}},
		"Resource":         {"a resource has a prefix", `{"type": "macvlan", "resource_name": "sriov"}`, []string{"spec.resource_name"}},
		"Master":           {"an interface has at most 15 characters", `{"type": "macvlan", "master": "abcdefghijklmnop"}`, []string{"spec.master"}},
		"MasterSlash":      {"and no slash", `{"type": "macvlan", "master": "a/b"}`, []string{"spec.master"}},
		"NoBridge":         {"the default bridge can be that of the cluster network", `{"type": "bridge"}`, []string{"spec.bridge"}},
		"Vlan":             {"a VLAN id has 12 bits, and 4095 is reserved", `{"type": "bridge", "bridge": "b", "vlan": 4095}`, []string{"spec.vlan"}},
		"VlanTrunk":        {"a port is tagged or untagged", `{"type": "bridge", "bridge": "b", "vlan": 5, "vlanTrunk": [{"id": 6}]}`, []string{"spec.vlan"}},
		"TrunkZero":        {"a trunk has ids from 1", `{"type": "bridge", "bridge": "b", "vlanTrunk": [{"id": 0}]}`, []string{"spec.vlanTrunk[0].id"}},
		"TrunkHalf":        {"both ends of ids are needed", `{"type": "bridge", "bridge": "b", "vlanTrunk": [{"id": 1}, {"minID": 5}]}`, []string{"spec.vlanTrunk[1]"}},
		"TrunkOrder":       {"in their order", `{"type": "bridge", "bridge": "b", "vlanTrunk": [{"minID": 5, "maxID": 4}]}`, []string{"spec.vlanTrunk[0].minID"}},
		"TrunkBoth":        {"an element is one id or several", `{"type": "bridge", "bridge": "b", "vlanTrunk": [{"id": 1, "minID": 5, "maxID": 6}]}`, []string{"spec.vlanTrunk[0]"}},
		"Hairpin":          {"the plugin rejects both", `{"type": "bridge", "bridge": "b", "hairpinMode": true, "promiscMode": true}`, []string{"spec.hairpinMode"}},
		"Disabled":         {"an interface that is disabled has no address", `{"type": "bridge", "bridge": "b", "disableContainerInterface": true, "ipam": {"type": "dhcp"}}`, []string{"spec.disableContainerInterface"}},
		"Gateway":          {"without an IPAM, the bridge gets no address", `{"type": "bridge", "bridge": "b", "isGateway": true}`, []string{"spec.isGateway"}},
		"Mode":             {"a mode is one of the plugin's", `{"type": "macvlan", "mode": "l2"}`, []string{"spec.mode"}},
		"IpvlanIPAM":       {"ipvlan needs an address", `{"type": "ipvlan"}`, []string{"spec.ipam"}},
		"PtpIPAM":          {"ptp needs an address", `{"type": "ptp", "ipam": {}}`, []string{"spec.ipam"}},
		"VlanMaster":       {"vlan needs a master", `{"type": "vlan", "ipam": {"type": "static"}}`, []string{"spec.master"}},
		"NoDevice":         {"host-device needs a device", `{"type": "host-device"}`, []string{"spec"}},
		"TwoDevices":       {"and only one", `{"type": "host-device", "device": "eth1", "pciBusID": "0000:00:1f.6"}`, []string{"spec"}},
		"DeviceResource":   {"a resource brings the device", `{"type": "host-device", "device": "eth1", "resource_name": "a/b"}`, []string{"spec"}},
		"Boolean":          {"text is not a boolean", `{"type": "macvlan", "linkInContainer": "true"}`, []string{"spec.linkInContainer"}},
		"Fraction":         {"an MTU is a whole number", `{"type": "macvlan", "mtu": 1500.5}`, []string{"spec.mtu"}},
		"IPAMUnknown":      {"an unknown IPAM needs raw", `{"type": "macvlan", "ipam": {"type": "calico-ipam"}}`, []string{"spec.ipam.type"}},
		"IPAMNoType":       {"an IPAM has a type", `{"type": "macvlan", "ipam": {"subnet": "10.0.0.0/24"}}`, []string{"spec.ipam.type"}},
		"HostBits":         {"a subnet has no host bits", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.5/24"}}`, []string{"spec.ipam.subnet"}},
		"NoRange":          {"host-local needs a range", `{"type": "macvlan", "ipam": {"type": "host-local"}}`, []string{"spec.ipam.ranges"}},
		"EmptySet":         {"a set has a range", `{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[]]}}`, []string{"spec.ipam.ranges[0]"}},
		"Small":            {"a range has at least 4 addresses", `{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/31"}, {"subnet": "fd00::/127"}]]}}`, []string{"spec.ipam.ranges[0][0].subnet", "spec.ipam.ranges[0][1].subnet"}},
		"Outside":          {"a range is in its subnet", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1", "rangeEnd": "10.0.2.1", "gateway": "fd00::1"}}`, []string{"spec.ipam.gateway", "spec.ipam.rangeEnd", "spec.ipam.rangeStart"}},
		"Backward":         {"a range starts before it ends", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.8"}}`, []string{"spec.ipam.rangeStart"}},
		"Overlap":          {"sets do not overlap", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24", "ranges": [[{"subnet": "10.0.0.128/25"}]]}}`, []string{"spec.ipam.ranges[0][0].subnet"}},
		"Families":         {"a set gives one address", `{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]}}`, []string{"spec.ipam.ranges[0][1].subnet"}},
		"StartAlone":       {"a start has a subnet", `{"type": "macvlan", "ipam": {"type": "host-local", "rangeStart": "10.0.0.9", "ranges": [[{"subnet": "10.0.0.0/24"}]]}}`, []string{"spec.ipam.rangeStart"}},
		"NestedUnknown":    {"fields are known at every depth", `{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/24", "range_start": "10.0.0.9"}]]}}`, []string{"spec.ipam.ranges[0][0].range_start"}},
		"StaticBare":       {"a static address has a prefix length", `{"type": "macvlan", "ipam": {"type": "static", "addresses": [{"address": "10.0.0.9"}]}}`, []string{"spec.ipam.addresses[0].address"}},
		"StaticHostLocal":  {"static has no range", `{"type": "macvlan", "ipam": {"type": "static", "subnet": "10.0.0.0/24"}}`, []string{"spec.ipam.subnet"}},
		"RouteBits":        {"a destination is a subnet", `{"type": "macvlan", "ipam": {"type": "static", "routes": [{"dst": "10.0.0.1/8"}]}}`, []string{"spec.ipam.routes[0].dst"}},
		"DNS":              {"a name server is an address", `{"type": "macvlan", "ipam": {"type": "static", "dns": {"nameservers": ["ns.example.com"]}}}`, []string{"spec.ipam.dns.nameservers[0]"}},
		"DHCPOption":       {"an option is known by name or number", `{"type": "macvlan", "ipam": {"type": "dhcp", "request": [{"option": "ntp"}]}}`, []string{"spec.ipam.request[0].option"}},
		"DHCPBoth":         {"an option has one source", `{"type": "macvlan", "ipam": {"type": "dhcp", "provide": [{"option": "12", "value": "a", "fromArg": "b"}]}}`, []string{"spec.ipam.provide[0]"}},
		"NoPool":           {"whereabouts needs a range", `{"type": "macvlan", "ipam": {"type": "whereabouts"}}`, []string{"spec.ipam.range"}},
		"PoolBits":         {"whereabouts drops host bits silently", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.9/24"}}`, []string{"spec.ipam.range"}},
		"PoolSpan":         {"a range is in one subnet", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.9-10.0.1.9/24"}}`, []string{"spec.ipam.range"}},
		"PoolExclude":      {"an exclusion outside has no effect", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.1.0/24"]}}`, []string{"spec.ipam.exclude[0]"}},
		"PoolNested":       {"the same holds for further ranges", `{"type": "macvlan", "ipam": {"type": "whereabouts", "ipRanges": [{"range": "fd00::/64", "range_start": "fd01::1"}]}}`, []string{"spec.ipam.ipRanges[0].range_start"}},
		"PoolStart":        {"a start needs the range", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range_start": "fd00::5", "ipRanges": [{"range": "fd00::/64"}]}}`, []string{"spec.ipam.range_start"}},
		"FixedStatic":      {"static takes addresses without fixed", `{"type": "macvlan", "ipam": {"type": "static"}, "fixed": ["10.0.0.1"]}`, []string{"spec.fixed"}},
		"FixedOutside":     {"a fixed address is one of the network's", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}, "fixed": ["10.0.0.1", "10.0.1.1", "10.0.0.1"]}`, []string{"spec.fixed[1]", "spec.fixed[2]"}},
		"NodeLocal":        {"node_local is about host-local", `{"type": "macvlan", "node_local": true}`, []string{"spec.node_local"}},
		"NoIPs":            {"no plugin takes the addresses", `{"type": "macvlan", "ipam": {"type": "dhcp"}, "capabilities": {"ips": true}}`, []string{"spec.capabilities.ips"}},
		"NoMAC":            {"no plugin sets the MAC address", `{"type": "ipvlan", "ipam": {"type": "static"}, "capabilities": {"mac": true}, "chain": [{"type": "tuning"}]}`, []string{"spec.capabilities.mac"}},
		"NoTuning":         {"tuning would", `{"type": "host-device", "device": "a", "capabilities": {"mac": true}}`, []string{"spec.capabilities.mac"}},
		"NoBandwidth":      {"no plugin limits the traffic", `{"type": "macvlan", "capabilities": {"bandwidth": true}}`, []string{"spec.capabilities.bandwidth"}},
		"Capability":       {"an unknown capability has no effect", `{"type": "macvlan", "capabilities": {"infinibandGUID": true}}`, []string{"spec.capabilities.infinibandGUID"}},
		"ChainMain":        {"a main plugin is not chained", `{"type": "macvlan", "chain": [{"type": "bridge"}]}`, []string{"spec.chain[0].type"}},
		"ChainTwice":       {"one plugin twice undoes itself", `{"type": "macvlan", "chain": [{"type": "tuning"}, {"type": "tuning"}]}`, []string{"spec.chain[1].type"}},
		"ChainBandwidth":   {"a rate has a burst", `{"type": "macvlan", "chain": [{"type": "bandwidth", "ingressRate": 1000}]}`, []string{"spec.chain[0]"}},
		"ChainBurst":       {"a burst has 32 bits of bytes", `{"type": "macvlan", "chain": [{"type": "bandwidth", "egressRate": 1, "egressBurst": 34359738368}]}`, []string{"spec.chain[0].egressBurst"}},
		"ChainVRF":         {"a VRF has a name", `{"type": "macvlan", "chain": [{"type": "vrf"}]}`, []string{"spec.chain[0].vrfname"}},
		"ChainSysctl":      {"a setting of the kernel is text", `{"type": "macvlan", "chain": [{"type": "tuning", "sysctl": {"net.core.somaxconn": 500}}]}`, []string{"spec.chain[0].sysctl[net.core.somaxconn]"}},
		"ChainMAC":         {"a multicast address is not one of an interface", `{"type": "macvlan", "chain": [{"type": "tuning", "mac": "01:00:00:00:00:01"}]}`, []string{"spec.chain[0].mac"}},
		"ChainMark":        {"the plugin takes one mark", `{"type": "macvlan", "chain": [{"type": "portmap", "markMasqBit": 0, "externalSetMarkChain": "X"}]}`, []string{"spec.chain[0].externalSetMarkChain"}},
		"ChainFirewall":    {"firewall needs a later version", `{"type": "macvlan", "cni_version": "0.3.1", "chain": [{"type": "firewall"}]}`, []string{"spec.chain[0].type"}},
		"ChainText":        {"a plugin is an object", `{"type": "macvlan", "chain": ["tuning"]}`, []string{"spec.chain[0]"}},
		"ChainNull":        {"an element is there", `{"type": "macvlan", "chain": [null]}`, []string{"spec.chain[0]"}},
		"ExistingDot":      {"multus finds no name with a dot", `{"existing": {"namespace": "default", "name": "a.b"}}`, []string{"spec.existing.name"}},
		"ExistingHalf":     {"a definition has a namespace", `{"existing": {"name": "a"}}`, []string{"spec.existing.namespace"}},
		"ExistingMore":     {"a definition has its own settings", `{"existing": {"namespace": "default", "name": "a"}, "mtu": 1500}`, []string{"spec.mtu"}},
		"RawNoType":        {"multus needs a type", `{"raw": {"master": "eth1"}}`, []string{"spec.raw.type"}},
		"RawName":          {"the name is that of the network", `{"raw": {"type": "x", "name": "other"}}`, []string{"spec.raw.name"}},
		"RawVersion":       {"the version is known", `{"raw": {"type": "x", "cniVersion": 1}}`, []string{"spec.raw.cniVersion"}},
		"RawPlugins":       {"a list has plugins", `{"raw": {"plugins": []}}`, []string{"spec.raw.plugins"}},
		"RawPlugin":        {"each plugin has a type", `{"raw": {"plugins": [{"type": "x"}, {}, 5]}}`, []string{"spec.raw.plugins[1].type", "spec.raw.plugins[2]"}},
		"RawBoth":          {"a list is not a plugin", `{"raw": {"type": "x", "plugins": [{"type": "x"}]}}`, []string{"spec.raw.type"}},
		"RawCapabilities":  {"its capabilities are in the configuration", `{"raw": {"type": "x"}, "capabilities": {"ips": true}}`, []string{"spec.capabilities"}},
		"RegionInterface":  {"an interface is a name", `{"type": "macvlan", "master": {"region_interface": "oam"}}`, []string{"spec.master.region_interface"}},
		"MappedAddress":    {"a mapped subnet is of neither family", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "::ffff:10.0.0.0/120"}}`, []string{"spec.ipam.subnet"}},
		"ZonedAddress":     {"a zone is of one host", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "fe80::/64", "gateway": "fe80::1%eth0"}}`, []string{"spec.ipam.gateway"}},
		"WhereaboutsStray": {"a gateway is in the range", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "gateway": "10.0.1.1"}}`, []string{"spec.ipam.gateway"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := multus.Driver{}.Normalize(json.RawMessage(tc.spec), nf.NetworkRegion{})
			if nf.KindOf(err) != nf.Invalid || out != nil {
				t.Fatalf("%s: got %s and the error %v, want an error of kind invalid", tc.reason, out, err)
			}
			var fields []string
			for _, v := range nf.ViolationsOf(err) {
				fields = append(fields, v.Field)
				if v.Message == "" {
					t.Errorf("%s: %s has no message", tc.reason, v.Field)
				}
			}
			slices.Sort(fields)
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestMessages pins the messages of some violations.
func TestMessages(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{"type": "macvlan", "vlan": 5}`:                                               `cannot check network: spec.vlan: unknown field; known: bcqueuelen, capabilities, chain, cni_version, fixed, ipam, linkInContainer, master, mode, mtu, node_local, resource_name, type`,
		`{"type": "macvlan", "mtu": "1500"}`:                                           `cannot check network: spec.mtu: must be a whole number from 68 to 65535, got text`,
		`{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.5/24"}}`: `cannot check network: spec.ipam.subnet: 10.0.0.5/24 has host bits; the subnet is 10.0.0.0/24`,
		`{"type": "ovs"}`: `cannot check network: spec.type: must be one of bridge, host-device, ipvlan, macvlan, ptp, vlan, got "ovs"; for another plugin, use raw`,
	}
	for spec, want := range cases {
		if _, err := (multus.Driver{}).Normalize(json.RawMessage(spec), nf.NetworkRegion{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
}
