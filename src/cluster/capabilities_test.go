package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRegionCapabilities reads what a real API server offers: nodes with devices and
// features, and the pods that use them.
func TestRegionCapabilities(t *testing.T) {
	c, r, ns := recorded(t)
	vf, feature := ns+".example/vf", ns+"-AVX512F"
	labels := map[string]string{nf.FeaturePrefix + feature: "true"}
	clustertest.Node(t, ns+"-a", labels, map[string]string{"cpu": "8", "memory": "16Gi", "hugepages-1Gi": "4Gi", vf: "8"}, false)
	clustertest.Node(t, ns+"-b", labels, map[string]string{"cpu": "8", "memory": "16Gi", vf: "4"}, false)
	clustertest.Node(t, ns+"-cordoned", labels, map[string]string{vf: "16"}, true)
	one := func(name, node, spec string) string {
		place := ""
		if node != "" {
			place = "nodeName: " + node + ", "
		}
		return fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s%s}}\n", name, place, spec)
	}
	asks := func(n int) string {
		return fmt.Sprintf(`resources: {requests: {"%s": %d}, limits: {"%s": %d}}`, vf, n, vf, n)
	}
	mustApply(t, c, "vnf-1", objects(t, "vnf-1", ns,
		one("two", ns+"-a", "containers: [{name: c, image: i, "+asks(2)+"}]")+
			one("init", ns+"-a", "containers: [{name: c, image: i, "+asks(1)+"}], initContainers: [{name: s, image: i, restartPolicy: Always, "+asks(1)+"}, {name: i, image: i, "+asks(3)+"}]")+
			one("waits", "", "containers: [{name: c, image: i, "+asks(9)+"}]")+
			one("away", ns+"-cordoned", "containers: [{name: c, image: i, "+asks(1)+"}]"))...)
	got, err := c.RegionCapabilities(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	resource := func(name string) nf.NodeResource {
		at := slices.IndexFunc(got.Resources, func(r nf.NodeResource) bool { return r.Name == name })
		if at < 0 {
			t.Fatalf("no resource %s in %+v", name, got.Resources)
		}
		return got.Resources[at]
	}
	// The init step of the second pod needs 3, with its sidecar 4.
	want := nf.NodeResource{Name: vf, Nodes: 2, Allocatable: 12, Free: 6, Largest: 4, Pending: 9}
	if diff := cmp.Diff(want, resource(vf)); diff != "" {
		t.Errorf("virtual functions, without those of the cordoned node (-want +got):\n%s", diff)
	}
	perNode := slices.DeleteFunc(slices.Clone(got.NodeDevices), func(d nf.NodeDevices) bool { return d.Resource != vf })
	wantNodes := []nf.NodeDevices{{Node: ns + "-a", Resource: vf, Total: 8, Free: 2}, {Node: ns + "-b", Resource: vf, Total: 4, Free: 4}}
	if diff := cmp.Diff(wantNodes, perNode); diff != "" {
		t.Errorf("virtual functions by node (-want +got):\n%s", diff)
	}
	if got := nf.FormatAmount("hugepages-1Gi", resource("hugepages-1Gi").Free); got != "4Gi" {
		t.Errorf("%s of hugepages are free, want 4Gi", got)
	}
	if !slices.Contains(got.Features, nf.NodeFeature{Name: feature, Value: "true", Nodes: 3}) {
		t.Errorf("features of nodes: %+v", got.Features)
	}
	if got.Nodes.Cordoned < 1 || got.Nodes.Total < got.Nodes.Usable+1 || got.Nodes.OperatingSystems["linux"] == 0 {
		t.Errorf("nodes: %+v", got.Nodes)
	}
	for api, want := range map[string]bool{"v1": true, "v1/Pod": true, "apps": true, "apps/v1": true, "apps/v1/Deployment": true, "apps/v1/Pod": false, "app": false, "kubevirt.io": false} {
		if got.Serves(api) != want {
			t.Errorf("Serves(%q) is %v", api, !want)
		}
	}
	if len(got.Missing) > 0 || got.Version == "" || !strings.HasPrefix(got.Version, "v1.") {
		t.Errorf("version %q, missing %v", got.Version, got.Missing)
	}
	r.Reset()
	again, err := c.RegionCapabilities(t.Context(), false)
	if err != nil || !again.Read.Equal(got.Read) || len(r.Requests()) > 0 {
		t.Errorf("read again at %v after %d requests, %v; want the answer of %v", again.Read, len(r.Requests()), err, got.Read)
	}
	if fresh, err := c.RegionCapabilities(t.Context(), true); err != nil || !fresh.Read.After(got.Read) {
		t.Errorf("a fresh answer is of %v, %v", fresh.Read, err)
	}
}

