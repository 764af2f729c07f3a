package helm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// definition returns a CustomResourceDefinition. The annotations are those of a
// hook, or empty.
func definition(name, group, annotations string) string {
	return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s, annotations: {%s}}\nspec: {group: %s}\n", name, annotations, group)
}

// TestDefinitionsOnce checks charts that contain a definition several times.
func TestDefinitionsOnce(t *testing.T) {
	t.Parallel()
	const (
		same     = "things.example.org"
		metadata = "apiVersion: v2\nname: %s\nversion: 1.0.0\n"
		aliases  = "dependencies:\n- {name: s, version: 1.0.0, repository: '', alias: a}\n- {name: s, version: 1.0.0, repository: '', alias: b}\n"
	)
	cases := map[string]struct {
		reason   string
		files    map[string]string // in addition to those of the subcharts s and u
		want     []string
		warnings []string
	}{
		"Aliases": {
			"two aliases of a subchart bring the same file",
			map[string]string{"Chart.yaml": fmt.Sprintf(metadata, "c") + aliases, "charts/s/crds/d.yaml": definition(same, "a", "")},
			[]string{"c/charts/a/crds/d.yaml:1 " + same}, nil,
		},
		"Subcharts": {
			"two subcharts bring the same definition",
			map[string]string{"charts/s/crds/d.yaml": definition(same, "a", ""), "charts/u/crds/e.yaml": "# a copy\n" + definition(same, "a", "")},
			[]string{"c/charts/s/crds/d.yaml:1 " + same}, nil,
		},
		"Different": {
			"the first one counts, and another content is reported",
			map[string]string{"crds/d.yaml": definition(same, "a", ""), "charts/u/crds/e.yaml": definition(same, "b", "")},
			[]string{"c/crds/d.yaml:1 " + same},
			[]string{`c/charts/u/crds/e.yaml:1: CustomResourceDefinition "things.example.org" is ignored, because c/crds/d.yaml:1 defines it with other content`},
		},
		"Hook": {
			"a definition of Helm 2 may also be in the folder",
			map[string]string{"crds/d.yaml": definition(same, "a", ""), "templates/d.yaml": definition(same, "a", "helm.sh/hook: crd-install")},
			[]string{"c/crds/d.yaml:1 " + same},
			[]string{`c/templates/d.yaml:1: CustomResourceDefinition "things.example.org" is ignored, because c/crds/d.yaml:1 defines it with other content`},
		},
		"Others": {
			"definitions with other names remain",
			map[string]string{"charts/s/crds/d.yaml": definition(same, "a", ""), "charts/u/crds/e.yaml": definition("others.example.org", "a", "")},
			[]string{"c/charts/s/crds/d.yaml:1 " + same, "c/charts/u/crds/e.yaml:1 others.example.org"}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := one(configMap)
			for _, subchart := range []string{"s", "u"} {
				files["charts/"+subchart+"/Chart.yaml"] = fmt.Appendf(nil, metadata, subchart)
			}
			for path, content := range tc.files {
				files[path] = []byte(content)
			}
			out, err := Renderer{}.Render(t.Context(), input(files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range out.Groups[0].Objects {
				got = append(got, fmt.Sprintf("%s:%d %s", o.File, o.Line, o.GetName()))
				if !o.Shared {
					t.Errorf("%s: %s is not shared", tc.reason, o.GetName())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: definitions (-want +got)\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, out.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got)\n%s", tc.reason, diff)
			}
			if _, err := render.Order(out.Groups, "ns"); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
