package helm

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
)

// checkRefusal holds every refusal to its form.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if kind := nf.KindOf(err); kind != nf.Invalid && kind != nf.Unsupported && kind != nf.TooLarge && kind != nf.Timeout || nf.ViolationsOf(err) == nil {
		t.Errorf("error of kind %v: %v", nf.KindOf(err), err)
	}
	for _, v := range nf.ViolationsOf(err) {
		if goText.MatchString(v.String()) {
			t.Errorf("a violation is for programmers: %q", v)
		}
		if v.Message == "" || v.Line < 0 || v.Line > 0 && v.File == "" || strings.ContainsAny(v.String(), "\x1b\n\r\x00") {
			t.Errorf("a violation says %q", v)
		}
	}
}

// FuzzCheck reads any files, as a txtar archive, and renders what is a chart.
func FuzzCheck(f *testing.F) {
	for name, files := range helmtest.Charts() {
		if name == "certificates" {
			continue // keys take long
		}
		var archive txtar.Archive
		for path, content := range files {
			archive.Files = append(archive.Files, txtar.File{Name: path, Data: content})
		}
		f.Add(txtar.Format(&archive))
	}
	f.Add([]byte("-- Chart.yaml --\napiVersion: v1\nname: a\nversion: 1.0.0\ndependencies: [null]\n-- values.yaml --\n[]\n-- values.schema.json --\ntrue\n-- requirements.yaml --\n- a\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		// Keys and hashes take long, and random numbers show nothing.
		if len(content) > 8<<10 || strings.Contains(string(content), "gen") {
			return
		}
		archive := &txtar.Archive{}
		if guarded(func() error { archive = txtar.Parse(content); return nil }) != nil {
			return // the format of the test itself
		}
		files := helmtest.Files(archive)
		summary, err := Renderer{}.Check(t.Context(), files)
		checkRefusal(t, err)
		if err == nil && (summary.Name == "" || summary.Version == "") {
			t.Errorf("the chart says of itself %+v", summary)
		}
		for _, text := range []string{summary.Name, summary.Version, summary.Description} {
			if nf.CheckText("", text) != nil {
				t.Errorf("the chart says of itself %q", text)
			}
		}
		out, err := Renderer{}.Render(t.Context(), input(files))
		checkRefusal(t, err)
		for _, g := range out.Groups {
			for _, o := range g.Objects {
				if o.GetKind() == "" || o.GetName() == "" || o.File == "" || o.Line < 1 {
					t.Errorf("%s:%d: %v", o.File, o.Line, o.Object)
				}
			}
		}
		for _, h := range out.Hooks {
			if h.GetName() == "" || len(h.Events) == 0 {
				t.Errorf("hook %+v", h)
			}
		}
	})
}

// FuzzOverrides lays any override over values.
func FuzzOverrides(f *testing.F) {
	for _, o := range [][2]string{
		{"a", "1"}, {"a.b", "{x,y}"}, {"a[0].b", "null"}, {`a\.b`, `x\,y`}, {"a", "b,c=d"}, {"a[", "]"}, {"", ""}, {"list[1]", "{"},
		{"list[1].a", "2"}, {"map.a[0]", "1"}, {"text.a", "1"}, {"a[1][2]", "x"}, {"a[65535][65535]", "1"}, {"a=b", "c"},
	} {
		f.Add(o[0], o[1])
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		r := &report{}
		values := map[string]any{"list": []any{"a", "b"}, "map": map[string]any{"a": 1}, "text": "t"}
		override(values, map[string]string{path: value}, r)
		checkRefusal(t, r.err("render"))
		for _, v := range r.found {
			if strings.Contains(value, "hunter2") && strings.Contains(v.String(), "hunter2") {
				t.Errorf("the value is told: %s", v)
			}
		}
	})
}
