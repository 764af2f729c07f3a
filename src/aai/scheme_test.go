package aai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var update = flag.Bool("update", false, "write the golden files")

var scheme = aai.Scheme{Owner: "k8splugin", URL: "https://k8splugin.example"}

// instance returns an instance of a VNF module with a Deployment and a pod.
func instance() aai.Instance {
	return aai.Instance{
		ID: "amazing_hopper", Name: "upf", Place: aai.Place{Owner: "k8s", Region: "r1", Tenant: "t1"}, VNF: "V1", Module: "M1",
		Objects: []aai.Object{{
			Ref:    nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ran", Name: "upf"},
			Labels: map[string]string{nf.OwnerLabel: "amazing_hopper", "app": "upf"}, Generation: 3,
		}},
		Pods: []aai.Pod{{
			UID: "5b1d", Namespace: "ran", Name: "upf-0", Labels: map[string]string{nf.OwnerLabel: "amazing_hopper"}, Phase: "Running", Ready: true,
			Interfaces: []aai.Interface{
				{Name: "eth0", Addresses: []aai.Address{{IP: netip.MustParseAddr("10.244.0.7")}, {IP: netip.MustParseAddr("fd00::7"), Bits: 64}}},
				{Name: "net1", MAC: "0a:58:0a:00:03:07", Network: "n3", NetworkID: "r1.n3", Type: "macvlan", MTU: 1400, Addresses: []aai.Address{{IP: netip.MustParseAddr("10.0.3.7"), Bits: 24}}},
			},
		}},
	}
}

func network() aai.Network {
	return aai.Network{
		ID: "r1.n3", Name: "n3", Driver: "multus", Attachment: "n3", Physical: "physnet1", Active: true, VLAN: 103,
		Place: aai.Place{Owner: "k8s", Region: "r1", Tenant: "t1"},
		Ranges: []aai.Range{
			{Prefix: netip.MustParsePrefix("10.0.3.0/24"), Gateway: netip.MustParseAddr("10.0.3.1"), Start: netip.MustParseAddr("10.0.3.10"), End: netip.MustParseAddr("10.0.3.99")},
			{Prefix: netip.MustParsePrefix("fd00:3::/64")},
		},
	}
}

// nodes returns three nodes, of which two have the same features.
func nodes() []aai.Node {
	plain := aai.Node{CPUs: 8, Memory: 16 << 30, Storage: 100 << 30}
	small, large := plain, plain
	small.CPUs, small.Storage = 4, 50<<30
	large.HugePages = map[string]int64{"2Mi": 1 << 30, "1Gi": 4 << 30, "16Gi": 1}
	large.Labels = map[string]string{
		"feature.node.kubernetes.io/cpu-cpuid.AVX2": "true", "feature.node.kubernetes.io/cpu-cpuid.AVX": "true",
		"feature.node.kubernetes.io/cpu-cpuid.SHA": "false", "feature.node.kubernetes.io/cpu-hardware_multithreading": "true",
		"feature.node.kubernetes.io/pci-0300_10de.present": "true", "other": "true",
	}
	return []aai.Node{plain, large, small}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	all := aai.ClassesOf(nodes())
	if len(all) != 2 {
		t.Fatalf("got %d classes, want 2: the size of a node is no feature", len(all))
	}
	i := slices.IndexFunc(all, func(c aai.NodeClass) bool { return len(c.Features) == 0 })
	if got := all[i]; got.CPUs != 4 || got.Memory != 16<<30 || got.Storage != 50<<30 {
		t.Errorf("the size of a class is that of its smallest node: %+v", got)
	}
	reversed := nodes()
	slices.Reverse(reversed)
	if diff := cmp.Diff(all, aai.ClassesOf(reversed)); diff != "" {
		t.Errorf("the order of nodes matters (-want +got):\n%s", diff)
	}
	if got := aai.ClassesOf(nil); len(got) != 0 {
		t.Errorf("no nodes are %d classes", len(got))
	}
}

