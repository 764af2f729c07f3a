package sriov_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var update = flag.Bool("update", false, "rewrite the objects in testdata")

var (
	_ network.Driver       = sriov.Driver{}
	_ network.PluginUser   = sriov.Driver{}
	_ network.ResourceUser = sriov.Driver{}
)

// namespace holds the definitions of the tests.
const namespace = "k8splugin-networks"

// withOperator is a region with the operator.
var withOperator = nf.NetworkRegion{Served: sriov.Driver{}.Kinds()}

// networks are networks, each with an attachment. Each is made with both types.
var networks = map[string]struct {
	spec string
	asks nf.Attachment
}{
	"plain":       {`{"resource_name": "intel.com/netdevice"}`, nf.Attachment{}},
	"mac":         {`{"resource_name": "intel.com/netdevice", "vlan": 100, "vlanQoS": 3, "vlanProto": "802.1ad"}`, nf.Attachment{MAC: "02:00:00:00:00:09"}},
	"settings":    {`{"resource_name": "intel.com/netdevice", "spoofchk": "off", "trust": "on", "link_state": "enable", "min_tx_rate": 10, "max_tx_rate": 1000}`, nf.Attachment{}},
	"static":      {`{"resource_name": "intel.com/netdevice", "ipam": {"type": "static"}}`, nf.Attachment{IPs: []string{"10.1.0.9/24"}}},
	"host-local":  {`{"resource_name": "intel.com/netdevice", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}, "node_local": true}`, nf.Attachment{IPs: []string{"10.1.0.9"}}},
	"whereabouts": {`{"resource_name": "intel.com/netdevice", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24"}, "fixed": ["10.1.0.9"]}`, nf.Attachment{IPs: []string{"10.1.0.9"}}},
	"chain":       {`{"resource_name": "intel.com/netdevice", "chain": [{"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}, {"type": "vrf", "vrfname": "blue"}]}`, nf.Attachment{DefaultRoute: nil}},
}

