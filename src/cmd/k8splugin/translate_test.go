package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestTranslate translates CSARs that are archives.
func TestTranslate(t *testing.T) {
	t.Parallel()
	const flavor = `tosca_definitions_version: tosca_simple_profile_for_nfv_1_0_0
imports: [types.yaml]
topology_template:
  substitution_mappings: {node_type: example.VNF, properties: {flavour_id: simple}}
  node_templates:
    VDU1: {type: tosca.nodes.nfv.VDU.Tacker, properties: {vnfcs: {web: {image: nginx}}}}
`
	got, err := translate(rendertest.Zip(csartest.Described(flavor, nil)), "simple", "")
	if err != nil || !strings.Contains(string(got.Manifests), "name: svc-vdu1\n") {
		t.Errorf("%v:\n%s", err, got.Manifests)
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		flavor string
		want   nf.Violation
	}{
		"Flavor":   {"a flavor that is not there", csartest.Described(flavor, nil), "complex", nf.Violation{Field: "flavour_id"}},
		"Machine":  {"a virtual machine", csartest.Scaled(nil), "simple", nf.Violation{File: "Definitions/df_simple.yaml", Line: 8}},
		"Broken":   {"a CSAR without its descriptor", map[string]string{"TOSCA-Metadata/TOSCA.meta": "Entry-Definitions: a.yaml\n"}, "", nf.Violation{File: "a.yaml"}},
		"Manifest": {"a package that is not a CSAR", map[string]string{"metadata.yaml": "resources: []\n"}, "", nf.Violation{File: "TOSCA-Metadata/TOSCA.meta"}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		_, err := translate(rendertest.Zip(tc.files), tc.flavor, "")
		v := nf.ViolationsOf(err)
		if nf.KindOf(err) != nf.Invalid || len(v) == 0 || v[0].Field != tc.want.Field || v[0].File != tc.want.File || v[0].Line != tc.want.Line {
			t.Errorf("%s: %v, want one at %+v", tc.reason, err, tc.want)
		}
	}
	if _, err := translate([]byte("none"), "", ""); err == nil {
		t.Error("a file that is not an archive was accepted")
	}
}
