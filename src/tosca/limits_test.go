package tosca_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// many returns a mapping in YAML with so many keys of one value.
func many(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: %s, ", i, value)
	}
	return "{" + strings.TrimSuffix(b.String(), ", ") + "}"
}

// policy returns a descriptor with the VDU V and a policy.
func policy(typ, properties string) string {
	return nodes("  policies: [{p: {type: tosca.policies.nfv." + typ + ", targets: [V], properties: " + properties + "}}]\n")
}

// TestReadBounds reads small descriptors that would take much memory.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	inputs := "  inputs: {b: {type: list, default: [" + strings.Repeat("x, ", 1500) + "x]}}\n"
	cases := map[string]struct{ reason, text, want string }{
		"Inputs": {
			"an input counts wherever it is used",
			strings.Replace(nodes("    N: {type: tosca.nodes.nfv.VNF, interfaces: {Vnflcm: {inputs: "+many(300, "{get_input: b}")+", scale_end: {}}}}\n"), "  node_templates:", inputs+"  node_templates:", 1),
			"more than 300000 values",
		},
		"Deltas":  {"an aspect has few deltas", policy("VduScalingAspectDeltas", "{aspect: a, deltas: "+many(52, "{number_of_instances: 1}")+"}"), "more than 50"},
		"Levels":  {"a flavor has few levels", policy("InstantiationLevels", "{levels: "+many(52, "{}")+"}"), "more than 50 instantiation levels"},
		"Counts":  {"also if only their pods are named", policy("VduInstantiationLevels", "{levels: "+many(52, "{number_of_instances: 1}")+"}"), "more than 50 instantiation levels"},
		"Aspects": {"a level has few aspects", policy("InstantiationLevels", "{levels: {a: {scale_info: "+many(52, "{scale_level: 1}")+"}}}"), "more than 50 scaling aspects"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tosca.Read(map[string][]byte{entry: []byte(tc.text)}, entry)
			if err == nil || nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestAspectsOfOneVDU reads a level of two aspects that scale one VDU: it has the pods of
// both.
func TestAspectsOfOneVDU(t *testing.T) {
	t.Parallel()
	const text = `  policies:
  - initial: {type: tosca.policies.nfv.VduInitialDelta, targets: [V], properties: {initial_delta: {number_of_instances: 1}}}
  - aspects: {type: tosca.policies.nfv.ScalingAspects, properties: {aspects: {a: {max_scale_level: 2, step_deltas: [one]}, b: {max_scale_level: 2, step_deltas: [ten]}}}}
  - one: {type: tosca.policies.nfv.VduScalingAspectDeltas, targets: [V], properties: {aspect: a, deltas: {one: {number_of_instances: 1}}}}
  - ten: {type: tosca.policies.nfv.VduScalingAspectDeltas, targets: [V], properties: {aspect: b, deltas: {ten: {number_of_instances: 10}}}}
  - levels: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {big: {scale_info: {a: {scale_level: 1}, b: {scale_level: 1}}}}}}
`
	for range 50 {
		top, err := tosca.Read(map[string][]byte{entry: []byte(nodes(text))}, entry)
		if err != nil {
			t.Fatal(err)
		}
		for id := range top.Flavors {
			f, err := top.Flavor(id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Counts("big")
			if diff := cmp.Diff(map[string]int{"V": 12}, got); diff != "" || err != nil {
				t.Fatalf("the pods of the level (-want +got):\n%s%v", diff, err)
			}
		}
		if len(top.Flavors) == 0 {
			t.Fatal("there is no flavor")
		}
	}
}

// TestImageVersion translates images with a version.
func TestImageVersion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, data, want string }{
		"Plain":  {"the version is the tag", "name: nginx, version: '1.25'", "image: nginx:1.25\n"},
		"Port":   {"the port of a registry is no tag", "name: 'registry.example.com:5000/amf', version: '1.2'", "image: registry.example.com:5000/amf:1.2\n"},
		"Scheme": {"nor is the scheme", "name: 'docker://nginx', version: '1.25'", "image: nginx:1.25\n"},
		"Tag":    {"a tag precedes it", "name: 'web:2', version: '1.25'", "image: web:2\n"},
		"Digest": {"and a digest", "name: 'web@sha256:0123', version: '1.25'", "image: web@sha256:0123\n"},
		"None":   {"it need not be there", "name: nginx", "image: nginx\n"},
		"Wrong":  {"it must be a tag", "name: nginx, version: '1 2'", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := held(t, "compute")
			text := strings.Replace(string(files[entry]), "name: registry.example.com/web, version: '1.0'", tc.data, 1)
			got, err := tosca.Translate(map[string][]byte{entry: []byte(text)}, entry, "", "")
			if (err != nil) != (tc.want == "") || !strings.Contains(string(got.Manifests), tc.want) {
				t.Errorf("%s: want %q, %v:\n%s", tc.reason, tc.want, err, got.Manifests)
			}
		})
	}
}
