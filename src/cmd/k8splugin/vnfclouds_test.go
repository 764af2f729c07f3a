package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

// serverFlavor is a flavor with one VDU of virtual machines, which can have one to three.
const serverFlavor = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: example.VNF
    properties: {flavour_id: simple}
  node_templates:
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: VDU1
        description: a router
        vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}
        sw_image_data: {name: debian-12, version: '12', checksum: {algorithm: sha-256, hash: abc}, container_format: bare, disk_format: qcow2, min_disk: 1 GB, size: 1 GB}
      capabilities:
        virtual_compute:
          properties:
            requested_additional_capabilities: {properties: {requested_additional_capability_name: medium, support_mandatory: true}}
            virtual_memory: {virtual_mem_size: 4 GB}
            virtual_cpu: {num_virtual_cpu: 2}
    VDU1_CP1:
      type: tosca.nodes.nfv.VduCp
      properties: {layer_protocols: [ipv4], order: 0}
      requirements: [{virtual_binding: VDU1}]
  policies:
  - scaling_aspects:
      type: tosca.policies.nfv.ScalingAspects
      properties: {aspects: {front: {name: front, description: servers, max_scale_level: 2, step_deltas: [delta_1]}}}
  - initial:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {initial_delta: {number_of_instances: 1}}
      targets: [VDU1]
  - deltas:
      type: tosca.policies.nfv.VduScalingAspectDeltas
      properties: {aspect: front, deltas: {delta_1: {number_of_instances: 1}}}
      targets: [VDU1]
`

const serverGroup = `heat_template_version: 2018-08-31
parameters:
  nfv: {type: json}
resources:
  VDU1:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      desired_capacity: {get_param: [nfv, VDU, VDU1, desired_capacity]}
      resource:
        type: VDU1.yaml
        properties:
          flavor: {get_param: [nfv, VDU, VDU1, computeFlavourId]}
          image: {get_param: [nfv, VDU, VDU1, vcImageId]}
          net: {get_param: [nfv, CP, VDU1_CP1, network]}
`

const serverTemplate = `heat_template_version: 2018-08-31
parameters:
  flavor: {type: string}
  image: {type: string}
  net: {type: string}
resources:
  VDU1:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      networks: [{port: {get_resource: VDU1_CP1}}]
  VDU1_CP1:
    type: OS::Neutron::Port
    properties: {network: {get_param: net}}
