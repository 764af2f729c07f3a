package bundle

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// FuzzOverlay reads manifests of unknown origin: whatever they say,
// every file comes from the archive and goes into the chart's folder.
func FuzzOverlay(f *testing.F) {
	f.Add("version: v1\ntype: {values: a, configresource: [{filepath: d/b, chartpath: fw/templates/x.yaml}]}", "a: {b: null}")
	f.Add("type: {values: ../a, configresource: [{filepath: /b, chartpath: fw/../../x}]}", "a: 1")
	f.Add("type: {values: ./d/../a, configresource: [{filepath: 'd//b', chartpath: './fw//x'}]}", "[1]")
	f.Add("type:\n  values: &x a\n  configresource: *x", "a: &y [*y]")
	f.Fuzz(func(t *testing.T, text, values string) {
		files := render.Files{"manifest.yaml": []byte(text), "a": []byte(values), "d/b": []byte("x")}
		o, err := readOverlay(files)
		if err != nil {
			if k := nf.KindOf(err); k != nf.Invalid && k != nf.TooLarge {
				t.Fatalf("an error of kind %s: %v", k, err)
			}
			return
		}
		for _, p := range o.files {
			if p.to != path.Clean(p.to) || path.IsAbs(p.to) || strings.HasPrefix(p.to, "..") || !strings.Contains(p.to, "/") {
				t.Fatalf("a file goes to %q", p.to)
			}
		}
		chart := render.Files{"fw/Chart.yaml": []byte("name: fw"), "fw/values.yaml": []byte("a: {b: 1, c: 2}\n")}
		if err := o.lay(chart, "fw", false); err != nil {
			return
		}
		for name := range chart {
			if !strings.HasPrefix(name, "fw/") {
				t.Fatalf("the chart has a file %q", name)
			}
		}
		if o.values == nil {
			return
		}
		merged, err := readValues("values.yaml", chart["fw/values.yaml"])
		if err != nil {
			t.Fatalf("the merged values cannot be read: %v\n%s", err, chart["fw/values.yaml"])
		}
		if _, err := json.Marshal(merged); err != nil {
			t.Fatal(err)
		}
	})
}
