package csar_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/csar"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {price: '$5 and $$ and ${HOME}'}\n"
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\n" +
		"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n"
)

func newRenderer() csar.Renderer {
	return csar.New(csar.Config{Manifests: manifest.New(nil), Charts: helm.New(helm.Config{})})
}

func held(files map[string]string) render.Files {
	out := make(render.Files, len(files))
	for name, content := range files {
		out[name] = []byte(content)
	}
	return out
}

func chart(name string) string {
	return string(rendertest.TarGz(map[string]string{
		name + "/Chart.yaml":           "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n",
		name + "/values.yaml":          "price: 1\n",
		name + "/templates/price.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-price}\ndata: {price: {{ .Values.price | quote }}}\n",
	}))
}

func render1(t *testing.T, files map[string]string, parameters map[string]any) ([]string, render.Output, error) {
	t.Helper()
	out, err := newRenderer().Render(t.Context(), render.Input{
		Files: held(files), Builtins: map[string]string{"namespace": "mine", "vnf_id": "v1"}, Inputs: nf.Inputs{Parameters: parameters}, Release: render.Release{Name: "r", Namespace: "mine", Revision: 1},
	})
	var names []string
	for _, g := range out.Groups {
		for _, o := range g.Objects {
			names = append(names, o.GetKind()+" "+strings.TrimPrefix(o.GetNamespace()+"/", "/")+o.GetName())
		}
	}
	return names, out, err
}

