package helm

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// input renders files as a first revision.
func input(files render.Files) render.Input {
	return render.Input{Files: files, Release: render.Release{Name: "rel", Namespace: "ns", Revision: 1}}
}

// one makes a chart of one template.
func one(template string) render.Files {
	return render.Files{"Chart.yaml": []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"), "templates/a.yaml": []byte(template)}
}

// unasked is a lookup of a rendering that has no region.
func unasked(ctx context.Context) *lookup {
	return &lookup{meter: &meter{ctx: ctx, limit: maxWork}}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestRegionAway(t *testing.T) {
	in := input(one("{{ lookup \"v1\" \"Node\" \"\" \"\" }}"))
	in.Region = &region{Version: "v1.37.1", err: nf.E(nf.Unreachable, "reach", "region", nil)}
	if _, err := (Renderer{}).Render(t.Context(), in); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a region that is away makes the error %v", err)
	}
}

func TestLookupGivesCopies(t *testing.T) {
	object := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"k": int64(1)}}
	in := input(one("{{ $s := lookup \"v1\" \"Secret\" \"\" \"s\" }}{{ $_ := set $s.data \"k\" \"changed\" }}" + configMap + "data: {k: {{ $s.data.k }}}\n"))
	in.Region = &region{Version: "v1.37.1", Objects: []map[string]any{object}}
	out, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Groups[0].Objects[0].Object["data"].(map[string]any)["k"]; got != "changed" {
		t.Errorf("a template cannot change what it was given: %v", got)
	}
	if got := object["data"].(map[string]any)["k"]; got != int64(1) {
		t.Errorf("a template has changed what the region holds to %v", got)
	}
}

// TestRandom looks at what is never twice the same.
func TestRandom(t *testing.T) {
	charts := helmtest.Charts()
	render := func(name string) map[string]any {
		out, err := Renderer{}.Render(t.Context(), input(charts[name]))
		if err != nil {
			t.Fatal(err)
		}
		o := out.Groups[0].Objects[0].Object
		fields, _ := o["stringData"].(map[string]any)
		if fields == nil {
			fields, _ = o["data"].(map[string]any)
		}
		return fields
	}
	if one, two := render("passwords"), render("passwords"); len(one["password"].(string)) != 24 || one["password"] == two["password"] || one["id"] == two["id"] {
		t.Errorf("passwords %v and %v", one, two)
	}
	for name, value := range render("certificates") {
		text, err := base64.StdEncoding.DecodeString(value.(string))
		if err != nil || !strings.HasPrefix(string(text), "-----BEGIN ") {
			t.Errorf("%s is %q: %v", name, text, err)
		}
	}
}

func TestBig(t *testing.T) {
	out, err := Renderer{}.Render(t.Context(), input(helmtest.Charts()["big"]))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, o := range out.Groups[0].Objects {
		size += len(o.Object["data"].(map[string]any)["big"].(string))
	}
	if len(out.Groups[0].Objects) != 4 || size != 4*400_000 {
		t.Errorf("%d objects of %d bytes", len(out.Groups[0].Objects), size)
	}
}

