package tosca_test

import (
	"bytes"
	"flag"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTranslate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason       string
		files, level string
		networks     []tosca.Attachment
	}{
		"tacker":          {"a descriptor of Tacker's own types", "tacker", "", nil},
		"compute":         {"compute nodes with images of containers", "compute", "", nil},
		"containers":      {"deployable units, with the pods of the default level", "containers", "", []tosca.Attachment{{Network: "data-net", Workload: "Deployment/web", Interface: "net1"}}},
		"containers-high": {"and with those of another", "containers", "high", []tosca.Attachment{{Network: "data-net", Workload: "Deployment/web", Interface: "net1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := held(t, tc.files)
			got, err := tosca.Translate(files, entry, "", tc.level)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			golden := path.Join("testdata/golden", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got.Manifests, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got.Manifests)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.networks, got.Networks); diff != "" {
				t.Errorf("%s: the attachments (-want +got):\n%s", tc.reason, diff)
			}
			for range 20 {
				again, err := tosca.Translate(files, entry, "", tc.level)
				if err != nil || !bytes.Equal(got.Manifests, again.Manifests) {
					t.Fatalf("%s: the same descriptor gave other bytes (%v):\n%s", tc.reason, err, cmp.Diff(string(got.Manifests), string(again.Manifests)))
				}
			}
		})
	}
}