// TestObjects compares the canonical forms, the objects, and the attachments of every
// network with testdata.
func TestObjects(t *testing.T) {
	t.Parallel()
	for kind, region := range map[string]nf.NetworkRegion{"sriov": {}, "SriovNetwork": withOperator} {
		got := &txtar.Archive{}
		for _, name := range slices.Sorted(maps.Keys(networks)) {
			write := func(file string, v any) {
				text, err := json.MarshalIndent(v, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				got.Files = append(got.Files, txtar.File{Name: name + "/" + file, Data: append(text, '\n')})
			}
			n := nf.Network{Name: "oam", Spec: normal(t, networks[name].spec, region)}
			write("spec", n.Spec)
			objects, err := sriov.Driver{}.Objects(n, namespace)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				write(o.GetKind(), o.DeepCopy().Object)
			}
			c, err := sriov.Driver{}.Connect(n, namespace, networks[name].asks, 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			write("attachment", map[string]any{"selection": c.Selection, "resources": c.Resources})
		}
		file := "testdata/" + kind + ".txtar"
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

// normal returns a normalized specification.
func normal(t *testing.T, spec string, region nf.NetworkRegion) json.RawMessage {
	t.Helper()
	once, err := sriov.Driver{}.Normalize(json.RawMessage(spec), region)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	for _, other := range []nf.NetworkRegion{{}, withOperator} { // the type is part of the canonical form
		twice, err := sriov.Driver{}.Normalize(once, other)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the canonical form of %s is %s (%v)", once, twice, err)
		}
	}
	return once
}

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
		spec   string // without the brace and the resource
		fields []string
	}{
		"NotJSON":         {"a specification is JSON", `{`, []string{"spec"}},
		"NoResource":      {"a function comes from a resource", `{"vlan": 5}`, []string{"spec.resource_name"}},
		"Resource":        {"a resource has a prefix", `{"resource_name": "vf"}`, []string{"spec.resource_name"}},
		"Type":            {"a type is one of two", `{"type": "macvlan", "resource_name": "a/b"}`, []string{"spec.type"}},
		"Existing":        {"an existing definition is that of multus", `{"existing": {"namespace": "a", "name": "b"}, "resource_name": "a/b"}`, []string{"spec.existing"}},
		"Unknown":         {"a field that no plugin reads has no effect", `{"resource_name": "a/b", "master": "eth1"}`, []string{"spec.master"}},
		"VLAN":            {"a VLAN id has 12 bits", `{"resource_name": "a/b", "vlan": 4095}`, []string{"spec.vlan"}},
		"QoS":             {"a priority has 3 bits", `{"resource_name": "a/b", "vlan": 5, "vlanQoS": 8}`, []string{"spec.vlanQoS"}},
		"QoSWithout":      {"a priority is that of a VLAN", `{"resource_name": "a/b", "vlan": 0, "vlanQoS": 3}`, []string{"spec.vlanQoS"}},
		"Proto":           {"so is a protocol", `{"resource_name": "a/b", "vlanProto": "802.1ad"}`, []string{"spec.vlanProto"}},
		"ProtoUnknown":    {"and it is one of two", `{"resource_name": "a/b", "vlan": 5, "vlanProto": "802.3"}`, []string{"spec.vlanProto"}},
		"Spoof":           {"a switch is text", `{"resource_name": "a/b", "spoofchk": true}`, []string{"spec.spoofchk"}},
		"Link":            {"a state is one of three", `{"resource_name": "a/b", "link_state": "up"}`, []string{"spec.link_state"}},
		"Rates":           {"the least rate is at most the greatest", `{"resource_name": "a/b", "min_tx_rate": 5, "max_tx_rate": 4}`, []string{"spec.min_tx_rate"}},
		"IPAM":            {"an IPAM is one of multus", `{"resource_name": "a/b", "ipam": {"type": "calico"}}`, []string{"spec.ipam.type"}},
		"OperatorOfNone":  {"a definition has no operator", `{"type": "sriov", "resource_name": "a/b", "operator_namespace": "x"}`, []string{"spec.operator_namespace"}},
		"OperatorPlace":   {"a namespace has a name", `{"type": "SriovNetwork", "resource_name": "a/b", "operator_namespace": "X"}`, []string{"spec.operator_namespace"}},
		"OperatorVersion": {"the operator writes the version", `{"type": "SriovNetwork", "resource_name": "a/b", "cni_version": "0.3.1"}`, []string{"spec.cni_version"}},
		"OperatorName":    {"the operator has no such resource", `{"type": "SriovNetwork", "resource_name": "a/b-c"}`, []string{"spec.resource_name"}},
		"OperatorBlanks":  {"the operator drops blanks", `{"type": "SriovNetwork", "resource_name": "a/b", "ipam": {"type": "static", "dns": {"options": ["a b"]}}}`, []string{"spec.ipam"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sriov.Driver{}.Normalize(json.RawMessage(tc.spec), nf.NetworkRegion{})
			if diff := cmp.Diff(tc.fields, fieldsOf(nf.ViolationsOf(err))); diff != "" || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestAttachments rejects what a virtual function cannot have.
func TestAttachments(t *testing.T) {
	t.Parallel()
	n := nf.Network{Name: "oam", Spec: normal(t, networks["plain"].spec, withOperator)}
	asks := nf.Attachment{IPs: []string{"10.1.0.9/24"}, Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 1}, MAC: "02:00:00:00:00:09", DefaultRoute: []string{"10.1.0.1"}}
	_, err := sriov.Driver{}.Connect(n, namespace, asks, 2)
	if diff := cmp.Diff([]string{"bandwidth", "default_route", "ips", "mac"}, fieldsOf(nf.ViolationsOf(err))); diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// TestChanges lists what cannot change, and what depends on the type.
func TestChanges(t *testing.T) {
	t.Parallel()
	definition, object := normal(t, networks["host-local"].spec, nf.NetworkRegion{}), normal(t, networks["host-local"].spec, withOperator)
	if diff := cmp.Diff([]string{"spec.operator_namespace", "spec.type"}, fieldsOf(sriov.Driver{}.Frozen(definition, object, false))); diff != "" {
		t.Errorf("a change of the type (-want +got)\n%s", diff)
	}
	if v := (sriov.Driver{}).Frozen(object, normal(t, networks["mac"].spec, withOperator), true); v != nil {
		t.Errorf("a change of the VLAN: %v", v)
	}
	if d := (sriov.Driver{}); d.NodeLocal(object) || !d.NodeLocal(json.RawMessage(strings.ReplaceAll(string(object), "node_local", "x"))) {
		t.Error("node_local is not that of multus")
	}
	for spec, want := range map[string]map[string]string{
		string(definition): {"spec.type": "sriov", "spec.ipam.type": "host-local"}, string(object): {"spec.ipam.type": "host-local"},
	} {
		if diff := cmp.Diff(want, sriov.Driver{}.Plugins(json.RawMessage(spec))); diff != "" {
			t.Errorf("plugins of %s (-want +got)\n%s", spec, diff)
		}
	}
}

// TestDocs checks that docs/networks.md names every field, and that the driver accepts its
// examples.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/networks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The driver sriov\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, err = sriov.Driver{}.Normalize(json.RawMessage(`{"x": 1}`), nf.NetworkRegion{})
	said, _, _ := strings.Cut(err.Error()[strings.Index(err.Error(), "known: ")+len("known: "):], ";")
	for name := range strings.SplitSeq(said, ", ") {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/networks.md does not name %s", name)
		}
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(examples) < 2 {
		t.Fatalf("docs/networks.md has %d examples, want one for each type", len(examples))
	}
	for _, e := range examples {
		if _, err := (sriov.Driver{}).Normalize(json.RawMessage(e[1]), nf.NetworkRegion{}); err != nil {
			t.Errorf("%s: %v", e[1], err)
		}
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, spec string
		region       nf.NetworkRegion
		want         string
	}{
		"Plugin": {"the plugin's definition", `{"resource_name": "intel.com/netdevice", "vlan": 100, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}, "node_local": true}`, nf.NetworkRegion{}, "intel.com/netdevice 100 10.1.0.0/24"},
		"Operator": {
			"the operator's network has the same fields", `{"resource_name": "intel.com/netdevice", "vlan": 100, "cni_version": "1.0.0", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}, "node_local": true}`, withOperator,
			"intel.com/netdevice 100 10.1.0.0/24",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sriov.Driver{}.Layout(nf.Network{Name: "oam", Spec: normal(t, tc.spec, tc.region)})
			if err != nil || len(got.Ranges) != 1 || fmt.Sprint(got.Physical, " ", got.VLAN, " ", got.Ranges[0].Prefix) != tc.want {
				t.Errorf("%s: %+v (%v)", tc.reason, got, err)
			}
		})
	}
}