// TestDevicesByNode reads ResourceSlices and a ResourceClaim of a real API server: devices
// of two nodes with NUMA nodes, of which one is claimed and one has a taint.
func TestDevicesByNode(t *testing.T) {
	c, ns := sandbox(t)
	driver := ns + "." + sriovDriver
	slice := func(name, rest string) string {
		return fmt.Sprintf("---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-%s}, spec: {driver: %s, pool: {name: %s, generation: 1, resourceSliceCount: 1}, %s}}\n", ns, name, driver, name, rest)
	}
	vf := func(name, more string) string {
		return fmt.Sprintf(`{name: %s, attributes: {vendor: {string: "8086"}%s}}`, name, more)
	}
	numa := func(name string, n int) string { return fmt.Sprintf(`, %s: {int: %d}`, name, n) }
	standard, own := "resource.kubernetes.io/numaNode", "dra.net/numaNode"
	tainted := `{name: vf-3, attributes: {` + own + `: {int: 1}}, taints: [{key: broken, effect: NoSchedule}]}`
	made := objects(t, "vnf-1", "",
		slice("a", "nodeName: "+ns+"-a, devices: ["+strings.Join([]string{vf("vf-0", numa(standard, 0)), vf("vf-1", numa(standard, 0)), vf("vf-2", numa(own, 1)), tainted}, ", ")+"]")+
			slice("b", "nodeName: "+ns+"-b, devices: ["+vf("vf-0", "")+"]")+
			slice("all", "allNodes: true, devices: ["+vf("vf-0", numa(standard, 0))+"]"))
	mustApply(t, c, "vnf-1", made...)
	t.Cleanup(func() {
		for _, u := range made {
			deleteAtEnd(t, c, u)
		}
	})
	claim := objects(t, "vnf-1", ns, `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: vf}, spec: {devices: {requests: [{name: vf, exactly: {deviceClassName: vf}}]}}}`)
	mustApply(t, c, "vnf-1", claim...)
	patchStatus(t, c, "/apis/resource.k8s.io/v1/namespaces/"+ns+"/resourceclaims/vf",
		`{"allocation":{"devices":{"results":[{"request":"vf","driver":"`+driver+`","pool":"a","device":"vf-1"}]}}}`)
	got, err := c.RegionCapabilities(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	perNode := slices.DeleteFunc(slices.Clone(got.NodeDevices), func(d nf.NodeDevices) bool { return d.Driver != driver })
	want := []nf.NodeDevices{
		{Node: ns + "-a", Driver: driver, Total: 4, Free: 2, NUMA: []nf.NUMADevices{{Node: 0, Total: 2, Free: 1}, {Node: 1, Total: 2, Free: 1}}},
		{Node: ns + "-b", Driver: driver, Total: 1, Free: 1},
	}
	if diff := cmp.Diff(want, perNode); diff != "" {
		t.Errorf("devices by node (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.Devices, nf.DeviceCount{Driver: driver, Total: 6, Free: 4}) {
		t.Errorf("all devices: %+v", got.Devices)
	}
}

// TestRegionCapabilitiesDenied names the rules that an account needs, at a real API
// server.
func TestRegionCapabilitiesDenied(t *testing.T) {
	access := account(t)
	c, err := local(t).Open("denied", access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	got, err := c.RegionCapabilities(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"nodes", "pods", "resourceslices.resource.k8s.io", "storageclasses.storage.k8s.io"} {
		resource, group, _ := strings.Cut(rule, ".")
		if !got.Hides(group, resource) {
			t.Errorf("%s is not missing: %v", rule, got.Missing)
		}
	}
	if len(got.Groups) == 0 || got.Version == "" {
		t.Errorf("discovery needs no rule: %+v", got)
	}
}

// TestRegionCapabilitiesOutage keeps an unreachable region an error.
func TestRegionCapabilitiesOutage(t *testing.T) {
	c, r, _ := recorded(t)
	heal := r.Refuse()
	defer heal()
	if _, err := c.RegionCapabilities(t.Context(), false); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("%v, want that the region is unreachable", err)
	}
}

func TestFlavors(t *testing.T) {
	served := func(all ...string) *kinds {
		ks := &kinds{by: map[schema.GroupKind][]kind{}}
		for _, one := range all {
			ref := strings.Split(one, "/")
			ks.by[schema.GroupKind{Group: ref[0], Kind: ref[2]}] = []kind{{GroupVersionKind: schema.GroupKind{Group: ref[0], Kind: ref[2]}.WithVersion(ref[1])}}
		}
		return ks
	}
	dra := "resource.k8s.io/v1/DeviceClass"
	cases := map[string]struct {
		reason  string
		kinds   *kinds
		classes map[string]bool
		want    []string
	}{
		"none":           {"a plain cluster has one network", served("apps/v1/Deployment", dra), nil, nil},
		"multus":         {"definitions are those of multus", served("k8s.cni.cncf.io/v1/NetworkAttachmentDefinition"), nil, []string{"multus"}},
		"ovn-kubernetes": {"with segmentation", served("k8s.ovn.org/v1/EgressIP", "k8s.ovn.org/v1/UserDefinedNetwork"), nil, []string{"ovn-kubernetes"}},
		"ovn-nad":        {"without segmentation, its networks are definitions", served("k8s.ovn.org/v1/EgressIP"), nil, []string{"ovn-kubernetes-nad"}},
		"kube-ovn":       {"its own group", served("kubeovn.io/v1/Subnet"), nil, []string{"kube-ovn"}},
		"sriov-dra":      {"the class says that there are virtual functions", served(dra), map[string]bool{sriovDriver: true}, []string{"sriov-dra"}},
		"sriov":          {"the operator", served("sriovnetwork.openshift.io/v1/SriovNetwork", "whereabouts.cni.cncf.io/v1alpha1/IPPool"), nil, []string{"sriov-operator", "whereabouts"}},
		"nodus":          {"ovn4nfv", served("k8s.plugin.opnfv.org/v1alpha1/ProviderNetwork"), nil, []string{"nodus"}},
	}
	for name, tc := range cases {
		var got []string
		for _, f := range flavors(tc.kinds, tc.classes) {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s: %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

// TestDeviceCounts counts the devices of the newest generation of complete pools.
func TestDeviceCounts(t *testing.T) {
	all := sliceCensus{}
	for _, text := range []string{
		`{"spec": {"driver": "vf", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "old"}]}}`,
		`{"spec": {"driver": "vf", "pool": {"name": "a", "generation": 2, "resourceSliceCount": 2}, "devices": [{"name": "0"}, {"name": "1"}]}}`,
		`{"spec": {"driver": "vf", "pool": {"name": "a", "generation": 2, "resourceSliceCount": 2}, "devices": [{"name": "2"}]}}`,
		`{"spec": {"driver": "vf", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "older"}]}}`,
		`{"spec": {"driver": "vf", "pool": {"name": "b", "generation": 1, "resourceSliceCount": 2}, "devices": [{"name": "0"}]}}`,
		`{"spec": {"driver": "gpu", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "0"}]}}`,
	} {
		var r resourceSlice
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		all.add(r)
	}
	claimed := map[device]bool{}
	var claim resourceClaim
	if err := json.Unmarshal([]byte(`{"status": {"allocation": {"devices": {"results": [{"driver": "vf", "pool": "a", "device": "1"}]}}}}`), &claim); err != nil {
		t.Fatal(err)
	}
	claim.claims(claimed)
	want := []nf.DeviceCount{{Driver: "gpu", Total: 1, Free: 1}, {Driver: "vf", Total: 3, Free: 2}}
	if diff := cmp.Diff(want, all.counts(claimed)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestCapabilitiesAreBounded cuts lists that a region makes too long, and says which.
func TestCapabilitiesAreBounded(t *testing.T) {
	nodes := newNodeCensus()
	for i := range mostListed + 1 {
		n := node{}
		n.Meta.Labels = map[string]string{nf.FeaturePrefix + "n": fmt.Sprint(i)}
		n.Status.NodeInfo.KernelVersion = fmt.Sprint(i)
		nodes.add(n)
	}
	var out nf.RegionCapabilities
	nodes.fill(&out, newPodCensus())
	if len(out.Features) != mostListed || !slices.Equal(out.Omitted, []string{"features"}) || len(out.Nodes.Kernels) != mostDistinct+1 {
		t.Errorf("%d features, %d kernels, omitted %v", len(out.Features), len(out.Nodes.Kernels), out.Omitted)
	}
	if sum := slices.Sorted(maps.Values(out.Nodes.Kernels)); sum[len(sum)-1] != mostListed+1-mostDistinct {
		t.Errorf("kernels: %v", out.Nodes.Kernels)
	}
}
