package ovn_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var update = flag.Bool("update", false, "rewrite the objects in testdata")

var (
	_ network.Driver     = ovn.Driver{}
	_ network.PluginUser = ovn.Driver{}
)

// namespace holds the objects of the tests.
const namespace = "k8splugin-networks"

// serving returns a region that serves kinds of the driver.
func serving(kinds ...string) (r nf.NetworkRegion) {
	for _, kind := range (ovn.Driver{}).Kinds() {
		if slices.Contains(kinds, kind.Kind) {
			r.Served = append(r.Served, kind)
		}
	}
	return r
}

// regions are the regions of the tests, by what they serve.
var regions = map[string]nf.NetworkRegion{
	"kube-ovn":                            serving("Subnet"),
	"ovn-kubernetes":                      serving("UserDefinedNetwork", "ClusterUserDefinedNetwork", "EgressIP"),
	"ovn-kubernetes-without-segmentation": serving("EgressIP"),
	"nodus":                               serving("Network"),
	"kud-ovn":                             {},
}

// made is a network of a region, with attachments of workloads with one pod, unless
// pods is another number.
type made struct {
	region string
	spec   string
	pods   int
	asks   []nf.Attachment
}

var plainPod = nf.Attachment{Interface: "net1"}

// networks are networks of every combination of fields that changes objects.
var networks = map[string]made{
	"kube-ovn/plain":    {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"]}`, asks: []nf.Attachment{plainPod, {IPs: []string{"10.1.0.9"}, MAC: "02:00:00:00:00:09"}, {DefaultRoute: []string{"10.1.0.1"}}}},
	"kube-ovn/dual":     {region: "kube-ovn", spec: `{"subnets": ["FD00::/64", "10.1.0.0/24"], "gateways": ["10.1.0.254"], "exclude": ["10.1.0.200..10.1.0.254", "fd00::2"]}`, asks: []nf.Attachment{{IPs: []string{"10.1.0.9/24", "fd00::9"}}}},
	"kube-ovn/pool":     {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"]}`, pods: 2, asks: []nf.Attachment{{IPs: []string{"10.1.0.9", "10.1.0.10"}}}},
	"kube-ovn/ipv6":     {region: "kube-ovn", spec: `{"subnets": ["fd00::/64"], "enableIPv6RA": true, "ipv6RAConfigs": "address_mode=dhcpv6_stateful,send_periodic=true", "dhcp": {"dns_servers": ["fd00::53"], "domain_name": "edge.example.com"}}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/dhcp":     {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "dhcp": {}}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/options":  {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24", "fd00::/64"], "mtu": 1400, "dhcp": {"lease_time": 600, "dns_servers": ["10.1.0.2", "fd00::53", "10.1.0.3"], "domain_name": "edge.example.com", "ntp_servers": ["10.1.0.4"], "mtu": 1400, "extra": {"tftp_server_address": "10.1.0.5", "bootfile_name": "\"pxelinux.0\""}}}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/own-vpc":  {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "own_vpc": true, "staticRoutes": [{"cidr": "0.0.0.0/0", "nextHopIP": "10.1.0.254", "policy": "policyDst"}], "policyRoutes": [{"priority": 10, "match": "ip4.src == 10.1.0.0/25", "action": "reroute", "nextHopIP": "10.1.0.253"}], "dns": {}}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/vpc":      {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "vpc": "tenant-a", "dns": {"replicas": 1}}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/vlan":     {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "vlan": {"id": 100, "provider": "net1"}, "logicalGateway": true}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/old-vlan": {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "vlan": {"name": "vlan100"}, "disableGatewayCheck": true}`, asks: []nf.Attachment{plainPod}},
	"kube-ovn/rules": {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "private": true, "allowSubnets": ["10.2.0.0/16"], "natOutgoing": true, "gatewayType": "centralized", "gatewayNode": "node1", "enableLb": false,
		"acls": [{"direction": "to-lport", "priority": 1001, "match": "ip4.src == 10.3.0.0/16", "action": "drop"}], "allowEWTraffic": true}`,
		asks: []nf.Attachment{{Bandwidth: &nf.Bandwidth{IngressRate: 5_000_000, EgressRate: 1_000_000}}}},
	"kube-ovn/egress": {region: "kube-ovn", spec: `{"subnets": ["10.1.0.0/24"], "externalEgressGateway": "10.9.0.1"}`, asks: []nf.Attachment{plainPod}},

	"ovn-kubernetes/layer2":         {region: "ovn-kubernetes", spec: `{"topology": "Layer2", "subnets": ["10.1.0.0/24", "fd00::/64"], "mtu": 1400, "allowPersistentIPs": true}`, asks: []nf.Attachment{plainPod, {MAC: "02:00:00:00:00:09", DefaultRoute: []string{"10.1.0.1"}}}},
	"ovn-kubernetes/layer2-no-ipam": {region: "ovn-kubernetes", spec: `{"topology": "Layer2", "role": "Secondary"}`, asks: []nf.Attachment{plainPod, {IPs: []string{"10.1.0.9/24"}}}},
	"ovn-kubernetes/layer3":         {region: "ovn-kubernetes", spec: `{"topology": "Layer3", "subnets": ["10.128.0.0/16/24", "fd00::/48"]}`, asks: []nf.Attachment{plainPod}},
	"ovn-kubernetes/localnet":       {region: "ovn-kubernetes", spec: `{"topology": "Localnet", "physicalNetworkName": "tenantblue", "subnets": ["10.1.0.0/24"], "excludeSubnets": ["10.1.0.0/28"], "vlanID": 100}`, asks: []nf.Attachment{plainPod}},
	"ovn-kubernetes/cluster":        {region: "ovn-kubernetes", spec: `{"topology": "Layer3", "kind": "ClusterUserDefinedNetwork", "subnets": ["10.128.0.0/16/24"]}`, asks: []nf.Attachment{plainPod}},
	"ovn-kubernetes/nad-layer2":     {region: "ovn-kubernetes-without-segmentation", spec: `{"topology": "Layer2", "subnets": ["10.1.0.0/24"], "excludeSubnets": ["10.1.0.0/30", "10.1.0.128/25"], "allowPersistentIPs": true}`, asks: []nf.Attachment{plainPod}},
	"ovn-kubernetes/nad-layer3":     {region: "ovn-kubernetes-without-segmentation", spec: `{"topology": "Layer3", "subnets": ["10.128.0.0/16/24"], "mtu": 1300}`, asks: []nf.Attachment{plainPod}},
	"ovn-kubernetes/nad-localnet":   {region: "ovn-kubernetes", spec: `{"topology": "Localnet", "kind": "NetworkAttachmentDefinition", "physicalNetworkName": "tenantblue", "vlanID": 100}`, asks: []nf.Attachment{plainPod}},

	"nodus/network": {region: "nodus", spec: `{"subnets": ["10.1.0.0/24", "fd00::/64"], "exclude": ["10.1.0.2", "10.1.0.5..10.1.0.9"], "routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.2"}]}`, asks: []nf.Attachment{plainPod, {Interface: "net1", IPs: []string{"10.1.0.20"}, MAC: "02:00:00:00:00:09"}}},
	"nodus/vlan":    {region: "nodus", spec: `{"subnets": ["10.1.0.0/24"], "vlan": {"vlanId": 100, "providerInterfaceName": "eth1", "logicalInterfaceName": "eth1.100", "vlanNodeSelector": "specific", "nodeLabelList": ["kubernetes.io/hostname=node1"]}}`, asks: []nf.Attachment{plainPod}},
	"nodus/direct":  {region: "nodus", spec: `{"subnets": ["10.1.0.0/24"], "direct": {"providerInterfaceName": "eth1"}}`, asks: []nf.Attachment{plainPod}},

	"kud-ovn/named-by-pod": {region: "kud-ovn", spec: `{"flavor": "kud-ovn", "mtu": 1400, "routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.1"}]}`, asks: []nf.Attachment{{IPs: []string{"10.1.0.9/24"}}, {IPs: []string{"10.1.0.9/24"}, MAC: "02:00:00:00:00:09"}}},
	"kud-ovn/ports":        {region: "kud-ovn", spec: `{"flavor": "kud-ovn", "ports": [{"name": "fw-left", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.9/24"]}, {"name": "fw-right", "mac": "02-00-00-00-00-02", "ips": ["10.1.0.10/24", "fd00::10/64"]}]}`, asks: []nf.Attachment{{IPs: []string{"10.1.0.9/24"}}, {MAC: "02:00:00:00:00:02"}}},
}

// TestObjects compares the canonical forms, the objects, and the attachments of every
// network with testdata.
func TestObjects(t *testing.T) {
	t.Parallel()
	files := map[string]*txtar.Archive{}
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		file := filepath.Join("testdata", filepath.Dir(name)+".txtar")
		if files[file] == nil {
			files[file] = &txtar.Archive{}
		}
		add(t, files[file], filepath.Base(name), networks[name])
	}
	for file, got := range files {
		if *update {
			if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(txtar.Format(got))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

// add adds the results for a network to an archive.
func add(t *testing.T, out *txtar.Archive, name string, m made) {
	t.Helper()
	write := func(file string, v any) {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.Files = append(out.Files, txtar.File{Name: name + "/" + file, Data: append(text, '\n')})
	}
	n := nf.Network{Name: "oam", Spec: normal(t, m.spec, regions[m.region])}
	write("spec", n.Spec)
	objects, err := ovn.Driver{}.Objects(n, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		write(o.GetKind(), o.Object)
	}
	for _, asked := range m.asks {
		c, err := ovn.Driver{}.Connect(n, namespace, asked, max(m.pods, 1))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		write("attachment", map[string]any{"selection": c.Selection, "annotations": c.Annotations})
	}
}

// normal returns a normalized specification.
func normal(t *testing.T, spec string, region nf.NetworkRegion) json.RawMessage {
	t.Helper()
	once, err := ovn.Driver{}.Normalize(json.RawMessage(spec), region)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	twice, err := ovn.Driver{}.Normalize(once, region)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("the canonical form of %s is %s (%v)", once, twice, err)
	}
	return once
}
