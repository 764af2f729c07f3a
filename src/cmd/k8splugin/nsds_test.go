package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
)

// otherVNFD is the id of another VNF descriptor than that of csartest.
const otherVNFD = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1190"

// vpnNSD returns a network service descriptor with more node templates.
func vpnNSD(more string) string {
	return `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [etsi_nfv_sol001_nsd_types.yaml]
topology_template:
  node_templates:
    NS: {type: tosca.nodes.nfv.NS, properties: {descriptor_id: vpn-nsd, designer: Example, version: "1.0", name: vpn, flavour_id: simple}}
    Nsd_lan: {type: tosca.nodes.nfv.NsVirtualLink, properties: {connectivity_type: {layer_protocols: [ethernet]}}}
    Firewall: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: ` + csartest.VNFD + `}, requirements: [{virtual_link: Nsd_lan}]}
    Generator:
      type: tosca.nodes.nfv.VNF
      properties: {descriptor_id: ` + otherVNFD + `, vnf_profile: {min_number_of_instances: 2}}
      requirements: [{dependency: Firewall}]
` + more
}

// TestNetworkServiceDescriptor creates a network service from its descriptor, on two real
// API servers. A member that fails on one of them undoes all.
func TestNetworkServiceDescriptor(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	s, ns := startBareService(t), clustertest.Namespace(t)
	for region, kubeconfig := range map[string][]byte{"nsd-east": clustertest.Kubeconfig(t), "nsd-west": secondPlane(t)} {
		s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": region, "kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig)}))
	}
	firewall := csartest.Files(map[string]string{"Files/kubernetes/a.yaml": strings.Replace(webWorkload, "replicas: 1", "replicas: 0", 1)})
	generator := csartest.Files(map[string]string{"Files/kubernetes/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: generator}\n"})
	delete(generator, "sample.mf")
	for name, content := range generator {
		generator[name] = strings.ReplaceAll(content, csartest.VNFD, otherVNFD)
	}
	generator["sample.mf"] = csartest.Manifest(generator)
	s.upload("firewall", firewall)
	manifests := map[string]any{"lcm-kubernetes-def-files": []string{"Files/kubernetes/a.yaml"}}
	member := func(name, region, namespace string) map[string]any {
		return map[string]any{"name": name, "cloud_region_id": region, "namespace": namespace, "parameters": manifests}
	}
	request := func(nsd string, members ...map[string]any) map[string]any {
		return map[string]any{
			"service_id": "vpn", "nsd": nsd, "members": members,
			"networks": []any{map[string]any{"name": "nsd-lan", "driver": "multus", "spec": map[string]any{"type": "bridge", "bridge": "br0"}}},
		}
	}
	first, twin, second := member("generator-1", "nsd-west", "nsd-one"), member("generator-2", "nsd-west", "nsd-one"), member("generator-2", "nsd-west", "nsd-two")
	refused := func(reason, says string, line float64, body map[string]any) {
		t.Helper()
		fault := s.want(http.StatusBadRequest, s.do("POST", "/v1/services", body)).field(t, "errors").([]any)[0].(map[string]any)
		if message, _ := fault["message"].(string); !strings.Contains(message, says) || line > 0 && (fault["file"] != "nsd" || fault["line"] != line) {
			t.Errorf("%s: the error is %v", reason, fault)
		}
	}
	fw := member("firewall", "nsd-east", ns)
	refused("a forwarding graph is not lost", "forwarding graphs are not supported", 13, request(vpnNSD("  groups:\n    Graph: {type: tosca.groups.nfv.VNFFG, members: [Firewall, Generator]}\n"), fw, first, second))
	refused("each VNF has a package", otherVNFD, 8, request(vpnNSD(""), fw, first, second))
	s.upload("generator", generator)
	refused("a member is one of the descriptor", "is not a VNF of the NSD", 0, request(vpnNSD(""), fw, member("router", "nsd-east", ns)))

	failed := s.want(http.StatusConflict, s.do("POST", "/v1/services", request(vpnNSD(""), fw, first, twin)))
	if text := failed.text(t, "detail"); !strings.Contains(text, "member generator-") {
		t.Errorf("the failure is %q", text)
	}
	if left := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances", nil)).field(t, "vnf_instances").([]any); len(left) > 0 {
		t.Errorf("after a failure in one region, there are %v", left)
	}
	until(t, "the shared network is deleted", func() bool { return s.do("GET", "/v1/networks/nsd-east.nsd-lan", nil).status == http.StatusNotFound })

	s.want(http.StatusCreated, s.do("POST", "/v1/services", request(vpnNSD(""), fw, first, second)))
	for id, region := range map[string]string{"vpn.firewall": "nsd-east", "vpn.generator-1": "nsd-west", "vpn.generator-2": "nsd-west"} {
		if got := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id, nil)); got.text(t, "cloud_region_id") != region || got.text(t, "state") != "ready" {
			t.Errorf("the member %s is %s", id, got.body)
		}
	}
	if users := s.want(http.StatusOK, s.do("GET", "/v1/networks/nsd-east.nsd-lan", nil)).field(t, "use_count"); users != 1.0 {
		t.Errorf("the network has %v users", users)
	}
	// The descriptor with one generator, which has another name.
	s.want(http.StatusOK, s.do("PATCH", "/v1/services/vpn", map[string]any{
		"nsd":     strings.Replace(vpnNSD(""), "min_number_of_instances: 2", "min_number_of_instances: 1", 1),
		"members": []any{fw, member("generator", "nsd-west", "nsd-three")},
	}))
	s.want(http.StatusNotFound, s.do("GET", "/v1/vnf_instances/vpn.generator-1", nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/services/vpn", nil))
}
