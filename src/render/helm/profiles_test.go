package helm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// withProfiles returns a chart whose Chart.yaml has the annotation.
func withProfiles(text string) render.Files {
	files := one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	files["Chart.yaml"] = fmt.Appendf(nil, "apiVersion: v2\nname: c\nversion: 1.0.0\nannotations:\n  k8splugin.io/compute-profiles: %q\n", text)
	return files
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	many := &strings.Builder{}
	for i := range nf.MaxProfiles + 1 {
		fmt.Fprintf(many, "p%d: {}\n", i)
	}
	cases := map[string]struct {
		reason string
		text   string
		want   map[string]nf.ComputeProfile
		fails  string // in the error; empty: none
	}{
		"none":    {"a chart need not declare any", "", nil, ""},
		"two":     {"they have names", "small: {requests: {cpu: 500m}}\nlarge:\n  devices: {nvidia.com/gpu: 2}\n  node: {fast: true}\n  spread: node\n", map[string]nf.ComputeProfile{"small": {Requests: map[string]string{"cpu": "500m"}}, "large": {Devices: map[string]int64{"nvidia.com/gpu": 2}, Node: map[string]string{"fast": "true"}, Spread: nf.SpreadNodes}}, ""},
		"list":    {"a list has no names", "- {}", nil, "annotations.k8splugin.io/compute-profiles: must be a mapping"},
		"syntax":  {"it is YAML", "a: [", nil, "must be a mapping of names to compute profiles: "},
		"twice":   {"a name is unique", "a: {}\na: {}", nil, "must be a mapping"},
		"alias":   {"an alias could make a text large", "a: &x {}\nb: *x", nil, "has aliases"},
		"name":    {"a flavor has another name", "k8s-x: {}", nil, "annotations.k8splugin.io/compute-profiles: "},
		"field":   {"the field is named", "a: {requests: {gpu: 1}}", nil, "annotations.k8splugin.io/compute-profiles.a.requests.gpu: unknown key"},
		"scalar":  {"a profile is a mapping", "a: 5", nil, "annotations.k8splugin.io/compute-profiles.a: must be an object"},
		"many":    {"there are not too many", many.String(), nil, "has more than"},
		"too big": {"nor are they too large", "a: {} #" + strings.Repeat("x", maxProfilesText), nil, "bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := withProfiles(tc.text)
			_, checked := Renderer{}.Check(t.Context(), files)
			out, err := Renderer{}.Render(t.Context(), input(files))
			if tc.fails != "" {
				for verb, err := range map[string]error{"check": checked, "render": err} {
					if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "Chart.yaml") || !strings.Contains(err.Error(), tc.fails) {
						t.Errorf("%s: %s: %v", tc.reason, verb, err)
					}
				}
				return
			}
			if diff := cmp.Diff(tc.want, out.Profiles); diff != "" || err != nil || checked != nil {
				t.Errorf("%s: %v, %v (-want +got):\n%s", tc.reason, err, checked, diff)
			}
		})
	}
}

// FuzzProfiles reads annotations: each is rejected, or yields names that a request can use.
func FuzzProfiles(f *testing.F) {
	for _, text := range []string{"a: {}", "a: {requests: {cpu: 1}}", "a: &b [*b]", "- x", "\x00", "{", "a: 1e999", "? [a]: b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &report{}
		c := &chart.Chart{Metadata: &chart.Metadata{Annotations: map[string]string{profilesAnnotation: text}}}
		for name := range profiles(c, r) {
			if fault := nf.CheckProfileName(name); fault != "" {
				t.Errorf("%q: %s", name, fault)
			}
		}
	})
}
