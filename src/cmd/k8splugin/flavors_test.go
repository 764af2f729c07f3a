package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// node adds a node with a CPU feature that no other node has, and returns the name of the
// feature. No pod runs on it.
func node(t *testing.T) (feature string) {
	t.Helper()
	name := clustertest.Namespace(t)
	feature = strings.ToUpper(name)
	labels := map[string]string{nf.FeaturePrefix + "cpu-cpuid." + feature: "true", nf.FeaturePrefix + "cpu-cpuid.AVX2": "true"}
	clustertest.Node(t, name, labels, map[string]string{"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "1Gi"}, false)
	return feature
}

// flavorWith returns the flavor of a region in A&AI whose nodes have a CPU feature; empty:
// none.
func (a *simulatedAAI) flavorWith(region, feature string) string {
	a.Helper()
	_, all := a.as(http.MethodGet, region+"/flavors?depth=all&nodes-only=true", "")
	items, _ := all["flavor"].([]any)
	for _, item := range items {
		if flavor, _ := item.(map[string]any); strings.Contains(fmt.Sprint(flavor["hpa-capabilities"]), `"`+feature+`"`) {
			return fmt.Sprint(flavor["flavor-id"])
		}
	}
	return ""
}

// flavorState returns the state of a region's flavors in A&AI.
func (s *testService) flavorState(region string) string {
	s.t.Helper()
	all, _ := s.do("GET", "/v1/inventory/aai?cloud_region_id="+region, nil).field(s.t, "listings").([]any)
	if len(all) == 0 {
		return ""
	}
	one, _ := all[0].(map[string]any)
	return fmt.Sprint(one["state"])
}

// TestAAIFlavors registers a region whose nodes A&AI gets as flavors, and deregisters it:
// it can then be deleted in A&AI.
func TestAAIFlavors(t *testing.T) {
	t.Parallel()
	const path = "/cloud-infrastructure/cloud-regions/cloud-region/lab/sandbox"
	feature := node(t)
	a := newAAI(t, nil)
	s := startBareService(t, a.settings("flavor"))
	s.registerSandbox("lab", "")
	until(t, "the flavors wait for the region", func() bool { return s.flavorState("sandbox") == "waiting" })
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/cloud_regions/sandbox", nil))
	until(t, "nothing is known of a region that was removed", func() bool { return s.flavorState("sandbox") == "" })

	a.put(path, `{"cloud-type": "k8s", "cloud-region-version": "1.0"}`)
	a.put(path+"/flavors/flavor/other", `{"flavor-name": "other", "flavor-selflink": "x", "data-owner": "MultiCloud"}`)
	s.registerSandbox("lab", "")
	until(t, "A&AI has the flavors", func() bool { return s.flavorState("sandbox") == "clean" })
	until(t, "the metric counts the region", func() bool { return s.parts.inventory.counts()[nf.ListingClean] == 1 })
	flavor := path + "/flavors/flavor/" + a.flavorWith(path, feature)
	_, made := a.as(http.MethodGet, flavor, "")
	got := fmt.Sprint(made["flavor-vcpus"], made["flavor-ram"], made["flavor-disk"], made["flavor-selflink"], made["data-owner"])
	if want := "8 16384 100https://k8splugin.example/v1/cloud_regions/sandboxk8splugin"; got != want {
		t.Errorf("the flavor has %s, want %s", got, want)
	}
	features := []string{"basicCapabilities generic v1", "hugePages generic v1", "instructionSetExtensions Intel64 v1", "localStorage generic v1"}
	if diff := cmp.Diff(features, a.list(flavor+"/hpa-capabilities", "hpa-capability", "hpa-feature", "architecture", "hpa-version")); diff != "" {
		t.Errorf("the capabilities differ (-want +got):\n%s", diff)
	}
	_, region := a.as(http.MethodGet, path, "")
	deletion := fmt.Sprint(path, "?resource-version=", region["resource-version"])
	if status, _ := a.as(http.MethodDelete, deletion, ""); status != http.StatusBadRequest {
		t.Errorf("the flavors block the deletion of the region in A&AI, got %d", status)
	}

	s.want(http.StatusNoContent, s.do("DELETE", "/v1/cloud_regions/sandbox", nil))
	if left := a.list(path+"/flavors", "flavor", "flavor-id"); !slices.Equal(left, []string{"other"}) {
		t.Errorf("A&AI has the flavors %q, want that of the other owner", left)
	}
	a.delete(path + "/flavors/flavor/other")
	a.delete(path)
}
