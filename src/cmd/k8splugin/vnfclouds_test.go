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

// serverCSAR returns the sample of a VNF of virtual machines, which has one VDU with one to
// three servers. Its descriptor has the id csartest.VNFD.
func serverCSAR(t *testing.T) map[string]string {
	t.Helper()
	files := sample(t, "csar/servers")
	files["Definitions/top.yaml"] = strings.Replace(files["Definitions/top.yaml"], "9d1f2a70-51c5-4a8b-8f0e-3c6f5f0d1b08", csartest.VNFD, 1)
	return files
}

// startCloud starts a simulated OpenStack cloud, and registers it as a VIM of a service.
func startCloud(t *testing.T, s *testService) (cloud *simulator.Simulator, vim string) {
	t.Helper()
	cloud, request := newCloud(t, "cloud")
	made := s.want(http.StatusCreated, s.do("POST", "/v1.0/vims", map[string]any{"vim": request}))
	return cloud, made.text(t, "vim.id")
}

// newCloud starts a simulated OpenStack cloud. It returns it, and how it is registered as a VIM.
func newCloud(t *testing.T, name string) (cloud *simulator.Simulator, vim map[string]any) {
	t.Helper()
	cloud, err := simulator.New(simulator.Config{Username: "nfv", UserDomain: "Default", Password: "s3cret-cloud", Project: "edge", ProjectDomain: "Default", Boot: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cloud.Stock([]simulator.Named{{ID: "image-1", Name: "debian-12"}}, []simulator.Named{{ID: "m1", Name: "medium"}}, nil, nil, []simulator.Network{{ID: "net-1", Name: "provider", Prefix: "192.0.2."}})
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return cloud, map[string]any{
		"name": name, "type": "openstack", "auth_url": server.URL + "/identity/v3", "vim_project": map[string]string{"name": "edge"},
		"auth_cred": map[string]string{"username": "nfv", "password": "s3cret-cloud", "cert_verify": "False"},
	}
}

// onServers returns a request to instantiate the VNF of serverCSAR.
func onServers(vim string) map[string]any {
	return map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]string{"vimId": vim, "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}},
		"extVirtualLinks": []any{map[string]any{"id": "link", "resourceId": "provider", "extCps": []any{map[string]any{"cpdId": "VDU1_CP1", "cpConfig": map[string]any{"one": map[string]any{}}}}}},
	}
}

// TestVNFOfVirtualMachines instantiates a VNF on a simulated OpenStack cloud that is
// registered as a VIM, scales, heals and terminates it.
func TestVNFOfVirtualMachines(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	cloud, vim := startCloud(t, s)
	testVNFOfVirtualMachines(t, s, cloud, onServers(vim))
}

// TestVNFOnDescribedCloud does the same on a cloud that only the request describes.
func TestVNFOnDescribedCloud(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	cloud, vim := newCloud(t, "unused")
	described := func(password, region string) map[string]any {
		return map[string]any{"vim1": map[string]any{
			"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "interfaceInfo": map[string]any{"endpoint": vim["auth_url"], "skipCertificateVerification": true},
			"accessInfo": map[string]string{"username": "nfv", "password": password, "userDomain": "Default", "project": "edge", "projectDomain": "Default", "region": region},
		}}
	}
	request := onServers("")
	request["vimConnectionInfo"] = described("s3cret-cloud", "RegionOne")
	testVNFOfVirtualMachines(t, s, cloud, request, func(one string) {
		v := vnfs{s, t}
		modify := func(status int, password, region string) answer {
			return v.ask(status, "PATCH", "/vnflcm/v2"+one, map[string]any{"vimConnectionInfo": described(password, region)})
		}
		modify(http.StatusBadGateway, "s3cret-wrong", "RegionOne")
		modify(http.StatusConflict, "s3cret-cloud", "RegionTwo")
		if vims := s.want(http.StatusOK, s.do("GET", "/v1.0/vims", nil)).body; strings.Contains(string(vims), "RegionTwo") {
			t.Errorf("a VIM is left of the rejected request: %s", vims)
		}
		at := modify(http.StatusAccepted, "s3cret-cloud", "RegionOne").header.Get("Location")
		v.ends(at[strings.LastIndex(at, "/")+1:], nf.OccurrenceCompleted)
	})
}

// testVNFOfVirtualMachines takes a VNF through its life with a request to instantiate it. While
// runs while it is instantiated, with its path.
func testVNFOfVirtualMachines(t *testing.T, s *testService, cloud *simulator.Simulator, request map[string]any, while ...func(one string)) {
	t.Helper()
	pkg := s.onboard(serverCSAR(t))
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
	up := run("instantiate", request)
	vim := up.text(t, "vimConnectionInfo.vim1.vimId")
	for _, part := range []string{`"vduId":"VDU1"`, `"vimLevelResourceType":"OS::Nova::Server"`, `"cpdId":"VDU1_CP1"`, `"addresses":["192.0.2.`, `"layerProtocol":"IP_OVER_ETHERNET"`} {
		if !strings.Contains(string(up.body), part) {
			t.Errorf("the VNF lacks %s: %s", part, up.body)
		}
	}
	s.want(http.StatusConflict, s.do("DELETE", "/v1.0/vims/"+vim, nil))
	for _, do := range while {
		do(one)
	}
	run("scale", map[string]any{"type": "SCALE_OUT", "aspectId": "front", "numberOfSteps": 2})
	if got := cloud.Servers(); len(got) != 3 {
		t.Errorf("the servers are %v", got)
	}
	s.want(http.StatusUnprocessableEntity, ask("POST", one+"/change_ext_conn", map[string]any{"extVirtualLinks": request["extVirtualLinks"]}))
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
