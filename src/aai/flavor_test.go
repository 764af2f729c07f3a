package aai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestNodesOf(t *testing.T) {
	t.Parallel()
	rooms := []nf.NodeRoom{{
		Name: "n", Zone: "a", Features: map[string]string{"cpu-cpuid.AVX2": "true"}, Free: nf.Amounts{},
		Total: nf.Amounts{"cpu": 8000, "memory": 16 << 30, "ephemeral-storage": 100 << 30, "hugepages-2Mi": 1 << 30, "hugepages-1Gi": 0, "pods": 110},
	}}
	want := []aai.Node{{
		Labels: map[string]string{"feature.node.kubernetes.io/cpu-cpuid.AVX2": "true"},
		CPUs:   8, Memory: 16 << 30, Storage: 100 << 30, HugePages: map[string]int64{"2Mi": 1 << 30, "1Gi": 0},
	}}
	if diff := cmp.Diff(want, aai.NodesOf(rooms)); diff != "" {
		t.Errorf("a node is read wrongly (-want +got):\n%s", diff)
	}
}

func TestFlavorLabels(t *testing.T) {
	t.Parallel()
	const prefix = "feature.node.kubernetes.io/"
	labeled := func(labels ...string) aai.Node {
		n := aai.Node{Labels: map[string]string{"other": "true", prefix + "cpu-cpuid.SHA": "false", prefix + "system-os_release.ID": "debian"}}
		for _, label := range labels {
			n.Labels[prefix+label] = "true"
		}
		return n
	}
	set := func(labels ...string) map[string]string {
		out := map[string]string{}
		for _, label := range labels {
			out[prefix+label] = "true"
		}
		return out
	}
	cases := map[string]struct {
		reason string
		nodes  []aai.Node // the first one gives the class
		want   []map[string]string
	}{
		"Labels":  {"labels that are features, and no others", []aai.Node{labeled("cpu-cpuid.AVX2", "cpu-hardware_multithreading", "pci-0300_10de.present"), labeled()}, []map[string]string{set("cpu-cpuid.AVX2", "cpu-hardware_multithreading", "pci-0300_10de.present")}},
		"Vendor":  {"two labels are the same feature, so that each is an alternative", []aai.Node{labeled("pci-0300_10de.present"), labeled("pci-0200_10de.present"), labeled("pci-0300_10de.present")}, []map[string]string{set("pci-0200_10de.present"), set("pci-0300_10de.present")}},
		"SRIOV":   {"a capability of a device is no other device", []aai.Node{labeled("pci-0200_8086.present", "pci-0200_8086.sriov.capable"), labeled("pci-0200_8086.present")}, []map[string]string{set("pci-0200_8086.present")}},
		"Devices": {"labels can also have the device", []aai.Node{labeled("pci-0200_8086_154c.present", "pci-0200_8086_1572.present"), labeled("pci-0200_8086.present")}, []map[string]string{set("pci-0200_8086.present"), set("pci-0200_8086_154c.present", "pci-0200_8086_1572.present")}},
		"Unnamed": {"huge pages are a feature without a label", []aai.Node{{HugePages: map[string]int64{"2Mi": 1}}}, []map[string]string{{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := aai.ClassesOf(tc.nodes[:1])[0].ID
			sets, found := aai.FlavorLabels(tc.nodes, class)
			if diff := cmp.Diff(tc.want, sets); diff != "" || !found {
				t.Errorf("%s: found %v (-want +got):\n%s", tc.reason, found, diff)
			}
		})
	}
	if sets, found := aai.FlavorLabels([]aai.Node{labeled()}, "k8s-0000000000"); found || sets != nil {
		t.Errorf("a class that no node has is found: %v", sets)
	}
}

// TestDeviceLabels compares the classes of nodes with PCI devices. The ids are those of
// earlier releases, because requests and A&AI have them.
func TestDeviceLabels(t *testing.T) {
	t.Parallel()
	const none, intel, nvidia = "k8s-4f53cda18c", "k8s-89b5149c2b", "k8s-5e54a854d7"
	cases := map[string]struct {
		reason  string
		labels  []string
		class   string
		vendors []string
	}{
		"None":      {"a node without devices has no features", nil, none, nil},
		"Ordinary":  {"a label has the class and the vendor", []string{"pci-0200_8086.present"}, intel, []string{"8086"}},
		"Two":       {"each label of a class is a feature", []string{"pci-0300_10de.present", "pci-0302_10de.present"}, nvidia, []string{"10de", "10de"}},
		"SRIOV":     {"a capability of a device is no other device", []string{"pci-0200_8086.present", "pci-0200_8086.sriov.capable"}, intel, []string{"8086"}},
		"SRIOVOnly": {"a capability does not state the presence", []string{"pci-0200_8086.sriov.capable"}, none, nil},
		"Device":    {"the vendor does not include the device", []string{"pci-0200_8086_154c.present"}, intel, []string{"8086"}},
		"Devices":   {"devices of a class and a vendor are one feature", []string{"pci-0200_8086_154c.present", "pci-0200_8086_1572.present", "pci-0200_8086_154c.sriov.capable"}, intel, []string{"8086"}},
		"Subsystem": {"more fields can follow", []string{"pci-0200_8086_154c_8086_0000.present"}, intel, []string{"8086"}},
		"NoVendor":  {"a label may lack the vendor", []string{"pci-0200.present"}, none, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := aai.Node{Labels: map[string]string{}}
			for _, label := range tc.labels {
				n.Labels[nf.FeaturePrefix+label] = "true"
			}
			got := aai.ClassesOf([]aai.Node{n})[0]
			var want []aai.Feature
			for _, vendor := range tc.vendors {
				want = append(want, aai.Feature{Name: "pciePassthrough", Architecture: "generic", Attributes: map[string]string{"pciVendorId": `{"value":"` + vendor + `"}`}})
			}
			if diff := cmp.Diff(want, got.Features); diff != "" || got.ID != tc.class {
				t.Errorf("%s: the class is %s, want %s; features (-want +got):\n%s", tc.reason, got.ID, tc.class, diff)
			}
		})
	}
}
