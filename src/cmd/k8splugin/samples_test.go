package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const samples = "../../../deployments/samples"

// sample returns the files of a sample package.
func sample(t *testing.T, name string) map[string]string {
	t.Helper()
	files, root := map[string]string{}, filepath.Join(samples, name)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		files[filepath.ToSlash(inside)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// machineSample is a sample with virtual machines.
type machineSample struct {
	reason   string
	networks map[string]string // by parameter; the suffixes of their names are in the order of their creation
	subnets  []string          // those suffixes that are networks of kube-ovn
	guests   map[string]clustertest.Guest
	want     []string // interfaces in the list of pods
	fixed    map[string]map[string]string
}

func machineSamples() map[string]machineSample {
	return map[string]machineSample{
		"vfw": {
			reason:   "two machines and two containers on two networks of OVN and one for management",
			networks: map[string]string{"unprotected_network": "-1", "protected_network": "-2", "management_network": "-3"}, subnets: []string{"-1", "-2"},
			guests: map[string]clustertest.Guest{
				"packetgen": {IPs: map[string]string{"default": "10.244.0.2", "unprotected": "192.168.10.2", "management": "10.10.20.4"}},
				"firewall":  {IPs: map[string]string{"default": "10.244.0.3", "unprotected": "192.168.10.3", "protected": "192.168.20.2", "management": "10.10.20.5"}},
			},
			want: []string{
				"firewall default default 10.244.0.3", "firewall management NS-3 10.10.20.5", "firewall protected NS-2 192.168.20.2", "firewall unprotected NS-1 192.168.10.3",
				"packetgen default default 10.244.0.2", "packetgen management NS-3 10.10.20.4", "packetgen unprotected NS-1 192.168.10.2",
			},
			fixed: map[string]map[string]string{"firewall": {"NS-1": "192.168.10.3", "NS-2": "192.168.20.2"}, "packetgen": {"NS-1": "192.168.10.2"}},
		},
		"vdns": {
			reason:   "three machines, of which one is on both networks",
			networks: map[string]string{"public_network": "-1", "private_network": "-2"}, subnets: []string{"-1", "-2"},
			guests: map[string]clustertest.Guest{"loadbalancer": {IPs: map[string]string{"public": "192.168.30.3", "private": "192.168.40.3"}}, "dns": {IPs: map[string]string{"private": "192.168.40.4"}}},
			want: []string{
				"dns default default ", "dns private NS-2 192.168.40.4", "loadbalancer default default ", "loadbalancer private NS-2 192.168.40.3", "loadbalancer public NS-1 192.168.30.3",
				"packetgen default default ", "packetgen public NS-1 ",
			},
			fixed: map[string]map[string]string{"loadbalancer": {"NS-1": "192.168.30.3", "NS-2": "192.168.40.3"}, "dns": {"NS-2": "192.168.40.4"}, "packetgen": {"NS-1": "192.168.30.2"}},
		},
		"mixed": {
			reason: "a machine and a container share the network of the cluster and one of OVN", networks: map[string]string{"network": "-1"}, subnets: []string{"-1"},
			guests: map[string]clustertest.Guest{"machine": {IPs: map[string]string{"default": "10.244.0.2", "lan": "192.168.50.2"}}},
			want:   []string{"machine default default 10.244.0.2", "machine lan NS-1 192.168.50.2"},
			fixed:  map[string]map[string]string{"machine": {}},
		},
	}
}

// TestMachineSamples instantiates the samples with virtual machines. Stand-ins write the
// statuses of KubeVirt and kube-ovn; their own definitions check the objects.
func TestMachineSamples(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	clustertest.MachineKinds(t)
	definitions, err := os.ReadFile("../../network/ovn/testdata/crds/kube-ovn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Serve(t, string(definitions))
	s := startService(t)
	for name, tc := range machineSamples() {
		t.Run(name, func(t *testing.T) {
			ns := clustertest.Namespace(t)
			clustertest.RunMachines(t, ns, tc.guests)
			s.upload(name, sample(t, name))
			parameters := map[string]any{"machine_image": "registry.example.com/ubuntu:24.04", "image_registry": "registry.example.com"}
			if name == "vdns" {
				delete(parameters, "image_registry")
			}
			for parameter, suffix := range tc.networks {
				parameters[parameter] = ns + suffix
			}
			up := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": name, "namespace": ns, "parameters": parameters}))
			for _, suffix := range tc.subnets {
				clustertest.SetStatus(t, nf.Ref{Group: "kubeovn.io", Kind: "Subnet", Name: ns + suffix}, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
			}
			if op := s.operation(up.text(t, "operation_id")); op.text(t, "state") != string(nf.Succeeded) {
				t.Fatalf("%s: %s", tc.reason, op.body)
			}
			one := "/v1/vnf_instances/" + up.text(t, "vnf_id")
			if diff := cmp.Diff(tc.want, s.machineInterfaces(one, ns)); diff != "" {
				t.Errorf("%s: the addresses of the machines (-want +got):\n%s", tc.reason, diff)
			}
			for machine, ips := range tc.fixed {
				if diff := cmp.Diff(ips, fixedOf(t, ns, machine)); diff != "" {
					t.Errorf("%s: the fixed addresses of %s (-want +got):\n%s", tc.reason, machine, diff)
				}
			}
			s.want(http.StatusNoContent, s.do("DELETE", one, nil))
			for _, suffix := range tc.networks {
				network := "/v1/networks/sandbox." + ns + suffix
				if there := s.do("GET", network, nil); there.status == http.StatusOK {
					s.operation(there.text(t, "operation_id")) // deletes it
				}
				s.want(http.StatusNotFound, s.do("GET", network, nil))
			}
		})
	}
}

// machineInterfaces returns the interfaces of an instance's virtual machines, as "machine
// interface network addresses", with NS in place of the namespace.
func (s *testService) machineInterfaces(instance, ns string) []string {
	s.t.Helper()
	var out []string
	pods, _ := s.want(http.StatusOK, s.do("GET", instance+"?pods=true", nil)).field(s.t, "pods").([]any)
	for _, p := range pods {
		pod, _ := p.(map[string]any)
		if pod["kind"] != "VirtualMachineInstance" {
			continue
		}
		interfaces, _ := pod["interfaces"].([]any)
		for _, i := range interfaces {
			one, _ := i.(map[string]any)
			words := []string{}
			for _, of := range []any{pod["name"], one["name"], one["network"]} {
				word, _ := of.(string)
				words = append(words, word)
			}
			ips, _ := one["ips"].([]any)
			address := ""
			if len(ips) > 0 {
				address, _ = ips[0].(string)
			}
			out = append(out, strings.ReplaceAll(strings.Join(append(words, address), " "), ns, "NS"))
		}
	}
	slices.Sort(out)
	return out
}

// fixedOf returns the addresses that kube-ovn is to give a virtual machine, by network.
func fixedOf(t *testing.T, ns, machine string) map[string]string {
	t.Helper()
	of := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"namespace": ns, "name": machine}}}
	annotations, _, _ := unstructured.NestedStringMap(clustertest.Get(t, of).Object, "spec", "template", "metadata", "annotations")
	out := map[string]string{}
	for key, value := range annotations {
		if network, found := strings.CutSuffix(key, ".k8splugin-networks.ovn.kubernetes.io/ip_address"); found {
			out[strings.ReplaceAll(network, ns, "NS")] = value
		}
	}
	return out
}

// TestStoppedMachine stops a machine of an instance, which an update and a heal keep
// stopped, and starts, restarts and migrates it.
func TestStoppedMachine(t *testing.T) {
	t.Parallel()
	clustertest.MachineKinds(t)
	clustertest.WithoutVirtAPI(t)
	s, ns := startService(t), clustertest.Namespace(t)
	clustertest.RunMachines(t, ns, map[string]clustertest.Guest{"pinned": {Pinned: "its volume is not shared"}})
	vm := func(name string) string {
		return "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: " + name + "}\nspec:\n  runStrategy: Always\n" +
			"  template: {metadata: {labels: {size: $size}}, spec: {domain: {devices: {}, memory: {guest: 64Mi}}}}\n"
	}
	s.upload("machines", map[string]string{
		"metadata.yaml": "name: machines\nvariables: {size: {default: small}}\nresources:\n- virtualmachine: [fw.yaml, pinned.yaml]\n- configmap: [config.yaml]\n",
		"fw.yaml":       vm("fw"), "pinned.yaml": vm("pinned"), "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n",
	})
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "machines", "namespace": ns}))
	one := "/v1/vnf_instances/" + created.text(t, "vnf_id")
	ended := func(a answer) {
		t.Helper()
		if op := s.operation(a.text(t, "operation_id")); op.text(t, "state") != string(nf.Succeeded) {
			t.Fatalf("%s", op.body)
		}
	}
	verb := func(verb, machine string) answer {
		t.Helper()
		return s.do("POST", one+"/"+verb, map[string]any{"workloads": []string{"VirtualMachine/" + machine}})
	}
	strategy := func() string {
		t.Helper()
		return clustertest.RunStrategy(clustertest.Get(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"namespace": ns, "name": "fw"}}}))
	}
	ended(created)
	ended(s.want(http.StatusOK, verb("stop", "fw")))
	ended(s.want(http.StatusOK, s.do("PATCH", one, map[string]any{"parameters": map[string]any{"size": "large"}})))
	ended(s.want(http.StatusOK, s.do("POST", one+"/heal", nil)))
	is := s.want(http.StatusOK, s.do("GET", one, nil))
	if strategy() != "Halted" || !strings.Contains(string(is.body), `"value":"Halted","package_value":"Always"`) {
		t.Errorf("it is %s: %s", strategy(), is.body)
	}
	if drift := s.want(http.StatusOK, s.do("PATCH", one+"?dry_run=true", map[string]any{})); strings.Contains(string(drift.body), `"configured"`) {
		t.Errorf("its strategy is not drift: %s", drift.body)
	}
	if again := s.want(http.StatusConflict, verb("stop", "fw")); !strings.Contains(again.text(t, "detail"), "is stopped") {
		t.Errorf("a second stop: %s", again.body)
	}
	ended(s.want(http.StatusOK, verb("start", "fw")))
	if strategy() != "Always" || strings.Contains(string(s.do("GET", one, nil).body), "package_value") {
		t.Error("the start of a machine that its package runs leaves no setting")
	}
	ended(s.want(http.StatusOK, verb("restart", "fw")))
	ended(s.want(http.StatusOK, verb("migrate", "fw")))
	if pinned := s.want(http.StatusUnprocessableEntity, verb("migrate", "pinned")); !strings.Contains(pinned.text(t, "detail"), "its volume is not shared") {
		t.Errorf("KubeVirt's reason: %s", pinned.body)
	}
	s.want(http.StatusNotFound, verb("stop", "none"))
	s.want(http.StatusNoContent, s.do("DELETE", one, nil))
}

