package multus_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Specifications of networks that attachments are checked with.
const (
	staticNetwork = `{"type": "macvlan", "ipam": {"type": "static"}}`
	sharedNetwork = `{"type": "macvlan", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.5/24"}]}}`
	hostLocal     = `{"type": "bridge", "bridge": "b", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.20", "ranges": [[{"subnet": "fd00::/64"}]]}}`
	pool          = `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24"}}`
	sharedPool    = `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24", "addresses": [{"address": "10.9.0.5/24"}]}}`
	fixedPool     = `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24", "ipRanges": [{"range": "fd00::/64"}]}, "fixed": ["10.1.0.9", "fd00::9"]}`
	dhcp          = `{"type": "macvlan", "ipam": {"type": "dhcp"}}`
	layer2        = `{"type": "macvlan", "chain": [{"type": "bandwidth"}]}`
	ipvlan        = `{"type": "ipvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24"}, "chain": [{"type": "tuning"}]}`
	device        = `{"type": "host-device", "device": "eth1"}`
	tunedDevice   = `{"type": "host-device", "resource_name": "intel.com/sriov", "chain": [{"type": "tuning"}]}`
	switchedOff   = `{"type": "macvlan", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.5/24"}]}, "capabilities": {"mac": false, "ips": false}}`
	existing      = `{"existing": {"namespace": "default", "name": "net"}}`
	declared      = `{"existing": {"namespace": "default", "name": "net"}, "capabilities": {"ips": true, "mac": true}, "resource_name": "intel.com/sriov"}`
	raw           = `{"raw": {"type": "ovs"}}`
	rawAble       = `{"raw": {"plugins": [{"type": "ovs", "capabilities": {"mac": true}}, {"type": "bandwidth", "capabilities": {"bandwidth": true, "x": 5}}]}}`
)

