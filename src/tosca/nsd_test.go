package tosca_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// nsd returns a descriptor with further lines in its parts.
func nsd(nodes, rest string) string {
	return `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [etsi_nfv_sol001_nsd_types.yaml, {file: firewall.yaml}]
node_types:
  example.Vpn: {derived_from: tosca.nodes.nfv.NS}
  example.Lan: {derived_from: tosca.nodes.nfv.NsVirtualLink}
topology_template:
  inputs: {version: {type: string, default: "1.0"}}
  substitution_mappings: {node_type: example.Vpn}
  node_templates:
    NS: {type: example.Vpn, properties: {descriptor_id: nsd-1, designer: Example, version: {get_input: version}, name: vpn, flavour_id: simple}}
    Lan_1: {type: example.Lan, properties: {connectivity_type: {layer_protocols: [ipv4]}}}
` + nodes + rest
}

const (
	nsdFirewall = "    Firewall: {type: example.Firewall, properties: {descriptor_id: vnfd-1, flavour_id: simple, vnf_profile: {instantiation_level: small, min_number_of_instances: 1}}, requirements: [{virtual_link: Lan_1}]}\n"
	nsdRouter   = "    Router: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: vnfd-2, vnf_profile: {min_number_of_instances: 2}}, requirements: [{virtual_link_1: {node: Lan_1}}, {virtual_link_2: Wan}, {dependency: Firewall}]}\n"
	nsdRest     = "    Wan: {type: tosca.nodes.nfv.NsVirtualLink}\n    Unused: {type: tosca.nodes.nfv.NsVirtualLink}\n    Users: {type: tosca.nodes.nfv.Sap, requirements: [{internal_virtual_link: Wan}]}\n"
)

