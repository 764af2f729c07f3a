package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFlavorLabels resolves each flavor of a region's nodes.
func TestFlavorLabels(t *testing.T) {
	t.Parallel()
	offers := nf.RegionCapabilities{Rooms: []nf.NodeRoom{
		{Name: "plain"}, {Name: "avx", Features: map[string]string{"cpu-cpuid.AVX": "true"}}, {Name: "another", Features: map[string]string{"kernel-version.major": "6"}},
	}}
	_, found, flavors := flavorLabels(offers, "k8s-none")
	if found || len(flavors) != 2 {
		t.Fatalf("a flavor that does not exist is found: %v, of %q", found, flavors)
	}
	got := map[string]bool{}
	for _, flavor := range flavors {
		labels, found, _ := flavorLabels(offers, flavor)
		if !found || len(labels) != 1 {
			t.Fatalf("flavor %s has the labels %v, found %v", flavor, labels, found)
		}
		for label := range labels[0] {
			got[label] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"feature.node.kubernetes.io/cpu-cpuid.AVX": true}, got); diff != "" {
		t.Errorf("labels of all flavors (-want +got):\n%s", diff)
	}
}
