package sdc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
)

const notification = `{"distributionID": "d1", "serviceName": "vfw", "serviceVersion": "1.0", "serviceUUID": "s1", "new": {"field": [1]},
  "resources": [
    {"resourceInstanceName": "vf 0", "resoucreType": "VF", "resourceUUID": "r1", "artifacts": [{"artifactName": "helm_vf.tgz", "artifactType": "HELM", "artifactURL": "/sdc/v1/catalog/x",
      "artifactChecksum": "ZGRl", "artifactTimeout": 120, "artifactUUID": "a1", "relatedArtifacts": null}]},
    {"resourceInstanceName": "vf 1", "resourceType": "PNF", "artifacts": null}],
  "serviceArtifacts": null}`

func TestParseNotification(t *testing.T) {
	t.Parallel()
	n, err := sdc.ParseNotification([]byte(notification))
	want := sdc.Notification{Distribution: "d1", Name: "vfw", Version: "1.0", Service: "s1", Resources: []sdc.Resource{
		{Instance: "vf 0", Type: "VF", UUID: "r1", Artifacts: []sdc.Artifact{{Name: "helm_vf.tgz", Type: "HELM", URL: "/sdc/v1/catalog/x", Checksum: "ZGRl", UUID: "a1"}}},
		{Instance: "vf 1", Type: "PNF"},
	}}
	if diff := cmp.Diff(want, n); err != nil || diff != "" {
		t.Errorf("both spellings of the type, null arrays and unknown fields are accepted: %v (-want +got):\n%s", err, diff)
	}
	for name, wrong := range map[string]string{
		"empty": "", "no JSON": "x", "no object": "[]", "no distribution": "{}", "numbers": `{"distributionID": 1}`,
		"wrong resources": `{"distributionID": "d", "resources": {"a": 1}}`, "wrong type": `{"distributionID": "d", "resources": [{"resoucreType": 1}]}`,
	} {
		if _, err := sdc.ParseNotification([]byte(wrong)); nf.KindOf(err) != nf.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseModules(t *testing.T) {
	t.Parallel()
	got, err := sdc.ParseModules([]byte(`[{"vfModuleModelName": "Vfw..helm_vf..module-0", "vfModuleModelInvariantUUID": "i", "vfModuleModelVersion": "1", "vfModuleModelUUID": "u",
		"vfModuleModelCustomizationUUID": "c", "vfModuleModelDescription": null, "isBase": true, "artifacts": ["a1"], "properties": {"x": null}}]`))
	want := []sdc.Module{{Name: "Vfw..helm_vf..module-0", Invariant: "i", UUID: "u", Customization: "c", Artifacts: []string{"a1"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, wrong := range map[string]string{"empty": "", "no list": "{}", "no ids": "[{}]", "null": `[null]`, "half": `[{"vfModuleModelInvariantUUID": "i"}]`} {
		if _, err := sdc.ParseModules([]byte(wrong)); nf.KindOf(err) != nf.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseDeletion(t *testing.T) {
	t.Parallel()
	if d, err := sdc.ParseDeletion([]byte(`{"serviceUUID": "s", "serviceName": "vfw", "x": 1}`)); err != nil || d.Service != "s" {
		t.Errorf("got %+v, %v", d, err)
	}
	for _, wrong := range []string{"", "[]", "{}", `{"serviceUUID": 1}`} {
		if _, err := sdc.ParseDeletion([]byte(wrong)); nf.KindOf(err) != nf.Invalid {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	helm := func(id, name string) sdc.Artifact { return sdc.Artifact{UUID: id, Name: name, Type: sdc.TypeHelm} }
	cloud := func(id, name string) sdc.Artifact { return sdc.Artifact{UUID: id, Name: name, Type: sdc.TypeCloud} }
	other := sdc.Artifact{UUID: "o", Name: "base.env", Type: "HEAT_ENV"}
	const labeled, plain = "VfwVf..helm_vf..module-0", "module-0"
	cases := map[string]struct {
		reason, name string
		list         []string
		artifacts    []sdc.Artifact
		want         string // UUID; empty: none
	}{
		"Helm":              {"a HELM artifact is the chart", labeled, []string{"o", "h"}, []sdc.Artifact{other, helm("h", "x.tgz")}, "h"},
		"First of Helm":     {"the module's order counts", labeled, []string{"h2", "h1"}, []sdc.Artifact{helm("h1", "a"), helm("h2", "b")}, "h2"},
		"Helm before cloud": {"HELM is preferred", labeled, []string{"c", "h"}, []sdc.Artifact{cloud("c", "helm_vf_charts.tgz"), helm("h", "x")}, "h"},
		"Label":             {"the label is in the name", labeled, []string{"c1", "c2"}, []sdc.Artifact{cloud("c1", "other_x.tgz"), cloud("c2", "Helm_VF_charts.tgz")}, "c2"},
		"Half a label":      {"an underscore ends the label", labeled, []string{"c1", "c2"}, []sdc.Artifact{cloud("c1", "helm_vfx.tgz"), cloud("c2", "x.tgz")}, ""},
		"Only one":          {"there is no choice", labeled, []string{"c1"}, []sdc.Artifact{cloud("c1", "other.tgz")}, "c1"},
		"No label":          {"without a label, the first one is taken", plain, []string{"c1", "c2"}, []sdc.Artifact{cloud("c1", "a"), cloud("c2", "b")}, "c1"},
		"No match of two":   {"none of two fits the label", labeled, []string{"c1", "c2"}, []sdc.Artifact{cloud("c1", "a"), cloud("c2", "b")}, ""},
		"None":              {"a module may have no chart", labeled, []string{"o"}, []sdc.Artifact{other, helm("h", "of another module")}, ""},
		"Unknown id":        {"an unknown artifact is ignored", labeled, []string{"x", "h"}, []sdc.Artifact{helm("h", "x")}, "h"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := sdc.Module{Name: tc.name, Artifacts: tc.list}.Chart(tc.artifacts)
			if got.UUID != tc.want || ok != (tc.want != "") {
				t.Errorf("%s: got %q, %t", tc.reason, got.UUID, ok)
			}
		})
	}
}

func FuzzParseNotification(f *testing.F) {
	f.Add([]byte(notification))
	f.Add([]byte(`{"distributionID": "d", "resources": [null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := sdc.ParseNotification(data)
		if (err == nil) != (n.Distribution != "") || err != nil && nf.KindOf(err) != nf.Invalid {
			t.Errorf("got %+v, %v", n, err)
		}
		if d, err := sdc.ParseDeletion(data); (err == nil) != (d.Service != "") {
			t.Errorf("got %+v, %v", d, err)
		}
	})
}

func FuzzParseModules(f *testing.F) {
	f.Add([]byte(`[{"vfModuleModelName": "a..b..c", "vfModuleModelInvariantUUID": "i", "vfModuleModelCustomizationUUID": "c", "artifacts": ["a"]}]`))
	f.Add([]byte(`[null, {}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		modules, err := sdc.ParseModules(data)
		if err != nil && nf.KindOf(err) != nf.Invalid {
			t.Error(err)
		}
		for _, m := range modules {
			if m.Invariant == "" || m.Customization == "" {
				t.Errorf("a module has no id: %+v", m)
			}
			if _, ok := m.Chart([]sdc.Artifact{{UUID: "a", Type: sdc.TypeHelm}}); ok && len(m.Artifacts) == 0 {
				t.Error("a chart from nowhere")
			}
		}
	})
}
