package helm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
)

// record is a release as Helm writes it.
func record(t *testing.T, status string, change ...func(map[string]any)) map[string]any {
	t.Helper()
	content := map[string]any{
		"name": "web", "version": 2, "namespace": "ns", "info": map[string]any{"status": status},
		"chart":  map[string]any{"metadata": map[string]any{"name": "app", "version": "1.0.0"}, "templates": []any{}},
		"config": map[string]any{"replicas": 3, "db": map[string]any{"password": "hunter2"}},
		"manifest": "---\n# Source: app/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  drawn: x7Ky\n" +
			"---\n# Source: app/templates/b.yaml\napiVersion: v1\nkind: Service\nmetadata:\n  name: b\n  annotations: {helm.sh/resource-policy: keep}\nspec: {ports: [{port: 80}]}\n",
		"hooks": []any{map[string]any{"path": "app/templates/h.yaml",
			"manifest": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: h\n  annotations: {helm.sh/hook: pre-upgrade}\n"}},
	}
	for _, c := range change {
		c(content)
	}
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return secretOf("web", "2", base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))))
}

func secretOf(name, version, data string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"owner": "helm", "name": name, "version": version}},
		"data":     map[string]any{"release": data},
	}
}

// secrets is a region with nothing but Secrets in it.
type secrets []any

func (secrets) Capabilities(context.Context) (nf.Capabilities, error) {
	return nf.Capabilities{}, nil
}

func (s secrets) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	if ref.Kind != "Secret" || ref.Namespace != "ns" {
		return nil, nil
	}
	return map[string]any{"items": []any(s)}, nil
}

func appOf(name string) render.Files {
	return render.Files{
		"app/Chart.yaml":           []byte("apiVersion: v2\nname: " + name + "\nversion: 1.1.0\n"),
		"app/templates/a.yaml":     []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {drawn: {{ randAlphaNum 4 | quote }}}\n"),
		"app/crds/definition.yaml": []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.org}\n"),
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	in := render.Input{Files: appOf("app"), Release: render.Release{Name: "web", Namespace: "ns"}, Region: secrets{
		secretOf("web", "1", "an old one is not read"), record(t, "deployed"), secretOf("other", "9", "nor another's"),
	}}
	out, inputs, selector, err := helm.Renderer{}.Released(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, g := range out.Groups {
		for _, o := range g.Objects {
			got[o.GetKind()+" "+o.GetName()] = map[string]any{"file": o.File, "keep": o.Keep, "shared": o.Shared, "data": o.Object["data"]}
		}
	}
	want := map[string]any{
		"ConfigMap a": map[string]any{"file": "app/templates/a.yaml", "keep": false, "shared": false, "data": map[string]any{"drawn": "x7Ky"}},
		"Service b":   map[string]any{"file": "app/templates/b.yaml", "keep": true, "shared": false, "data": nil},
		"CustomResourceDefinition things.example.org": map[string]any{"file": "app/crds/definition.yaml", "keep": false, "shared": true, "data": nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was released is what is read, not what would be rendered (-want +got)\n%s", diff)
	}
	if len(out.Hooks) != 1 || out.Hooks[0].Events[0] != nf.PreUpgrade || out.Hooks[0].File != "app/templates/h.yaml" {
		t.Errorf("the hooks are %+v", out.Hooks)
	}
	if diff := cmp.Diff(nf.Inputs{Parameters: map[string]any{"replicas": int64(3), "db": map[string]any{"password": "hunter2"}}}, inputs); diff != "" {
		t.Errorf("its inputs (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"password"}, out.Sensitive); diff != "" {
		t.Errorf("the names of its secrets (-want +got)\n%s", diff)
	}
	marks := map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "ns"}
	if !maps.Equal(marks, selector.Annotations) || len(selector.Labels) != 0 {
		t.Errorf("the claim is %+v", selector)
	}
	if !strings.Contains(strings.Join(out.Warnings, "\n"), "1.0.0") {
		t.Errorf("that the package has another version is not told: %q", out.Warnings)
	}
}

// TestReleasedSubcharts checks that only the definitions of subcharts that Helm
// has installed are read, and that the notes are.
func TestReleasedSubcharts(t *testing.T) {
	t.Parallel()
	const own, sub = "things.example.org", "others.example.org"
	cases := map[string]struct {
		reason string
		config map[string]any // of the release
		want   []string
	}{
		"Enabled":  {"the chart's values enable the subchart", nil, []string{own, sub}},
		"Disabled": {"the release's values disable it", map[string]any{"sub": map[string]any{"enabled": false}}, []string{own}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := appOf("app")
			files["app/Chart.yaml"] = append(files["app/Chart.yaml"], "dependencies: [{name: sub, version: '*', repository: '', condition: sub.enabled}]\n"...)
			files["app/values.yaml"] = []byte("sub: {enabled: true}\n")
			files["app/charts/sub/Chart.yaml"] = []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")
			files["app/charts/sub/crds/other.yaml"] = []byte(strings.Replace(string(files["app/crds/definition.yaml"]), own, sub, 1))
			in := render.Input{Files: files, Release: render.Release{Name: "web", Namespace: "ns"}, Region: secrets{record(t, "deployed", func(c map[string]any) {
				c["config"] = tc.config
				c["info"] = map[string]any{"status": "deployed", "notes": "\nOpen port 80.\n"}
			})}}
			out, _, _, err := helm.Renderer{}.Released(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range out.Groups[0].Objects {
				got = append(got, o.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if out.Notes != "Open port 80." {
				t.Errorf("%s: the notes are %q", tc.reason, out.Notes)
			}
		})
	}
}

func TestReleasedRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		region render.Region
		chart  string
		kind   nf.Kind
		says   string
	}{
		"Absent":    {"there must be such a release", secrets{}, "app", nf.NotFound, "namespace ns"},
		"Nowhere":   {"there must be a region", nil, "app", nf.Unsupported, "the region is not available"},
		"Pending":   {"one that is being changed is let alone", secrets{record(t, "pending-upgrade")}, "app", nf.Conflict, "pending-upgrade"},
		"Other":     {"it must be of the package's chart", secrets{record(t, "deployed")}, "other", nf.Conflict, `"app"`},
		"Broken":    {"its record must be one", secrets{secretOf("web", "1", "%%")}, "app", nf.Invalid, "base64"},
		"BrokenIn":  {"all the way down", secrets{secretOf("web", "1", base64.StdEncoding.EncodeToString([]byte("%%")))}, "app", nf.Invalid, "within"},
		"NotJSON":   {"likewise", secrets{secretOf("web", "1", base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("x")))))}, "app", nf.Invalid, "JSON"},
		"Dense":     {"it must not be more than it seems", secrets{record(t, "deployed", func(c map[string]any) { c["config"] = map[string]any{"a": make([]any, 300_000)} })}, "app", nf.TooLarge, "parts"},
		"NotTable":  {"its values must be a table", secrets{record(t, "deployed", func(c map[string]any) { c["config"] = "x" })}, "app", nf.Invalid, "JSON"},
		"NotObject": {"what it lists must be objects", secrets{record(t, "deployed", func(c map[string]any) { c["manifest"] = "---\nkind: ConfigMap\n" })}, "app", nf.Invalid, "apiVersion"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := render.Input{Files: appOf(tc.chart), Release: render.Release{Name: "web", Namespace: "ns"}, Region: tc.region}
			_, _, _, err := helm.Renderer{}.Released(t.Context(), in)
			if nf.KindOf(err) != tc.kind || err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