func TestReadNSD(t *testing.T) {
	t.Parallel()
	got, err := tosca.ReadNSD("vpn.yaml", []byte(nsd(nsdRouter+nsdFirewall, nsdRest)))
	if err != nil {
		t.Fatal(err)
	}
	router := func(name string) tosca.NSDMember {
		return tosca.NSDMember{Name: name, VNFD: "vnfd-2", Group: 2, Links: []string{"lan-1", "wan"}, Line: 12}
	}
	want := tosca.NSD{ID: "nsd-1", Name: "vpn", Flavor: "simple", Links: []string{"lan-1", "wan"}, Members: []tosca.NSDMember{
		router("router-1"), router("router-2"), {Name: "firewall", VNFD: "vnfd-1", Flavor: "simple", Level: "small", Group: 1, Links: []string{"lan-1"}, Line: 13},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWrongNSDs has descriptors that cannot be a network service as they are.
func TestWrongNSDs(t *testing.T) {
	t.Parallel()
	node := func(text string) string { return nsd(nsdFirewall, "    "+text+"\n") }
	cases := map[string]struct{ reason, text, want string }{
		"graph":      {"a forwarding path is not lost in silence", node("Path: {type: tosca.nodes.nfv.NFP}"), `vpn.yaml:13: "Path" has the type "tosca.nodes.nfv.NFP": the service does not steer traffic`},
		"position":   {"nor is a part of one", node("Position: {type: tosca.nodes.nfv.NfpPosition}"), "vpn.yaml:13: "},
		"derived":    {"nor one of a type of its own", "node_types: {example.Path: {derived_from: tosca.nodes.nfv.NFP}}\n" + strings.Replace(node("Path: {type: example.Path}"), "node_types:", "data_types:", 1), `"example.Path": the service does not steer traffic`},
		"group":      {"a VNFFG is a group", nsd(nsdFirewall, "  groups:\n    G: {type: tosca.groups.nfv.VNFFG, members: [Firewall]}\n"), `vpn.yaml:14: "G" has the type "tosca.groups.nfv.VNFFG": the service does not steer traffic`},
		"rule":       {"a rule of a path is a policy", nsd(nsdFirewall, "  policies:\n  - R: {type: tosca.policies.nfv.NfpRule}\n"), `vpn.yaml:14: "R" has the type "tosca.policies.nfv.NfpRule": the service does not steer traffic`},
		"Tacker":     {"Tacker has its own types", node("Path: {type: tosca.nodes.nfv.FP.TackerV2}"), "does not steer traffic"},
		"scaling":    {"a network service has no aspects", nsd(nsdFirewall, "  policies:\n  - S: {type: tosca.policies.nfv.NsScalingAspects}\n"), `vpn.yaml:14: "S" has the type "tosca.policies.nfv.NsScalingAspects", which is not supported`},
		"PNF":        {"a PNF is not created", node("P: {type: tosca.nodes.nfv.PNF}"), "vpn.yaml:13: \"P\" has the type \"tosca.nodes.nfv.PNF\": PNFs"},
		"nested":     {"one service in another", node("N: {type: tosca.nodes.nfv.NS, properties: {descriptor_id: n}}"), "vpn.yaml:13: \"N\" has the type \"tosca.nodes.nfv.NS\": a network service in another one"},
		"unknown":    {"a node that is nothing known", node("X: {type: tosca.nodes.Compute}"), `vpn.yaml:13: "X" has the type "tosca.nodes.Compute": it is not a VNF`},
		"no type":    {"a node has a type", node("X: {}"), `vpn.yaml:13: "X" has the type ""`},
		"no VNFD":    {"a VNF has a descriptor", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: ''}}"), `vpn.yaml:13: "X" lacks the property descriptor_id`},
		"no VNF":     {"a service has VNFs", nsd("", ""), "vpn.yaml:10: the network service has no VNF"},
		"no service": {"a descriptor has a service", strings.Replace(nsd(nsdFirewall, ""), "    NS: {type: example.Vpn, properties: {descriptor_id: nsd-1, designer: Example, version: {get_input: version}, name: vpn, flavour_id: simple}}\n", "", 1), "has no node template whose type derives from tosca.nodes.nfv.NS"},
		"no id":      {"a service has an id", strings.Replace(nsd(nsdFirewall, ""), "descriptor_id: nsd-1, ", "", 1), `vpn.yaml:10: "NS" lacks the property descriptor_id`},
		"no link":    {"a requirement leads somewhere", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x}, requirements: [{virtual_link: Nowhere}]}"), `vpn.yaml:13: the requirement "virtual_link" of "X" names "Nowhere"`},
		"itself":     {"not to itself", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x}, requirements: [{dependency: X}]}"), `vpn.yaml:13: the requirement "dependency" of "X" names "X"`},
		"cycle":      {"nor by others", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x}, requirements: [{dependency: Y}]}\n    Y: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: y}, requirements: [{dependency: X}]}"), `vpn.yaml:13: "X" depends on itself`},
		"number":     {"a profile has a number", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x, vnf_profile: {min_number_of_instances: many}}}"), "vpn.yaml:13: min_number_of_instances must be a number from 1 to 64"},
		"none":       {"of at least one", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x, vnf_profile: {min_number_of_instances: 0}}}"), "min_number_of_instances"},
		"too many":   {"a service has a limit", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x, vnf_profile: {min_number_of_instances: 64}}}"), "vpn.yaml:10: the network service has 65 VNFs"},
		"level":      {"a level is a text", node("X: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x, vnf_profile: {instantiation_level: [a]}}}"), "vpn.yaml:13: instantiation_level must be a text"},
		"same name":  {"members have names of their own", node("firewall: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x}}"), "two VNFs have the name firewall"},
		"same link":  {"so have networks", node("lan-1: {type: tosca.nodes.nfv.NsVirtualLink}"), `the network lan-1 of "lan-1" is also that of another virtual link`},
		"no name":    {"which are DNS labels", node("___: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: x}}"), `vpn.yaml:13: the name "___" must have`},
		"no TOSCA":   {"the file is TOSCA", "kind: Deployment\n", "vpn.yaml:1: lacks tosca_definitions_version"},
		"no YAML":    {"and YAML", "a: [", "vpn.yaml:"},
		"empty":      {"and something", "", "vpn.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tosca.ReadNSD("vpn.yaml", []byte(tc.text))
			if err == nil || nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %+v and the error %v, want one that says %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func FuzzReadNSD(f *testing.F) {
	f.Add(nsd(nsdRouter+nsdFirewall, nsdRest))
	f.Add(nsd(nsdFirewall, "  groups:\n    G: {type: tosca.groups.nfv.VNFFG}\n"))
	f.Add("tosca_definitions_version: a\na: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := tosca.ReadNSD("nsd", []byte(text))
		for _, v := range nf.ViolationsOf(err) {
			if v.File == "" || v.Message == "" {
				t.Errorf("violation %+v", v)
			}
		}
		if err != nil {
			return
		}
		if n := len(got.Members); got.ID == "" || n == 0 || n > nf.MaxMembers {
			t.Errorf("neither a service nor a fault: %+v", got)
		}
		for _, m := range got.Members {
			if m.Name == "" || m.VNFD == "" || m.Group < 1 {
				t.Errorf("the member %+v is not whole", m)
			}
		}
	})
}