// TestEdgeXOnTwoNetworks attaches services of the sample to a second network.
func TestEdgeXOnTwoNetworks(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	s, ns := startService(t), clustertest.Namespace(t)
	s.upload("edgex", sample(t, "edgex"))
	s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{"cloud_region_id": "sandbox", "name": ns, "driver": "multus", "spec": map[string]any{"type": "bridge", "bridge": "br0"}, "holder": "ann"}))
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "edgex", "namespace": ns, "parameters": map[string]any{"redis_password": "change-me", "device_network": ns},
	}))
	if op := s.operation(created.text(t, "operation_id")); op.text(t, "state") != string(nf.Succeeded) {
		t.Fatalf("%s", op.body)
	}
	var attached []string
	for _, o := range s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+created.text(t, "vnf_id"), nil)).field(t, "objects").([]any) {
		object, _ := o.(map[string]any)
		if object["kind"] != "Deployment" {
			continue
		}
		live := clustertest.Get(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": object["name"]}}})
		if text, found, _ := unstructured.NestedString(live.Object, "spec", "template", "metadata", "annotations", "k8s.v1.cni.cncf.io/networks"); found {
			attached = append(attached, strings.ReplaceAll(live.GetName()+" "+text, ns, "NS"))
		}
	}
	slices.Sort(attached)
	const selection = `[{"interface":"devices","name":"NS","namespace":"k8splugin-networks"}]`
	if diff := cmp.Diff([]string{"edgex-app-rules-engine " + selection, "edgex-device-virtual " + selection}, attached); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+created.text(t, "vnf_id"), nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/networks/sandbox."+ns+"?holder=ann", nil))
}
