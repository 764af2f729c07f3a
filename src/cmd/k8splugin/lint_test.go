package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestLintLarge checks a package that is larger than the limit that servers have by
// default.
func TestLintLarge(t *testing.T) {
	archive, err := io.ReadAll(rendertest.LargeZip(map[string]string{
		"metadata.yaml": "resources: [{manifest: [cm.yaml]}]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	}, "disk.img", 65<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := lint(archive)
	if err != nil || !slices.Contains(warnings, "disk.img: is named by no entry of metadata.yaml") {
		t.Errorf("lint says %q: %v", warnings, err)
	}
}

// TestLintRenders checks what lint finds by rendering.
func TestLintRenders(t *testing.T) {
	t.Parallel()
	chart := func(template string) []byte {
		return rendertest.Zip(map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": "image: {tag: a}\n", "templates/a.yaml": template,
		})
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	manifests := rendertest.Zip(map[string]string{
		"metadata.yaml": "variables:\n- {name: count, type: integer}\nresources:\n- configMap: [cm.yaml]\n", "cm.yaml": object + "data: {count: \"$count\"}\n",
	})
	cases := map[string]struct {
		reason   string
		archive  []byte
		values   map[string]any
		warnings []string
		fails    string
	}{
		"Good":         {"a chart that renders with its default values", chart(object + "data: {tag: {{ .Values.image.tag }}}\n"), nil, nil, ""},
		"Nil":          {"a template that needs a map", chart(object + "data: {x: {{ .Values.foo.bar }}}\n"), nil, nil, "templates/a.yaml:4"},
		"NilGiven":     {"is right with the values that make one", chart(object + "data: {x: {{ .Values.foo.bar }}}\n"), map[string]any{"foo": map[string]any{"bar": "b"}}, nil, ""},
		"Builtin":      {"a misspelled name of Helm's", chart(object + "data: {x: {{ .Release.Nme.x }}}\n"), nil, nil, "templates/a.yaml:4"},
		"Required":     {"a value that a template requires may be missing", chart("metadata: {name: {{ required \"give a name\" .Values.name }}}\n"), nil, []string{"the objects are not checked without other values: give a name"}, ""},
		"Fail":         {"or be refused", chart(object + "{{ if not .Values.name }}{{ fail \"no name\" }}{{ end }}"), nil, []string{"the objects are not checked without other values: no name"}, ""},
		"Unknown":      {"a value that nothing mentions", chart(object + "data: {tag: {{ .Values.image.tag }}}\n"), map[string]any{"imge": map[string]any{"tag": "b"}}, []string{"parameters.imge: the chart has no such value"}, ""},
		"All":          {"every value is used if all are", chart(object + "data: {all: {{ .Values | toJson | quote }}}\n"), map[string]any{"imge": "b"}, nil, ""},
		"Manifests":    {"other packages have variables without values", manifests, nil, nil, ""},
		"ManifestsBad": {"which are checked if they are given", manifests, map[string]any{"count": "two"}, nil, "parameters.count"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warnings, err := check(t.Context(), tc.archive, nf.Inputs{Parameters: tc.values})
			if !slices.Equal(warnings, tc.warnings) {
				t.Errorf("%s: got the warnings %q, want %q", tc.reason, warnings, tc.warnings)
			}
			if tc.fails == "" && err != nil || tc.fails != "" && !strings.Contains(nf.ViolationsOf(err).Error(), tc.fails) {
				t.Errorf("%s: got error %v, want one about %q", tc.reason, err, tc.fails)
			}
		})
	}
}
