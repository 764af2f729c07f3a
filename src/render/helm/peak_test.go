package helm

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

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
		"Lines":     {"lines of files", with(one(`{{ $x := .Files.Lines "a" }}`), map[string]string{"a": strings.Repeat("\n", maxEscapes), "b": strings.Repeat("x", maxFiles-maxEscapes)})},
		"Texts":     {"texts that are kept", kept(`printf "%d%s" $i (repeat 100000 "x")`)},
		"Pieces":    {"a table of pieces", one(`{{ $x := split "" (repeat 600000 "x") }}`)},
		"YAML":      {"a list as YAML", one(`{{ $x := toYaml (until 300000) }}`)},
		"Tpl":       {"texts that are templates of themselves", one(`{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`)},
		"TplCopies": {"the same, with many templates", one(defines + `{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`)},
		"Actions":   {"many actions", one(strings.Repeat("{{1}}", 95_000))},
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

// TestPeakOfFiles has an eighth of the files and of the limits of TestPeak, since
// their encoders are slow.
func TestPeakOfFiles(t *testing.T) {
	const work, most = maxWork / 8, 24 << 20
	cases := map[string]struct{ reason, template, file string }{
		"Kept":    {"files that are kept as YAML", "{{ $l := list }}{{ range until 1000000 }}{{ $l = append $l $.Files.AsSecrets }}{{ end }}", strings.Repeat("xy\n", 128<<10)},
		"Escaped": {"a file of characters that are escaped", "{{ $x := .Files.AsConfig }}", strings.Repeat("\x00", maxEscapes/8) + strings.Repeat("x", (maxFiles-maxEscapes)/8)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := one(tc.template)
			files["big"] = []byte(tc.file)
			var err error
			peak := rendertest.Peak(func() { _, err = Renderer{work: work}.Render(t.Context(), input(files)) })
			if peak > most {
				t.Errorf("%s take %d MiB: %v", tc.reason, peak>>20, err)
			}
		})
	}
}

// TestPeakOfStalled has many renderings that hold memory while they wait for their
// regions.
func TestPeakOfStalled(t *testing.T) {
	const many, aside, most = 40, 40 << 20, 120 << 20
	template := `{{ $l := list }}{{ range $i := until 80 }}{{ $l = append $l (printf "%d%s" $i (repeat 100000 "x")) }}{{ end }}` + lookingUp + "# {{ len $l }}\n"
	peak := rendertest.Peak(func() {
		synctest.Test(t, func(t *testing.T) {
			h := New(Config{Gate: render.NewGate(render.GateConfig{AtOnce: 2, Aside: aside})})
			slow := &slowRegion{answer: make(chan struct{})}
			ended := make(chan error)
			for i := range many {
				go func() {
					_, err := h.Render(t.Context(), inRegion(template, fmt.Sprint(i), slow))
					ended <- err
				}()
			}
			synctest.Wait()
			close(slow.answer)
			for range many {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	})
	if peak > most {
		t.Errorf("%d renderings that wait for their regions hold %d MiB", many, peak>>20)
	}
}
