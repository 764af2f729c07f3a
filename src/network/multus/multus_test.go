package multus_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var update = flag.Bool("update", false, "rewrite the configurations in testdata")

// namespace holds the definitions of the tests.
const namespace = "k8splugin-networks"

// mains are specifications of main plugins without IPAM.
var mains = map[string]string{
	"bridge":      `{"type": "bridge", "bridge": "br-oam", "vlan": 100, "mtu": 1450, "macspoofchk": true, "preserveDefaultVlan": false}`,
	"macvlan":     `{"type": "macvlan", "master": "eth1"}`,
	"ipvlan":      `{"type": "ipvlan", "master": "eth1", "mode": "l3s", "mtu": 1400}`,
	"host-device": `{"type": "host-device", "device": "eth2", "chain": [{"type": "tuning", "sysctl": {"net.ipv4.conf.all.rp_filter": "0"}}]}`,
	"vlan":        `{"type": "vlan", "master": "eth1", "vlanId": 7, "chain": [{"type": "sbr"}]}`,
	"ptp":         `{"type": "ptp", "ipMasq": true, "chain": [{"type": "portmap", "snat": true}, {"type": "bandwidth"}, {"type": "tuning", "mtu": 1400}]}`,
}

// addressings are IPAMs, each with an attachment that uses it.
var addressings = map[string]struct {
	ipam string
	asks nf.Attachment
}{
	"none": {`{}`, nf.Attachment{}},
	"host-local": {
		`{"type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "gateway": "10.1.0.1", "ranges": [[{"subnet": "2001:DB8::/64"}]], "routes": [{"dst": "0.0.0.0/0"}]}`,
		nf.Attachment{IPs: []string{"10.1.0.20"}},
	},
	"static": {
		`{"type": "static", "routes": [{"dst": "10.2.0.0/16", "gw": "10.1.0.1"}], "dns": {"nameservers": ["10.1.0.2"]}}`,
		nf.Attachment{IPs: []string{"10.1.0.9/24", "2001:db8::9/64"}},
	},
	"dhcp": {
		`{"type": "dhcp", "provide": [{"option": "host-name", "value": "vnf"}], "request": [{"option": "121"}]}`,
		nf.Attachment{DefaultRoute: []string{"10.1.0.1"}},
	},
	"whereabouts": {
		`{"type": "whereabouts", "range": "10.1.0.10-10.1.0.99/24", "gateway": "10.1.0.1", "exclude": ["10.1.0.50"], "enable_overlapping_ranges": true}`,
		nf.Attachment{},
	},
}

// TestConfigurations compares the definitions and the selections of every main
// plugin with every IPAM with testdata.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	for main, spec := range mains {
		t.Run(main, func(t *testing.T) {
			t.Parallel()
			got := &txtar.Archive{}
			for _, kind := range slices.Sorted(maps.Keys(addressings)) {
				with := addressings[kind]
				add(got, kind, fmt.Sprintf(`%s, "ipam": %s}`, spec[:len(spec)-1], with.ipam), with.asks)
			}
			file := filepath.Join("testdata", main+".txtar")
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
				t.Errorf("%s writes other configurations (-want +got)\n%s", main, diff)
			}
		})
	}
}

// add adds the results for a specification to an archive.
func add(out *txtar.Archive, name, spec string, asks nf.Attachment) {
	write := func(file, text string) {
		out.Files = append(out.Files, txtar.File{Name: name + "/" + file, Data: []byte(text + "\n")})
	}
	normal, err := multus.Driver{}.Normalize(json.RawMessage(spec), nf.NetworkRegion{})
	if err != nil {
		write("error", err.Error())
		return
	}
	write("normalized", string(normal))
	n := nf.Network{Name: "oam", Spec: normal}
	objects, err := multus.Driver{}.Objects(n, namespace)
	if err != nil {
		write("error", err.Error())
		return
	}
	for _, o := range objects {
		config := o.Object["spec"].(map[string]any)["config"].(string)
		write("config", config)
	}
	c, err := multus.Driver{}.Connect(n, namespace, asks, 1)
	if err != nil {
		write("attachment-error", err.Error())
		return
	}
	write("selection", encoded(c.Selection))
}

func encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// normal returns a normalized specification.
func normal(t *testing.T, spec string) json.RawMessage {
	t.Helper()
	out, err := multus.Driver{}.Normalize(json.RawMessage(spec), nf.NetworkRegion{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := multus.Driver{}.Normalize(out, nf.NetworkRegion{})
	if err != nil {
		t.Fatalf("%s: the canonical form is rejected: %v", out, err)
	}
	if !bytes.Equal(out, again) {
		t.Fatalf("%s: the canonical form of the canonical form is %s", out, again)
	}
	return out
}

// TestObjects compares whole objects with the contract.
func TestObjects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"Static": {
			"addresses of attachments reach the plugin only as capabilities", `{"type": "macvlan", "master": "eth1", "ipam": {"type": "static"}}`,
			[]string{`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"oam","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"oam\",\"plugins\":[{\"capabilities\":{\"ips\":true,\"mac\":true},\"ipam\":{\"type\":\"static\"},\"master\":\"eth1\",\"mode\":\"bridge\",\"type\":\"macvlan\"}]}"}}`},
		},
		"Resource": {
			"the annotation ties the definition to a resource", `{"type": "host-device", "resource_name": "intel.com/sriov", "cni_version": "0.3.1"}`,
			[]string{`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"annotations":{"k8s.v1.cni.cncf.io/resourceName":"intel.com/sriov"},"name":"oam","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"0.3.1\",\"name\":\"oam\",\"plugins\":[{\"type\":\"host-device\"}]}"}}`},
		},
		"Fixed": {
			"a second definition gives the fixed addresses, which the first one excludes; its routes name the gateway, since its addresses have none",
			`{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24", "gateway": "10.1.0.1", "exclude": ["10.1.0.128/25"], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}], "dns": {"domain": "x"},
			  "ipRanges": [{"range": "fd00::/64"}]}, "fixed": ["fd00::9", "10.1.0.9"]}`,
			[]string{
				`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"oam","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"oam\",\"plugins\":[{\"capabilities\":{\"mac\":true},\"ipam\":{\"dns\":{\"domain\":\"x\"},\"exclude\":[\"10.1.0.128/25\",\"10.1.0.9/32\"],\"gateway\":\"10.1.0.1\",\"ipRanges\":[{\"exclude\":[\"fd00::9/128\"],\"range\":\"fd00::/64\"}],\"range\":\"10.1.0.0/24\",\"routes\":[{\"dst\":\"0.0.0.0/0\"},{\"dst\":\"::/0\"}],\"type\":\"whereabouts\"},\"mode\":\"bridge\",\"type\":\"macvlan\"}]}"}}`,
				`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"oam-fixed","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"oam\",\"plugins\":[{\"capabilities\":{\"ips\":true,\"mac\":true},\"ipam\":{\"dns\":{\"domain\":\"x\"},\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\"},{\"dst\":\"::/0\"}],\"type\":\"static\"},\"mode\":\"bridge\",\"type\":\"macvlan\"}]}"}}`,
			},
		},
		"Existing": {"the definition is not the driver's", `{"existing": {"namespace": "default", "name": "net"}}`, nil},
		"Raw": {
			"a single plugin becomes a list", `{"raw": {"type": "sriov", "vlan": 5.0, "capabilities": {"mac": true}}, "resource_name": "intel.com/sriov"}`,
			[]string{`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"annotations":{"k8s.v1.cni.cncf.io/resourceName":"intel.com/sriov"},"name":"oam","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"oam\",\"plugins\":[{\"capabilities\":{\"mac\":true},\"type\":\"sriov\",\"vlan\":5.0}]}"}}`},
		},
		"RawList": {
			"a list stays as it is, with its other fields", `{"raw": {"cniVersion": "0.4.0", "disableCheck": true, "plugins": [{"type": "ovs", "bridge": "<br>"}, {"type": "tuning"}]}}`,
			[]string{`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"oam","namespace":"k8splugin-networks"},"spec":{"config":"{\"cniVersion\":\"0.4.0\",\"disableCheck\":true,\"name\":\"oam\",\"plugins\":[{\"bridge\":\"\u003cbr\u003e\",\"type\":\"ovs\"},{\"type\":\"tuning\"}]}"}}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := multus.Driver{}.Objects(nf.Network{Name: "oam", Spec: normal(t, tc.spec)}, namespace)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, encoded(o.Object))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := (multus.Driver{}).Objects(nf.Network{Name: "oam", Spec: json.RawMessage(`[]`)}, namespace); err == nil {
		t.Error("a record that cannot be read is an error")
	}
}

// TestEqual lists specifications that mean the same.
func TestEqual(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, one, other string }{
		"Order":     {"the order of keys has no meaning", `{"type": "macvlan", "master": "a"}`, `{"master": "a", "type": "macvlan"}`},
		"Defaults":  {"a default may be written", `{"type": "macvlan"}`, `{"type": "macvlan", "mode": "bridge", "cni_version": "1.0.0", "linkInContainer": false, "chain": [], "ipam": {}, "mtu": null}`},
		"Bridge":    {"so may those of bridge", `{"type": "bridge", "bridge": "b"}`, `{"type": "bridge", "bridge": "b", "vlan": 0, "preserveDefaultVlan": true, "isGateway": false, "vlanTrunk": []}`},
		"Addresses": {"an address has several forms", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "fd00::/64", "gateway": "fd00::1"}}`, `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "FD00:0::/64", "gateway": "fd00:0:0::0001"}}`},
		"Flat":      {"one range may be beside the ranges", `{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}`, `{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/24"}]]}}`},
		"MAC":       {"so has a MAC address", `{"type": "host-device", "hwaddr": "02:00:00:00:00:0A"}`, `{"type": "host-device", "hwaddr": "02-00-00-00-00-0a"}`},
		"Ability":   {"a capability may be named", `{"type": "macvlan", "ipam": {"type": "static"}}`, `{"type": "macvlan", "ipam": {"type": "static"}, "capabilities": {"ips": true, "mac": true, "bandwidth": false}}`},
		"Fixed":     {"the order of fixed addresses has no meaning", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}, "fixed": ["10.0.0.1", "10.0.0.2"]}`, `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}, "fixed": ["10.0.0.2", "10.0.0.1"]}`},
		"Exclude":   {"an address is a subnet of one", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.0.1"]}}`, `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.0.1/32"]}}`},
		"Existing":  {"a capability is not declared by default", `{"existing": {"namespace": "a", "name": "b"}}`, `{"existing": {"namespace": "a", "name": "b"}, "capabilities": {"ips": false}}`},
		"Raw":       {"the version has a default", `{"raw": {"type": "x"}}`, `{"raw": {"type": "x", "cniVersion": "1.0.0"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(string(normal(t, tc.one)), string(normal(t, tc.other))); diff != "" {
				t.Errorf("%s (-one +other)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNodeLocal(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spec   string
		want   bool
	}{
		"HostLocal":   {"each node gives the same addresses", `{"type": "bridge", "bridge": "b", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}`, true},
		"Declared":    {"unless that is intended", `{"type": "bridge", "bridge": "b", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}, "node_local": true}`, false},
		"Whereabouts": {"whereabouts knows all nodes", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}}`, false},
		"Layer2":      {"there are no addresses", `{"type": "macvlan"}`, false},
		"Raw":         {"the IPAM of an unknown plugin is known", `{"raw": {"type": "ovs", "ipam": {"type": "host-local"}}}`, true},
		"RawList":     {"also in a list", `{"raw": {"plugins": [{"type": "ovs", "ipam": {"type": "host-local"}}]}}`, true},
		"RawDeclared": {"and can be declared", `{"raw": {"type": "ovs", "ipam": {"type": "host-local"}}, "node_local": true}`, false},
		"Existing":    {"an existing definition is not known", `{"existing": {"namespace": "a", "name": "b"}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (multus.Driver{}).NodeLocal(normal(t, tc.spec)); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
