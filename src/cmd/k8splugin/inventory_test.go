package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
)

const (
	aaiRegion = "/cloud-infrastructure/cloud-regions/cloud-region/k8s/sandbox"
	aaiTenant = aaiRegion + "/tenants/tenant/t1"
	aaiVNF    = "/network/generic-vnfs/generic-vnf/V1"
	aaiModule = aaiVNF + "/vf-modules/vf-module/M1"
)

// until waits until a condition is true.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for tries := 0; !condition(); tries++ {
		if tries > 600 || t.Context().Err() != nil {
			t.Fatalf("it does not become true: %s", what)
		}
		delay.For(t.Context(), delay.Doubled(10*time.Millisecond, time.Second, tries), nil)
	}
}

// TestAAI brings up an instance whose objects A&AI gets, with the addresses of its pods,
// changes it, and takes it down: SO can then delete what they were related to.
func TestAAI(t *testing.T) {
	t.Parallel()
	a := startAAI(t)
	a.put(aaiVNF, `{"vnf-type": "web"}`)
	a.put(aaiModule, `{"heat-stack-id": "x"}`)
	s := startBareService(t, a.settings("k8s-resource,vserver,network"))
	s.registerSandbox("k8s", "t1")
	s.upload("web", web(goodImage))
	ns := clustertest.Namespace(t)
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns, "vnf_instance_name": "web", "parameters": map[string]any{"replicas": 2},
		"aai": map[string]any{"generic_vnf_id": "V1", "vf_module_id": "M1"},
	}))
	id := up.text(t, "vnf_id")
	path := "/v1/vnf_instances/" + id
	clean := func() bool { return s.do("GET", path+"/aai", nil).text(t, "state") == "clean" }
	until(t, "A&AI has the instance", clean)

	// Every object and every pod is there, and related to the module.
	want := s.names(path, "objects")
	resources := func() []string { return a.list(aaiTenant+"/k8s-resources", "k8s-resource", "kind", "name") }
	pods := s.names(path, "pods")
	want = append(want, pods...)
	until(t, "A&AI has the pods", func() bool { return len(resources()) == len(want) && clean() })
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), resources()); diff != "" {
		t.Errorf("A&AI differs from the region (-region +A&AI):\n%s", diff)
	}
	_, module := a.as(http.MethodGet, aaiModule, "")
	edges, _ := module["relationship-list"].(map[string]any)["relationship"].([]any)
	if len(edges) != len(want)+len(pods) {
		t.Errorf("the module has %d relations, but A&AI %d objects and %d servers", len(edges), len(want), len(pods))
	}
	servers := a.list(aaiTenant+"/vservers", "vserver", "vserver-name", "prov-status")
	if got := strings.Join(servers, ", "); len(servers) != len(pods) || strings.Count(got, " RUNNING") != len(pods) {
		t.Errorf("A&AI has the servers %q", servers)
	}

	// A&AI follows a change of the number of pods.
	s.want(http.StatusOK, s.do("PATCH", path, map[string]any{"parameters": map[string]any{"replicas": 1}}))
	until(t, "A&AI has the pods that are left", func() bool {
		left := len(want) - len(pods) + len(s.names(path, "pods"))
		return left < len(want) && len(resources()) == left && clean()
	})
	before := resources()

	// What another client has deleted comes back when it is asked for.
	objects, _ := s.do("GET", path+"/aai", nil).field(t, "objects").([]any)
	a.delete(fmt.Sprint(objects[0]))
	s.want(http.StatusAccepted, s.do("POST", path+"/aai/sync", nil))
	until(t, "the object is back", func() bool { return slices.Equal(before, resources()) })

	s.want(http.StatusNoContent, s.do("DELETE", path, nil))
	if left := resources(); len(left) > 0 {
		t.Errorf("A&AI still has %q", left)
	}
	a.delete(aaiModule)
	a.delete(aaiVNF)
	a.delete(aaiTenant)
	a.delete(aaiRegion)
	if listed, _ := s.do("GET", "/v1/inventory/aai", nil).field(t, "listings").([]any); len(listed) > 0 {
		t.Errorf("listings are left: %v", listed)
	}
}

// TestAAINetwork creates a network that A&AI gets, with its subnet and where it is, and
// deletes it.
func TestAAINetwork(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	a := startAAI(t)
	s := startBareService(t, a.settings("network"))
	s.registerSandbox("k8s", "t1")
	s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
		"name": "aai-lan", "cloud_region_id": "sandbox", "driver": "multus", "holder": "ann",
		"spec": map[string]any{"type": "bridge", "bridge": "br7", "vlan": 7, "ipam": map[string]any{"type": "whereabouts", "range": "10.7.0.0/24", "gateway": "10.7.0.1"}},
	}))
	const path = "/network/l3-networks/l3-network/sandbox.aai-lan"
	listing := func() map[string]any {
		all, _ := s.do("GET", "/v1/inventory/aai?network_id=sandbox.aai-lan", nil).field(t, "listings").([]any)
		if len(all) == 0 {
			return nil
		}
		one, _ := all[0].(map[string]any)
		return one
	}
	until(t, "A&AI has the network", func() bool { return listing()["state"] == "clean" })
	if got := a.list(path+"/subnets", "subnet", "network-start-address", "cidr-mask", "gateway-address"); !slices.Equal(got, []string{"10.7.0.0 24 10.7.0.1"}) {
		t.Errorf("A&AI has the subnets %q", got)
	}
	if got := a.list(path+"/segmentation-assignments", "segmentation-assignment", "segmentation-id"); !slices.Equal(got, []string{"7"}) {
		t.Errorf("A&AI has the VLANs %q", got)
	}
	_, tenant := a.as(http.MethodGet, aaiTenant, "")
	if text := fmt.Sprint(tenant["relationship-list"]); !strings.Contains(text, path) {
		t.Errorf("the tenant is related to %s", text)
	}
	if got := s.do("DELETE", "/v1/networks/sandbox.aai-lan?holder=ann", nil); got.status/100 != 2 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	until(t, "A&AI no longer has the network", func() bool {
		status, _ := a.as(http.MethodGet, path, "")
		return status == http.StatusNotFound && listing() == nil
	})
}

// registerSandbox registers the sandbox as a region of A&AI.
func (s *testService) registerSandbox(owner, tenant string) {
	s.t.Helper()
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "cloud_owner": owner, "aai_tenant": tenant, "kubeconfig": clustertest.Kubeconfig(s.t),
	}))
}

// names returns "kind name" of the objects of a list in an instance's document.
func (s *testService) names(path, list string) (out []string) {
	s.t.Helper()
	all, _ := s.do("GET", path+"?pods=true", nil).field(s.t, list).([]any)
	for _, one := range all {
		object, _ := one.(map[string]any)
		out = append(out, strings.TrimPrefix(fmt.Sprint(object["kind"], " ", object["name"]), "<nil> "))
	}
	return out
}