`

// serverCSAR returns a CSAR whose VNF is one of virtual machines.
func serverCSAR() map[string]string {
	return csartest.Described(serverFlavor, map[string]string{"BaseHOT/simple/top.yaml": serverGroup, "BaseHOT/simple/nested/VDU1.yaml": serverTemplate})
}

// startCloud starts a simulated OpenStack cloud, and registers it as a VIM of a service.
func startCloud(t *testing.T, s *testService) (cloud *simulator.Simulator, vim string) {
	t.Helper()
	cloud, err := simulator.New(simulator.Config{Username: "nfv", UserDomain: "Default", Password: "s3cret-cloud", Project: "edge", ProjectDomain: "Default", Boot: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cloud.Stock([]simulator.Named{{ID: "image-1", Name: "debian-12"}}, []simulator.Named{{ID: "m1", Name: "medium"}}, nil, nil, []simulator.Network{{ID: "net-1", Name: "provider", Prefix: "192.0.2."}})
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	made := s.want(http.StatusCreated, s.do("POST", "/v1.0/vims", map[string]any{"vim": map[string]any{
		"name": "cloud", "type": "openstack", "auth_url": server.URL + "/identity/v3", "vim_project": map[string]string{"name": "edge"},
		"auth_cred": map[string]string{"username": "nfv", "password": "s3cret-cloud", "cert_verify": "False"},
	}}))
	return cloud, made.text(t, "vim.id")
}

// onServers returns a request to instantiate the VNF of serverCSAR.
func onServers(vim string) map[string]any {
	return map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]string{"vimId": vim, "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}},
		"extVirtualLinks": []any{map[string]any{"id": "link", "resourceId": "provider", "extCps": []any{map[string]any{"cpdId": "VDU1_CP1", "cpConfig": map[string]any{"one": map[string]any{}}}}}},
	}
}

// TestVNFOfVirtualMachines instantiates a VNF on a simulated OpenStack cloud, scales, heals
// and terminates it.
func TestVNFOfVirtualMachines(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	cloud, vim := startCloud(t, s)
	pkg := s.onboard(serverCSAR())
	ask := func(method, path string, body any) answer {
		return s.send(t.Context(), method, "/vnflcm/v2"+path, body, "Version", "2.0.0", "Content-Type", "application/json")
	}
	one := "/vnf_instances/" + s.want(http.StatusCreated, ask("POST", "/vnf_instances", map[string]any{"vnfdId": csartest.VNFD, "vnfInstanceName": "router"})).text(t, "id")
	run := func(action string, body any) answer {
		t.Helper()
		at := s.want(http.StatusAccepted, ask("POST", one+"/"+action, body)).header.Get("Location")
		at = at[strings.Index(at, "/vnf_lcm_op_occs"):]
		o := ask("GET", at, nil)
		for state := "STARTING"; state == "STARTING" || state == "PROCESSING"; state = o.text(t, "operationState") {
			delay.For(t.Context(), 100*time.Millisecond, nil)
			o = s.want(http.StatusOK, ask("GET", at, nil))
		}
		if o.text(t, "operationState") != "COMPLETED" {
			t.Fatalf("%s: %s", action, o.body)
		}
		return s.want(http.StatusOK, ask("GET", one, nil))
	}
	up := run("instantiate", onServers(vim))
	for _, part := range []string{`"vduId":"VDU1"`, `"vimLevelResourceType":"OS::Nova::Server"`, `"cpdId":"VDU1_CP1"`, `"addresses":["192.0.2.`, `"layerProtocol":"IP_OVER_ETHERNET"`} {
		if !strings.Contains(string(up.body), part) {
			t.Errorf("the VNF lacks %s: %s", part, up.body)
		}
	}
	s.want(http.StatusConflict, s.do("DELETE", "/v1.0/vims/"+vim, nil))
	run("scale", map[string]any{"type": "SCALE_OUT", "aspectId": "front", "numberOfSteps": 2})
	if got := cloud.Servers(); len(got) != 3 {
		t.Errorf("the servers are %v", got)
	}
	s.want(http.StatusUnprocessableEntity, ask("POST", one+"/change_ext_conn", map[string]any{"extVirtualLinks": onServers(vim)["extVirtualLinks"]}))
	run("heal", map[string]any{})
	if down := run("terminate", map[string]any{"terminationType": "FORCEFUL"}); down.text(t, "instantiationState") != "NOT_INSTANTIATED" {
		t.Errorf("the VNF is %s", down.body)
	}
	if left := slices.Concat(cloud.Stacks(), cloud.Servers(), cloud.Ports()); len(left) > 0 {
		t.Errorf("%v remain", left)
	}
	s.want(http.StatusNoContent, ask("DELETE", one, nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1.0/vims/"+vim, nil))
	s.want(http.StatusOK, s.do("PATCH", "/vnfpkgm/v1/vnf_packages/"+pkg, map[string]any{"operationalState": "DISABLED"}))
}

// onboard uploads a CSAR, and returns the id of its package.
func (s *testService) onboard(files map[string]string) string {
	s.t.Helper()
	id := s.want(http.StatusCreated, s.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{})).text(s.t, "id")
	s.want(http.StatusAccepted, s.send(s.t.Context(), "PUT", "/vnfpkgm/v1/vnf_packages/"+id+"/package_content", archive(files), "Content-Type", "application/zip"))
	return id
}

// TestHeatTemplates selects the templates of a flavor.
func TestHeatTemplates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason      string
		files       render.Files
		top, nested string
		wrong       string
	}{
		"One":    {"a template and those that it refers to", render.Files{"BaseHOT/simple/a.yaml": []byte("a"), "BaseHOT/simple/nested/b.yaml": []byte("b"), "BaseHOT/large/c.yaml": []byte("c"), "BaseHOT/simple/d.txt": []byte("d")}, "a", "[b.yaml]", ""},
		"None":   {"another flavor has one", render.Files{"BaseHOT/large/a.yaml": []byte("a")}, "", "[]", "BaseHOT/simple/*.yaml"},
		"Two":    {"it is not clear which one", render.Files{"BaseHOT/simple/a.yaml": []byte("a"), "BaseHOT/simple/b.yml": []byte("b")}, "", "", "two templates, a.yaml and b.yml"},
		"Passed": {"it is too large to be read", render.Files{"BaseHOT/simple/a.yaml": nil}, "", "[]", "no Heat template"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got nf.Stack
			err := templates(tc.files, "simple", &got)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.wrong)
			}
			if nested := fmt.Sprint(slices.Sorted(maps.Keys(got.Files))); err == nil && (string(got.Template) != tc.top || nested != tc.nested) {
				t.Errorf("%s: %q with %s", tc.reason, got.Template, nested)
			}
		})
	}
}