// TestDocuments compares documents with golden files. Write them with -update.
func TestDocuments(t *testing.T) {
	t.Parallel()
	plain := instance()
	plain.VNF, plain.Module = "", ""
	vnf := instance()
	vnf.Module = ""
	odd := instance()
	odd.ID, odd.Place, odd.VNF, odd.Module = "a/b c", aai.Place{Owner: "k/8", Region: "r 1", Tenant: "ä"}, "V/1", "M 1"
	cluster := instance()
	cluster.Objects = []aai.Object{{Ref: nf.Ref{Version: "v1", Kind: "Namespace", Name: "ran"}}}
	cases := map[string]struct {
		reason string
		got    []aai.Document
	}{
		"resources":      {"objects and pods belong to a VNF and a module", scheme.Resources(instance())},
		"resources-free": {"an instance may belong to no VNF", scheme.Resources(plain)},
		"resources-vnf":  {"or to no module of it", scheme.Resources(vnf)},
		"resources-odd":  {"keys of paths are escaped", scheme.Resources(odd)},
		"resources-core": {"an object without group, namespace and labels has empty ones", scheme.Resources(cluster)},
		"servers":        {"a pod is a vserver with interfaces and addresses", scheme.Servers(instance())},
		"network":        {"a network has subnets and a VLAN", []aai.Document{scheme.Network(network())}},
		"flavors":        {"a class of nodes is a flavor with capabilities", scheme.Flavors(instance().Place, aai.ClassesOf(nodes()))},
		"network-plain":  {"or neither", []aai.Document{scheme.Network(aai.Network{ID: "r1.x", Name: "x", Driver: "ovn", Place: aai.Place{Owner: "k8s", Region: "r1"}})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.MarshalIndent(tc.got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the documents differ (-want +got):\n%s", tc.reason, cmp.Diff(string(want), string(got)))
			}
		})
	}
}

func TestPodsOfAnInstance(t *testing.T) {
	t.Parallel()
	pods := func(n int, phase string, job bool) (out []aai.Pod) {
		for i := range n {
			out = append(out, aai.Pod{UID: fmt.Sprint(i), Name: fmt.Sprint("p", i), Phase: phase, Job: job})
		}
		return out
	}
	cases := map[string]struct {
		reason string
		pods   []aai.Pod
		want   int
	}{
		"most":          {"500 pods are written", pods(500, "Running", false), 500},
		"too many":      {"with more, none are", pods(501, "Running", false), 0},
		"ended":         {"an ended pod of a Job is omitted", pods(2, "Succeeded", true), 0},
		"failed":        {"so is a failed one", pods(2, "Failed", true), 0},
		"running":       {"a running one is not", pods(2, "Running", true), 2},
		"no Job":        {"nor is a failed pod of another workload", pods(2, "Failed", false), 2},
		"many of a Job": {"ended pods do not count", append(pods(600, "Succeeded", true), pods(2, "Running", false)...), 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := aai.Instance{Pods: tc.pods}
			if got := len(scheme.Resources(in)); got != tc.want {
				t.Errorf("%s: got %d resources, want %d", tc.reason, got, tc.want)
			}
			if got := len(scheme.Servers(in)); got != tc.want {
				t.Errorf("%s: got %d servers, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	labels := map[string]string{nf.OwnerLabel: "x"}
	for i := range 30 {
		labels[fmt.Sprintf("a%02d", i)] = "y"
	}
	in := aai.Instance{Objects: []aai.Object{{Ref: nf.Ref{Kind: "Pod"}, Labels: labels}}}
	got, _ := scheme.Resources(in)[0].Attributes["labels"].([]string)
	if len(got) != 20 || got[0] != "a00=y" || got[19] != nf.OwnerLabel+"=x" {
		t.Errorf("got %q, want 20 labels in order, with that of the owner", got)
	}
}

// TestResourceIDs compares an id with that which SO's adapter computes.
func TestResourceIDs(t *testing.T) {
	t.Parallel()
	in := aai.Instance{ID: "i", Place: aai.Place{Owner: "o", Region: "r", Tenant: "t"}, Objects: []aai.Object{{Ref: nf.Ref{Group: "g", Version: "v", Kind: "k", Namespace: "s", Name: "n"}}}}
	const want = "e3c049af36f9d82426150e130dc490ebc5625e17b4cce000d347afdca10440e5"
	if got := scheme.Resources(in)[0].Attributes["id"]; got != want {
		t.Errorf("got %s, want the SHA-256 of inskgvort", got)
	}
}