// TestPackagedDependency has a dependency as `helm package` leaves it: an
// archive in the charts folder, in which there is another one.
func TestPackagedDependency(t *testing.T) {
	metadata := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	template := func(name string) string { return strings.Replace(configMap, "name: a", "name: "+name, 1) }
	inner := rendertest.TarGz(map[string]string{"inner/Chart.yaml": metadata("inner"), "inner/templates/a.yaml": template("inner")})
	outer := rendertest.TarGz(map[string]string{
		"outer/Chart.yaml":       metadata("outer") + "dependencies: [{name: inner, version: '*', repository: ''}]\n",
		"outer/templates/a.yaml": template("outer"), "outer/charts/inner-1.0.0.tgz": string(inner),
	})
	files := render.Files{
		"c/Chart.yaml":             []byte(metadata("c") + "dependencies: [{name: outer, version: ^1.0.0, repository: '', alias: given}]\n"),
		"c/charts/outer-1.0.0.tgz": outer, "c/charts/_ignored.tgz": []byte("x"), "c/templates/a.yaml": []byte(template("c")),
	}
	before := maps.Clone(files)
	if _, err := (Renderer{}).Check(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	out, err := Renderer{}.Render(t.Context(), input(files))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range out.Groups[0].Objects {
		got = append(got, o.File+" "+o.GetName())
	}
	slices.Sort(got)
	want := []string{"c/charts/given/charts/inner/templates/a.yaml inner", "c/charts/given/templates/a.yaml outer", "c/templates/a.yaml c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, files); diff != "" {
		t.Errorf("the input has changed (-want +got):\n%s", diff)
	}
}

func TestPackagedDependencyRefused(t *testing.T) {
	matryoshka := rendertest.TarGz(map[string]string{"x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"})
	for range maxNested + 1 {
		matryoshka = rendertest.TarGz(map[string]string{"x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "x/charts/x.tgz": string(matryoshka)})
	}
	cases := map[string]struct {
		reason  string
		archive []byte
		want    string
	}{
		"Broken":     {"what is no archive", []byte("x"), "charts/s.tgz: is neither a zip nor a gzipped tar archive"},
		"NoChart":    {"an archive without a chart", rendertest.TarGz(map[string]string{"a/b": "c"}), "charts/s.tgz: contains no chart: Chart.yaml is missing, both at the top and in each folder"},
		"Bomb":       {"an archive that unpacks to much", rendertest.TarGz(map[string]string{"s/Chart.yaml": "", "s/big": strings.Repeat("x", 20<<20)}), "charts/s.tgz: s/big: "},
		"Matryoshka": {"archives in archives", matryoshka, "is an archive in more than 8 others"},
		"Traversal":  {"a path out of the archive", rendertest.TarGz(map[string]string{"../Chart.yaml": "x"}), "charts/s.tgz: ../Chart.yaml: is a path through a parent folder"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := one(configMap)
			files["charts/s.tgz"] = tc.archive
			_, err := Renderer{}.Check(t.Context(), files)
			if nf.KindOf(err) != nf.Invalid || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPassedBy checks packages with files that are too large to be read.
func TestPassedBy(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		want   string // empty: the package is accepted
	}{
		"Beside":   {"a file beside the chart may be of any size", "disk.img", ""},
		"Template": {"a file of the chart may not, because a template can print it", "c/disk.img", "c/disk.img: is too large to be read with the chart; move it out of the chart's folder"},
		"Subchart": {"nor may a packaged dependency", "c/charts/s.tgz", "c/charts/s.tgz: is too large to be read with the chart; move it out of the chart's folder"},
		"Chart":    {"nor the chart's metadata", "c/Chart.yaml", "c/Chart.yaml: is too large to be read with the chart; move it out of the chart's folder"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := render.Files{}
			for name, content := range one(configMap) {
				files["c/"+name] = content
			}
			files[tc.file] = nil
			_, err := Renderer{}.Check(t.Context(), files)
			if (err == nil) != (tc.want == "") || err != nil && (nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestRenderIsPure(t *testing.T) {
	parameters := map[string]any{"sub": map[string]any{"list": []any{map[string]any{"a": 1.0}}}}
	in := input(one("{{ $_ := set .Values.sub \"x\" \"changed\" }}{{ $_ := set (index .Values.sub.list 0) \"a\" 2 }}" + configMap + "data: {}\n"))
	in.Inputs = nf.Inputs{Parameters: parameters, Overrides: map[string]string{"sub.list[0].b": "3"}}
	first, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"sub": map[string]any{"list": []any{map[string]any{"a": 1.0}}}}
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Errorf("the parameters have changed (-want +got):\n%s", diff)
	}
	second, err := Renderer{}.Render(t.Context(), in)
	if diff := cmp.Diff(first, second); diff != "" || err != nil {
		t.Errorf("the second time differs: %v\n%s", err, diff)
	}
}

// TestSecrets relies on every secret of the examples being called hunter2.
func TestSecrets(t *testing.T) {
	examples, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, example := range examples {
		archive, err := txtar.ParseFile(example)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			switch secret := strings.Contains(string(f.Data), "hunter2"); {
			case secret && (f.Name == "inputs.json" || f.Name == caseFile):
				given++
			case secret:
				t.Errorf("%s: the secret is in %s", example, f.Name)
			}
		}
	}
	if given < 6 {
		t.Errorf("only %d examples have a secret", given)
	}
}