// TestTranslateRejects changes descriptors that can be translated, and expects the fault
// at the line of the change.
func TestTranslateRejects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason       string
		file, of, by string
		want         string
	}{
		"VDUKey":      {"an unknown property of a VDU", "tacker", "mgmt_driver: noop", "flavor: m1.tiny", `top.yaml:13: "VDU_1": "flavor" cannot be translated`},
		"Driver":      {"a driver of Tacker", "tacker", "mgmt_driver: noop", "mgmt_driver: openwrt", `top.yaml:13: mgmt_driver: "openwrt" cannot be translated`},
		"Component":   {"an unknown key of a component", "tacker", "mem_size: 512 MB", "disk_size: 1 GB", `top.yaml:17: the component "web_server": "disk_size"`},
		"Size":        {"a size without a unit", "tacker", "512 MB", "512", "top.yaml:17: mem_size must be a size with a unit"},
		"CPU":         {"too fine a CPU", "tacker", "0.25", "0.00025", "top.yaml:16: num_cpus must be at least 0.001"},
		"CPUText":     {"a CPU that is not a number", "tacker", "0.25", "few", "top.yaml:16: num_cpus must be a number"},
		"Image":       {"an image that is not one", "tacker", "image: side", "image: 'a b'", `the image "a b"`},
		"NoImage":     {"a component without an image", "tacker", "image: side", "args: []", `"side_car" has no image`},
		"Config":      {"a config without keys", "tacker", "URL: http", "URL = http", "config must have lines"},
		"Conflict":    {"two values of one key", "tacker", `"param0: key1"`, `"param0: key2"`, `config has the key "param0" twice`},
		"Port":        {"a port that is none", "tacker", `"443"`, `"99999"`, "mapping_ports must be a port from 1 to 65535"},
		"TwicePort":   {"a port twice", "tacker", `"443"`, `"80:1"`, "mapping_ports has the port 80 twice"},
		"ServiceType": {"a type of Service that Tacker does not have", "tacker", "NodePort", "LoadBalancer", `service_type: "LoadBalancer" cannot be translated`},
		"Label":       {"a label that is none", "tacker", `"app: webserver"`, `"app"`, "a label must have the form"},
		"Scaling":     {"an unknown key of a scaling policy", "tacker", "min_instances: 1", "increment: 1", `"SP1": "increment" cannot be translated`},
		"Most":        {"less at most than at least", "tacker", "max_instances: 10", "max_instances: 0", "needs max_instances"},
		"NoCPU":       {"an autoscaler of pods without a share of CPUs", "tacker", "num_cpus: 2", "ports: []", "needs num_cpus in each component"},
		"NoNetwork":   {"a virtual link without a network", "tacker", "network_name: net0, ", "", `the connection point "CP12" needs a virtual link with a network_name`},
		"CPKey":       {"an unknown property of a connection point", "tacker", "management: true", "ip_address: 10.0.0.1", `"CP11": "ip_address" cannot be translated`},
		"NoVNFC":      {"a virtual machine of Tacker", "tacker", "          db: {image", "          # {image", "has no vnfcs"},
		"Unit":        {"an unknown property of a unit", "containers", "is_num_of_instances_cluster_based: false", "boot_data: {}", `top.yaml:20: "WebVdu": "boot_data" cannot be translated`},
		"Kind":        {"a workload of another kind", "containers", "type: StatefulSet", "type: CronJob", `"CronJob" cannot be translated`},
		"Storage":     {"a storage", "containers", "- container: WebContainer", "- virtual_storage: Disk", `the requirement "virtual_storage" cannot be translated`},
		"Absent":      {"a container that is not there", "containers", "- container: WebContainer", "- container: VNF", `requires the container "VNF"`},
		"Node":        {"a node of another type", "containers", "VNF: {type: tosca.nodes.nfv.VNF", "Chart: {type: tosca.nodes.nfv.Mciop", `top.yaml:9: the node "Chart" of the type "tosca.nodes.nfv.Mciop" cannot be translated`},
		"Policy":      {"a policy of another type", "containers", "type: tosca.policies.nfv.AffinityRule", "type: tosca.policies.nfv.SecurityGroupRule", `the policy "near" of the type`},
		"Group":       {"a group of another type", "containers", "type: tosca.groups.nfv.PlacementGroup", "type: tosca.groups.nfv.Other", `the group "front" of the type`},
		"Scope":       {"a scope that nodes do not have", "containers", "scope: zone", "scope: nfvi_pop", `the scope "nfvi_pop" cannot be translated`},
		"Packed":      {"an image in the CSAR", "containers", "docker://registry.example.com/web:1.0", "../Definitions/top.yaml", "is a file of the CSAR, which nodes cannot pull"},
		"NoImages":    {"a container without an image", "containers", `artifacts: {sw_image: {type: tosca.artifacts.nfv.SwImage, file: "registry.example.com/log:3"}}`, "description: none", "has no artifact"},
		"Format":      {"an image of another format", "containers", "container_format: docker", "container_format: qcow2", `container_format: "qcow2"`},
		"Twice":       {"two units of one name", "containers", "{name: store, type", "{name: web, type", `"StoreVdu" would have the workload "web" of the VDU "WebVdu"`},
		"Services":    {"two Services of one name", "containers", "    any:", "    store:", `two nodes would be the Service "store"`},
		"Target":      {"a target that is not a VDU", "containers", "[target: WebVdu]", "[target: VNF]", `the requirement "target" of the connection point "web_service"`},
		"NoLink":      {"a link that is not there", "containers", "virtual_link: data_net", "virtual_link: gone", `top.yaml:77: the connection point "web_cp" has the link "gone"`},
		"Unbound":     {"a connection point without a VDU", "containers", "virtual_binding: WebVdu, virtual_link", "virtual_link", `"web_cp" is not bound to a VDU`},
		"NoPort":      {"a Service without a port", "containers", "[{portData: [{name: health, protocol: tcp, port: 9000}]}]", "[]", "has no portData"},
		"Addresses":   {"an address of a connection point", "containers", "associated_layer_protocol: ipv4", "address_data: []", `protocol: "address_data" cannot be translated`},
		"VNIC":        {"an interface of another type", "containers", "vnic_type: normal", "vnic_type: direct", `vnic_type: "direct"`},
		"Resource":    {"a resource twice", "containers", "extended_resource: example.com/nic", "extended_resource: cpu", `the resource "cpu" is there twice`},
		"Pages":       {"huge pages alone", "containers", "{name: Log shipper}", "{name: l, huge_pages_resources: [{hugepage_size: 2 MiB, requested_size: 4 MiB}]}", "huge pages need"},
		"Machine":     {"a virtual machine", "compute", "container_format: docker}\n      capabilities", "container_format: bare}\n      capabilities", `top.yaml:4: the VDU "VDU1" is not a container`},
		"Capability":  {"an unknown capability", "compute", "virtual_memory: {virtual_mem_size: 512 MB}", "virtual_local_storage: []", `"virtual_local_storage" cannot be translated`},
		"Pinned":      {"a part of a CPU of its own", "compute", "num_virtual_cpu: 1", "num_virtual_cpu: 0.5", "top.yaml:14: CPU pinning of the policy static needs a whole number"},
		"PinnedRule":  {"which CPUs", "compute", "virtual_cpu_pinning_policy: static", "virtual_cpu_pinning_policy: static, virtual_cpu_pinning_rule: []", `virtual_cpu_pinning: "virtual_cpu_pinning_rule" cannot be translated`},
		"Policies":    {"another policy", "compute", "virtual_cpu_pinning_policy: static", "virtual_cpu_pinning_policy: some", `virtual_cpu_pinning_policy: "some" cannot be translated; use one of static, dynamic`},
		"NoList":      {"a list that is none", "containers", "[{type: anti_affinity, scope: nfvi_node}]", "{type: anti_affinity, scope: nfvi_node}", "top.yaml:18: local_affinity_or_antiaffinity_rule must be a list"},
		"RuleType":    {"a rule that may mean either", "containers", "[{type: anti_affinity, scope: nfvi_node}]", "[{scope: nfvi_node}]", "top.yaml:18: a local_affinity_or_antiaffinity_rule needs the type"},
		"NoMapping":   {"a mapping that is none", "containers", "protocol: [{associated_layer_protocol: ipv4}]", "protocol: [ipv4]", "top.yaml:76: protocol must be a mapping"},
		"Extended":    {"a property that is a mapping", "containers", "[{extended_resource: example.com/nic, amount: 2}]", "{example.com/nic: 1}", "extended_resource_requests must be a list"},
		"Targets":     {"targets that are no list", "containers", "targets: [front]", "targets: front", "targets must be a list"},
		"Levels":      {"levels that are a list", "containers", "levels: {low: {scale_info: {web: {scale_level: 0}}}, high: {scale_info: {web: {scale_level: 3}}}}", "levels: [low, high]", "top.yaml:106: levels must be a mapping"},
		"Deltas":      {"deltas that are a list", "containers", "deltas: {one: {number_of_instances: 1}}", "deltas: [one]", "top.yaml:97: deltas must be a mapping"},
		"Aspects":     {"aspects that are a list", "containers", "aspects: {web: {name: web, max_scale_level: 4, step_deltas: [one]}}", "aspects: [web]", "top.yaml:94: aspects must be a mapping"},
		"ScaleInfo":   {"levels of aspects that are a list", "containers", "scale_info: {web: {scale_level: 0}}", "scale_info: [web]", "top.yaml:106: scale_info must be a mapping"},
		"Labels":      {"labels that are a mapping", "tacker", `["app: webserver", tier: front]`, "{app: webserver, tier: front}", "labels must be a list"},
		"Input":       {"an input without a value", "compute", "name: db\n", "name: {get_input: gone}\n", `top.yaml:18: the input "gone" has no value`},
		"DNS":         {"a name that objects cannot have", "compute", "name: db\n", "name: Data base\n", "is not a DNS label"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := held(t, tc.file)
			text := strings.Replace(string(files[entry]), tc.of, tc.by, 1)
			if text == string(files[entry]) {
				t.Fatalf("%s: %q is not in the descriptor", tc.reason, tc.of)
			}
			files[entry] = []byte(text)
			_, err := tosca.Translate(files, entry, "", "")
			if nf.KindOf(err) != nf.Invalid || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v\nwant %q", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := tosca.Translate(held(t, "containers"), entry, "", "most"); nf.ViolationsOf(err) == nil {
		t.Errorf("an unknown level: %v", err)
	}
	if _, err := tosca.Translate(held(t, "containers"), entry, "complex", ""); nf.ViolationsOf(err) == nil {
		t.Errorf("an unknown flavor: %v", err)
	}
}

// FuzzTranslate translates any text: it gives manifests or faults with a file, and the
// same ones again.
func FuzzTranslate(f *testing.F) {
	for _, name := range [...]string{"tacker", "containers", "compute"} {
		f.Add(string(held(f, name)[entry]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := map[string][]byte{entry: []byte(text)}
		got, err := tosca.Translate(files, entry, "", "")
		again, _ := tosca.Translate(files, entry, "", "")
		if !bytes.Equal(got.Manifests, again.Manifests) {
			t.Errorf("other bytes:\n%s", cmp.Diff(string(got.Manifests), string(again.Manifests)))
		}
		if err == nil && len(got.Manifests) == 0 {
			t.Error("neither manifests nor a fault")
		}
		for _, v := range nf.ViolationsOf(err) {
			if v.Message == "" || v.File == "" && v.Field == "" {
				t.Errorf("violation %+v", v)
			}
		}
	})
}
