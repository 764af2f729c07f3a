package helm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestPeak has charts that go as far as they may, each in another way: what one
// rendering holds at any time is bounded.
func TestPeak(t *testing.T) {
	const most = 192 << 20
	kept := func(expression string) render.Files {
		return one("{{ $l := list }}{{ range $i := until 1000000 }}{{ $l = append $l (" + expression + ") }}{{ end }}")
	}
	with := func(files render.Files, more map[string]string) render.Files {
		for name, content := range more {
			files[name] = []byte(content)
		}
		return files
	}
	nested := map[string]string{
		"charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n", "charts/s/charts/t/Chart.yaml": "apiVersion: v2\nname: t\nversion: 1.0.0\n",
		"charts/s/charts/t/values.yaml": "l:\n" + strings.Repeat("- a: b\n", 80_000),
	}
	many := "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n"
	defines := ""
	for i := range 9000 {
		defines += fmt.Sprintf("{{define \"%d\"}}x{{end}}", i)
	}
	for i := range 60 {
		many += fmt.Sprintf("- {name: s, version: 1.0.0, repository: '', alias: a%d}\n", i)
	}
	cases := map[string]struct {
		reason string
		files  render.Files
	}{
		"Texts":     {"texts that are kept", kept(`printf "%d%s" $i (repeat 100000 "x")`)},
		"Pieces":    {"a table of pieces", one(`{{ $x := split "" (repeat 600000 "x") }}`)},
		"Files":     {"files, as YAML", with(kept(`$.Files.AsSecrets`), map[string]string{"big": strings.Repeat("xy\n", 1<<20)})},
		"YAML":      {"a list as YAML", one(`{{ $x := toYaml (until 300000) }}`)},
		"Tpl":       {"texts that are templates of themselves", one(`{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`)},
		"TplCopies": {"the same, with many templates", one(defines + `{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`)},
		"Actions":   {"many actions", one(strings.Repeat("{{1}}", 95_000))},
		"Values":    {"values", with(one("a: b"), map[string]string{"values.yaml": "l:\n" + strings.Repeat("- a: b\n", 80_000)})},
		"Subcharts": {"values that are copied from chart to chart", with(one("a: b"), nested)},
		"Names":     {"values that are there under many names", with(one("a: b"), map[string]string{"Chart.yaml": many, "charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n", "charts/s/values.yaml": "l:\n" + strings.Repeat("- a\n", 10_000)})},
		"Document":  {"a large document", one("a:\n" + strings.Repeat("- a: b\n", 125_000))},
		"Documents": {"large documents", one(strings.Repeat("---\n"+configMap+"data:\n"+strings.Repeat("- a: b\n", 100_000), 4))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			peak := rendertest.Peak(func() { _, err = Renderer{}.Render(t.Context(), input(tc.files)) })
			if peak > most {
				t.Errorf("%s take %d MiB: %v", tc.reason, peak>>20, err)
			}
		})
	}
}
