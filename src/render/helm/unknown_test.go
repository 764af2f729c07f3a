package helm

import (
	"fmt"
	"maps"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestUnknownValues checks which values a strict request may contain.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	const (
		reads    = "{{ .Values.mine }}"
		metadata = "apiVersion: v2\nname: %s\nversion: 1.0.0\n"
	)
	cases := map[string]struct {
		reason   string
		files    map[string]string
		given    map[string]any // in addition to the value mine
		rejected bool
	}{
		"Unused":     {"nothing reads it", map[string]string{"values.yaml": "text: x\n"}, nil, true},
		"Template":   {"a template reads it", map[string]string{"templates/b.txt": "# " + reads}, nil, false},
		"File":       {"a file that a template executes reads it", map[string]string{"conf/b.conf": reads}, nil, false},
		"FileAll":    {"such a file reads all values", map[string]string{"conf/b.conf": "{{ toYaml .Values }}"}, nil, false},
		"FilePlain":  {"a file that is not a template only contains its name", map[string]string{"README.md": "This is mine."}, nil, true},
		"Default":    {"a default value that a template executes reads it", map[string]string{"values.yaml": "text: '" + reads + "'\n"}, nil, false},
		"DefaultIn":  {"so does one in a list in a map", map[string]string{"values.yaml": "text: {list: [1, '" + reads + "']}\n"}, nil, false},
		"DefaultAll": {"such a default value reads all values", map[string]string{"values.yaml": "text: '{{ toYaml .Values }}'\n"}, nil, false},
		"Plain":      {"a default value that is not a template only contains its name", map[string]string{"values.yaml": "text: mine\n"}, nil, true},
		"Subchart": {"a default value of a subchart reads it",
			map[string]string{"charts/s/Chart.yaml": fmt.Sprintf(metadata, "s"), "charts/s/values.yaml": "text: '" + reads + "'\n"}, nil, false},
		"SubchartFile": {"a file of a subchart reads it",
			map[string]string{"charts/s/Chart.yaml": fmt.Sprintf(metadata, "s"), "charts/s/b.conf": reads}, nil, false},
		"Given":      {"another value of the request reads it", map[string]string{"values.yaml": "text: x\n"}, map[string]any{"text": reads}, false},
		"GivenPlain": {"another value of the request only contains its name", map[string]string{"values.yaml": "text: x\n"}, map[string]any{"text": "mine"}, true},
		"Schema":     {"the schema describes it", map[string]string{"values.schema.json": `{"properties": {"mine": {}}}`}, nil, false},
		"Condition":  {"it enables a subchart", map[string]string{"Chart.yaml": fmt.Sprintf(metadata, "c") + "dependencies: [{name: s, version: '*', repository: '', condition: mine.on}]\n", "charts/s/Chart.yaml": fmt.Sprintf(metadata, "s")}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := one(configMap)
			for path, content := range tc.files {
				files[path] = []byte(content)
			}
			in := input(files)
			in.Strict = true
			in.Inputs.Parameters = map[string]any{"mine": map[string]any{"on": true}}
			maps.Copy(in.Inputs.Parameters, tc.given)
			_, err := Renderer{}.Render(t.Context(), in)
			if !tc.rejected {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			const want = "parameters.mine: the chart has no such value"
			if found := nf.ViolationsOf(err); len(found) != 1 || found[0].String() != want {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
		})
	}
}