func TestConnect(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		spec     string
		asks     nf.Attachment
		replicas int
		want     string // the selection
	}{
		"Plain":        {"a network alone", pool, nf.Attachment{}, -1, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Interface":    {"the interface is chosen with the others of the pod", pool, nf.Attachment{Interface: "net7"}, 3, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Static":       {"fixed addresses and a MAC address", staticNetwork, nf.Attachment{IPs: []string{"10.1.0.9/24", "FD00::9/64"}, MAC: "02-00-00-00-00-0A"}, 1, `{"ips":["10.1.0.9/24","fd00::9/64"],"mac":"02:00:00:00:00:0a","name":"oam","namespace":"k8splugin-networks"}`},
		"Shared":       {"one pod may have the network's address", sharedNetwork, nf.Attachment{}, 1, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Replaced":     {"the address of an attachment replaces the network's", sharedNetwork, nf.Attachment{IPs: []string{"10.1.0.9/24"}}, 1, `{"ips":["10.1.0.9/24"],"name":"oam","namespace":"k8splugin-networks"}`},
		"HostLocal":    {"host-local takes a bare address", hostLocal, nf.Attachment{IPs: []string{"10.1.0.20"}}, 1, `{"ips":["10.1.0.20"],"name":"oam","namespace":"k8splugin-networks"}`},
		"HostLocalLen": {"and one with a prefix length", hostLocal, nf.Attachment{IPs: []string{"fd00::2/64"}}, 1, `{"ips":["fd00::2/64"],"name":"oam","namespace":"k8splugin-networks"}`},
		"Dynamic":      {"several pods get different addresses", hostLocal, nf.Attachment{}, 5, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Fixed":        {"a fixed address is of the second definition, with the prefix length of the range", fixedPool, nf.Attachment{IPs: []string{"10.1.0.9", "fd00::9/96"}}, 1, `{"ips":["10.1.0.9/24","fd00::9/96"],"name":"oam-fixed","namespace":"k8splugin-networks"}`},
		"NotFixed":     {"the others are of the first one", fixedPool, nf.Attachment{}, 2, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Route":        {"one default route of each family", pool, nf.Attachment{DefaultRoute: []string{"10.1.0.1", "fd00::1"}}, 2, `{"default-route":["10.1.0.1","fd00::1"],"name":"oam","namespace":"k8splugin-networks"}`},
		"Bandwidth":    {"limits in bits", layer2, nf.Attachment{Bandwidth: &nf.Bandwidth{IngressRate: 1000, IngressBurst: 2000}}, 2, `{"bandwidth":{"ingressBurst":2000,"ingressRate":1000},"name":"oam","namespace":"k8splugin-networks"}`},
		"NoLimits":     {"an empty limit is none", dhcp, nf.Attachment{Bandwidth: &nf.Bandwidth{}}, 2, `{"name":"oam","namespace":"k8splugin-networks"}`},
		"Existing":     {"the name is that of the definition", existing, nf.Attachment{DefaultRoute: []string{"10.0.0.1"}}, 2, `{"default-route":["10.0.0.1"],"name":"net","namespace":"default"}`},
		"Declared":     {"its capabilities are declared", declared, nf.Attachment{IPs: []string{"10.0.0.9"}, MAC: "02:00:00:00:00:01"}, 1, `{"ips":["10.0.0.9"],"mac":"02:00:00:00:00:01","name":"net","namespace":"default"}`},
		"Raw":          {"any plugin of the list may have the capability", rawAble, nf.Attachment{MAC: "02:00:00:00:00:01", Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 1}}, 1, `{"bandwidth":{"egressBurst":1,"egressRate":1},"mac":"02:00:00:00:00:01","name":"oam","namespace":"k8splugin-networks"}`},
		"Tuned":        {"tuning sets the MAC address", tunedDevice, nf.Attachment{MAC: "02:00:00:00:00:01"}, 1, `{"mac":"02:00:00:00:00:01","name":"oam","namespace":"k8splugin-networks"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := multus.Driver{}.Connect(nf.Network{Name: "oam", Spec: normal(t, tc.spec)}, namespace, tc.asks, tc.replicas)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, encoded(c.Selection)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.asks, c.Attachment); diff != "" {
				t.Errorf("the connection is of another attachment (-want +got)\n%s", diff)
			}
		})
	}
}

func TestConnectResources(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{tunedDevice, declared} {
		c, err := multus.Driver{}.Connect(nf.Network{Name: "oam", Spec: normal(t, spec)}, namespace, nf.Attachment{}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int64{"intel.com/sriov": 1}, c.Resources); diff != "" {
			t.Errorf("one attachment takes one device (-want +got)\n%s", diff)
		}
	}
}

func TestConnectWrong(t *testing.T) {
	t.Parallel()
	one := []string{"10.1.0.9/24"}
	const mac = "02:00:00:00:00:01"
	cases := map[string]struct {
		reason   string
		spec     string
		asks     nf.Attachment
		replicas int
		want     string
	}{
		"NoAddress":     {"static alone fails the pod", staticNetwork, nf.Attachment{}, 1, `ips: is required: the network gives no addresses`},
		"Bare":          {"static needs a prefix length", staticNetwork, nf.Attachment{IPs: []string{"10.1.0.9"}}, 1, `ips[0]: 10.1.0.9 needs a prefix length, such as 10.1.0.9/24`},
		"NotAddress":    {"an address is one", staticNetwork, nf.Attachment{IPs: []string{"10.1.0.9/24", "web"}}, 1, `ips[1]: "web" is not an IP address with a prefix length, such as 10.1.0.9/24`},
		"Twice":         {"an interface has an address once", staticNetwork, nf.Attachment{IPs: []string{"10.1.0.9/24", "10.1.0.9/16"}}, 1, `ips[1]: 10.1.0.9 is in the list already`},
		"Replicas":      {"two pods do not have one address", staticNetwork, nf.Attachment{IPs: one, MAC: mac}, 2, `ips: a fixed address needs a workload with one pod, and this one has 2 pods; mac: a fixed MAC address needs a workload with one pod, and this one has 2 pods`},
		"None":          {"a workload without pods gets them later", staticNetwork, nf.Attachment{IPs: one}, 0, `ips: a fixed address needs a workload with one pod, and this one has 0 pods`},
		"Unknown":       {"a DaemonSet has a pod on each node", staticNetwork, nf.Attachment{IPs: one}, -1, `ips: a fixed address needs a workload with one pod, and this one has an unknown number of pods`},
		"Shared":        {"the network's own address is fixed, too", sharedNetwork, nf.Attachment{}, 2, `network: the network gives each pod the address 10.1.0.5/24, and the workload has 2 pods; use a workload with one pod`},
		"SharedPool":    {"and so is one beside whereabouts", sharedPool, nf.Attachment{}, -1, `network: the network gives each pod the address 10.9.0.5/24, and the workload has an unknown number of pods; use a workload with one pod`},
		"HostLocalTwo":  {"multus passes several addresses in one text", hostLocal, nf.Attachment{IPs: []string{"10.1.0.11", "fd00::2"}}, 1, `ips[1]: the network takes one address: multus passes more of them to host-local in a form that it rejects`},
		"Outside":       {"host-local reserves addresses of its ranges only", hostLocal, nf.Attachment{IPs: []string{"10.1.0.21"}}, 1, `ips[0]: 10.1.0.21 is outside of the ranges of the network`},
		"Gateway":       {"and not the gateway", hostLocal, nf.Attachment{IPs: []string{"fd00::1"}}, 1, `ips[0]: fd00::1 is the gateway of the network`},
		"Pool":          {"whereabouts adds its own address", pool, nf.Attachment{IPs: one}, 1, `ips: the network does not take addresses: whereabouts gives the pod another address as well, and does not reserve this one; list the address in fixed of the network's specification`},
		"NotFixed":      {"another attachment may get the address", fixedPool, nf.Attachment{IPs: []string{"10.1.0.8"}}, 1, `ips[0]: 10.1.0.8 is not in fixed of the network's specification`},
		"DHCP":          {"dhcp ignores addresses", dhcp, nf.Attachment{IPs: one}, 1, `ips: the network does not take addresses: the DHCP server gives the address`},
		"Layer2":        {"nothing sets an address or a route", layer2, nf.Attachment{IPs: one, DefaultRoute: []string{"10.0.0.1"}}, 1, `ips: the network does not take addresses: the network has no IPAM; default_route: the interface has no address: the network has no IPAM`},
		"MasterMAC":     {"ipvlan shares the MAC address", ipvlan, nf.Attachment{MAC: mac}, 1, `mac: the network does not take MAC addresses: the plugin ipvlan uses the MAC address of its master`},
		"NoTuning":      {"a device keeps its MAC address", device, nf.Attachment{MAC: mac}, 1, `mac: the network does not take MAC addresses: the plugin host-device sets no MAC address; add tuning to the network's chain`},
		"NotMAC":        {"a MAC address is one", layer2, nf.Attachment{MAC: "2"}, 1, `mac: "2" is not a MAC address, such as 02:00:00:00:00:09`},
		"Multicast":     {"of one interface", layer2, nf.Attachment{MAC: "ff:ff:ff:ff:ff:ff"}, 1, `mac: ff:ff:ff:ff:ff:ff is a multicast address`},
		"Zero":          {"that exists", layer2, nf.Attachment{MAC: "00:00:00:00:00:00"}, 1, `mac: 00:00:00:00:00:00 is not the address of an interface`},
		"SwitchedOff":   {"an operator can switch a capability off", switchedOff, nf.Attachment{MAC: mac, IPs: one}, 1, `ips: the network does not take addresses: the network's specification sets capabilities.ips to false; mac: the network does not take MAC addresses: the network's specification sets capabilities.mac to false`},
		"TwoRoutes":     {"multus has one default route of a family", pool, nf.Attachment{DefaultRoute: []string{"10.1.0.1", "10.1.0.2", "x"}}, 1, `default_route[1]: multus sets one default route for each of IPv4 and IPv6; default_route[2]: "x" is not an IP address`},
		"NoBandwidth":   {"nothing limits the traffic", pool, nf.Attachment{Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 1}}, 1, `bandwidth: the network does not limit traffic: the network has no plugin bandwidth in its chain`},
		"HalfBandwidth": {"a rate has a burst", layer2, nf.Attachment{Bandwidth: &nf.Bandwidth{EgressRate: 1, IngressBurst: -1}}, 1, `bandwidth: ingress_rate and ingress_burst must both be positive; bandwidth: egress_rate and egress_burst must both be positive`},
		"Burst":         {"a burst has 32 bits of bytes", layer2, nf.Attachment{Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 8 << 32}}, 1, `bandwidth.egress_burst: must be at most 34359738367 bits, got 34359738368`},
		"Existing":      {"an existing definition is not known", existing, nf.Attachment{IPs: one, MAC: mac}, 1, `ips: the network does not take addresses: the network's specification does not declare capabilities.ips; mac: the network does not take MAC addresses: the network's specification does not declare capabilities.mac`},
		"Raw":           {"nor is an unknown plugin", raw, nf.Attachment{IPs: one}, 1, `ips: the network does not take addresses: no plugin of the network declares capabilities.ips`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := multus.Driver{}.Connect(nf.Network{Name: "oam", Spec: normal(t, tc.spec)}, namespace, tc.asks, tc.replicas)
			if nf.KindOf(err) != nf.Invalid {
				t.Fatalf("%s: got %v, want an error of kind invalid", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRegionInterface resolves the name that a region gives to an interface.
func TestRegionInterface(t *testing.T) {
	t.Parallel()
	region := nf.NetworkRegion{Interfaces: map[string]string{"oam": "eth1"}}
	cases := map[string]struct {
		spec  string
		want  string
		field string
	}{
		"Named":   {`{"type": "macvlan", "master": {"region_interface": "oam"}}`, `{"cni_version":"1.0.0","master":"eth1","mode":"bridge","type":"macvlan"}`, ""},
		"Direct":  {`{"type": "macvlan", "master": "eth2"}`, `{"cni_version":"1.0.0","master":"eth2","mode":"bridge","type":"macvlan"}`, ""},
		"Unknown": {`{"type": "macvlan", "master": {"region_interface": "lan"}}`, "", "spec.master.region_interface"},
		"Further": {`{"type": "macvlan", "master": {"region_interface": "oam", "x": 1}}`, "", "spec.master"},
		"Number":  {`{"type": "macvlan", "master": {"region_interface": 5}}`, "", "spec.master"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := multus.Driver{}.Normalize(json.RawMessage(tc.spec), region)
			v := nf.ViolationsOf(err)
			if string(got) != tc.want || (tc.field == "") != (err == nil) || tc.field != "" && (len(v) != 1 || v[0].Field != tc.field) {
				t.Errorf("%s: %s, %v", tc.spec, got, err)
			}
		})
	}
}
