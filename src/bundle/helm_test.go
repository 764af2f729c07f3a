package bundle_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestValuesAreThoseOfHelm renders a chart under a profile, and the chart itself
// with the profile's values given to Helm: both must see the same values.
func TestValuesAreThoseOfHelm(t *testing.T) {
	t.Parallel()
	const base = `
a: {b: 1, c: [1, 2], d: text, e: {f: 1.5}}
on: 'yes'
big: 1234567
db: {size: 1, options: {x: 1, y: 2}}
global: {zone: a, rack: 1}
`
	const defaults = "size: 0\nown: {z: 0, w: 0}\noptions: {x: 0, v: 0}\n"
	cases := map[string]string{
		"Nothing":      "",
		"Merge":        "a: {b: 2, g: {h: 1}}",
		"Lists":        "a: {c: []}",
		"Null":         "a: {b: null, e: null}\non: null",
		"NullNested":   "a: {e: {f: null}}",
		"Types":        "a: {d: {x: 1}}\nbig: big",
		"ScalarForMap": "a: 5",
		"Numbers":      "a: {b: 1e3, c: 0x10, d: 010, e: 1.0}\nbig: 9007199254740991",
		"Words":        "a: {b: yes, c: 'no', d: ~, e: 2001-01-01}",
		"Subchart":     "db: {size: 5, own: {z: 1}}",
		"SubchartNull": "db: {own: null, options: {x: null}}",
		"PackedNull":   "queue: {own: null, options: {x: null}}",
		"AliasNull":    "spare: {own: {z: null}}",
		"DeepNull":     "db: {deep: {own: null}}",
		"Global":       "global: {zone: b}",
	}
	show := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %}\ndata: {values: {{ toJson .Values | quote }}}\n"
	for name, over := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			own := chart(
				"fw/values.yaml", base, "fw/templates/cm.yaml", replace(show, "fw"),
				"fw/charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n",
				"fw/charts/db/values.yaml", defaults, "fw/charts/db/templates/cm.yaml", replace(show, "db"),
				"fw/charts/db/charts/deep/Chart.yaml", "apiVersion: v2\nname: deep\nversion: 1.0.0\n",
				"fw/charts/db/charts/deep/values.yaml", defaults, "fw/charts/db/charts/deep/templates/cm.yaml", replace(show, "deep"),
				"fw/charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
				"fw/charts/cache/values.yaml", defaults, "fw/charts/cache/templates/cm.yaml", replace(show, "cache"),
				"fw/charts/queue-1.2.0.tgz", string(rendertest.TarGz(map[string]string{
					"queue/Chart.yaml":  "apiVersion: v2\nname: queue\nversion: 1.2.0\n",
					"queue/values.yaml": defaults, "queue/templates/cm.yaml": replace(show, "queue"),
				})),
				"fw/Chart.yaml", "apiVersion: v2\nname: fw\nversion: 1.0.0\ndependencies:\n- {name: cache, version: 1.0.0, alias: spare}\n",
			)
			f.define(t, own)
			c, err := f.Compose(t.Context(), f.profile(t, map[string]string{"manifest.yaml": values, "over.yaml": over}))
			must(t, err)
			var parameters map[string]any
			must(t, yaml.Unmarshal([]byte(over), &parameters))
			want := seen(t, own, parameters)
			if diff := cmp.Diff(want, seen(t, f.files(t, c.Package), nil)); diff != "" {
				t.Errorf("Helm sees other values (-want +got):\n%s", diff)
			}
		})
	}
}

func replace(text, name string) string {
	for i := range text {
		if text[i] == '%' {
			return text[:i] + name + text[i+1:]
		}
	}
	return text
}

// seen returns the values that the templates of a chart see, by ConfigMap.
func seen(t *testing.T, files map[string]string, parameters map[string]any) map[string]any {
	t.Helper()
	in := render.Input{Files: render.Files{}, Inputs: nf.Inputs{Parameters: parameters}, Release: render.Release{Name: "r", Namespace: "n", Revision: 1}}
	for name, content := range files {
		in.Files[name] = []byte(content)
	}
	out, err := helm.Renderer{}.Render(t.Context(), in)
	must(t, err)
	found := map[string]any{}
	for _, group := range out.Groups {
		for _, object := range group.Objects {
			data, _ := object.Unstructured.Object["data"].(map[string]any)
			var seen any
			text, _ := data["values"].(string)
			must(t, json.Unmarshal([]byte(text), &seen))
			found[object.GetName()] = seen
		}
	}
	if len(found) != 5 {
		t.Fatalf("rendered %v", found)
	}
	return found
}