func TestFit(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		names  []string
		want   render.Fit
	}{
		"CSAR":     {"TOSCA.meta makes a CSAR", []string{"TOSCA-Metadata/TOSCA.meta", "chart/Chart.yaml"}, render.SureFit},
		"AtTop":    {"and so do a manifest and its descriptor", []string{"vnf.mf", "vnf.yaml"}, render.SureFit},
		"Metadata": {"a package of manifests may have the files of a CSAR, too", []string{"TOSCA-Metadata/TOSCA.meta", "metadata.yaml"}, render.NoFit},
		"Chart":    {"a chart is none", []string{"Chart.yaml"}, render.NoFit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := render.Files{}
			for _, name := range tc.names {
				files[name] = []byte{}
			}
			if got := newRenderer().Fit(files); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	plain := map[string]string{"Files/kubernetes/b.yaml": configMap, "Files/kubernetes/a.yaml": deployment, "Scripts/hook.py": "import os", "Files/notes.yaml": "text: none\n"}
	charted := map[string]string{"Files/kubernetes/price-0.1.0.tgz": chart("price")}
	both := map[string]string{"Files/kubernetes/price-0.1.0.tgz": chart("price"), "Files/kubernetes/cost-0.1.0.tgz": chart("cost")}
	broken := map[string]string{"Files/a.yaml": configMap, "Files/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}
	apart := map[string]string{"Files/a.yaml": deployment, "Files/b.yaml": strings.Replace(configMap, "name: settings", "name: settings, namespace: other", 1)}
	cases := map[string]struct {
		reason     string
		files      map[string]string
		parameters map[string]any
		want       []string
		wrong      string // in the error; empty: none
	}{
		"All":       {"all manifests, in the order of the list, in the instance's namespace", plain, nil, []string{"Deployment mine/web", "ConfigMap settings"}, ""},
		"Selected":  {"a request can select some of them", plain, map[string]any{csar.FilesParameter: []any{"Files/kubernetes/b.yaml"}}, []string{"ConfigMap settings"}, ""},
		"Text":      {"as one text, too", plain, map[string]any{csar.FilesParameter: "Files/kubernetes/b.yaml"}, []string{"ConfigMap settings"}, ""},
		"Working":   {"a broken alternative does not matter", broken, map[string]any{csar.FilesParameter: []any{"Files/a.yaml"}}, []string{"ConfigMap settings"}, ""},
		"Broken":    {"and fails if it is used", broken, nil, nil, "Files/b.yaml:3"},
		"Unlisted":  {"what is not an artifact is not used", plain, map[string]any{csar.FilesParameter: []any{"sample.mf"}}, nil, "is not an artifact"},
		"Absent":    {"nor what is not there", plain, map[string]any{csar.FilesParameter: []any{"../a.yaml"}}, nil, "is not an artifact"},
		"Number":    {"a path is a text", plain, map[string]any{csar.FilesParameter: []any{1.0}}, nil, "must be the path"},
		"Apart":     {"objects of several namespaces stay there", apart, nil, []string{"Deployment default/web", "ConfigMap other/settings"}, ""},
		"Chart":     {"the only chart, with the parameters as its values", charted, map[string]any{"price": 7}, []string{"ConfigMap r-price"}, ""},
		"Charts":    {"of two charts, a request selects one", both, nil, nil, csar.ChartParameter},
		"ThisChart": {"by its path", both, map[string]any{csar.ChartParameter: "Files/kubernetes/cost-0.1.0.tgz"}, []string{"ConfigMap r-price"}, ""},
		"Two":       {"an instance has one or the other", both, map[string]any{csar.ChartParameter: "x", csar.FilesParameter: "y"}, nil, "cannot be combined"},
		"NotChart":  {"a chart is an archive", plain, map[string]any{csar.ChartParameter: "Scripts/hook.py"}, nil, "neither a zip nor a gzipped tar"},
		"Nothing":   {"a CSAR may have nothing for Kubernetes", map[string]string{"Scripts/hook.py": ""}, nil, nil, "no artifact"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := render1(t, csartest.Files(tc.files), tc.parameters)
			if tc.wrong != "" && (nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.wrong)) || tc.wrong == "" && err != nil {
				t.Fatalf("%s: %v, want %q", tc.reason, err, tc.wrong)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && err == nil {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRenderExternal has an artifact that is not in the CSAR.
func TestRenderExternal(t *testing.T) {
	t.Parallel()
	files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
	const external = "https://example.org/b.yaml"
	files["sample.mf"] += "Source: " + external + "\n\nSource: https://example.org/readme.html\n"
	for reason, parameters := range map[string]map[string]any{"it is one of all": nil, "it is selected": {csar.FilesParameter: []any{external}}} {
		if _, _, err := render1(t, files, parameters); nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), external) {
			t.Errorf("%s: %v, want its name", reason, err)
		}
	}
	if got, _, err := render1(t, files, map[string]any{csar.FilesParameter: []any{"Files/a.yaml"}}); err != nil || len(got) != 1 {
		t.Errorf("another one is selected: %v, %v", got, err)
	}
}

// TestRenderLiterally has a manifest with texts that a package of manifests would
// replace.
func TestRenderLiterally(t *testing.T) {
	t.Parallel()
	_, out, err := render1(t, csartest.Files(map[string]string{"Files/a.yaml": configMap}), nil)
	if err != nil {
		t.Fatal(err)
	}
	content := out.Groups[0].Objects[0].Object["data"]
	if diff := cmp.Diff(map[string]any{"price": "$5 and $$ and ${HOME}"}, content); diff != "" {
		t.Errorf("a CSAR has no variables (-want +got):\n%s", diff)
	}
	if len(out.Warnings) > 0 {
		t.Errorf("warnings %q, want none", out.Warnings)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	files := csartest.Files(map[string]string{"Files/a.yaml": configMap, "Files/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"})
	got, err := newRenderer().Check(t.Context(), held(files))
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "Sample VNF" || got.Version != "2.1" || got.VNFD == nil || got.VNFD.ID != csartest.VNFD {
		t.Errorf("summary %+v", got)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "Files/b.yaml:3") {
		t.Errorf("warnings %q, want the fault of the one manifest", got.Warnings)
	}
	tampered := maps.Clone(files)
	tampered["Files/a.yaml"] += "# more\n"
	_, err = newRenderer().Check(t.Context(), held(tampered))
	if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].File != "Files/a.yaml" {
		t.Errorf("a tampered file: %v, want its name", err)
	}
	none, err := newRenderer().Check(t.Context(), held(csartest.Files(nil)))
	if err != nil || !slices.ContainsFunc(none.Warnings, func(w string) bool { return strings.Contains(w, "no instance") }) {
		t.Errorf("a CSAR without manifests: %v, warnings %q", err, none.Warnings)
	}
	charted, err := newRenderer().Check(t.Context(), held(csartest.Files(map[string]string{"Files/price.tgz": chart("price")})))
	if err != nil || len(charted.Variables) != 1 || charted.Variables[0].Name != "price" {
		t.Errorf("a CSAR with one chart: %v, variables %+v, want those of the chart", err, charted.Variables)
	}
}
