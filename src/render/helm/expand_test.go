package helm

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestSyntaxErrorWithAliases has texts with aliases that are not YAML: the error
// is that of the parser, with file and line.
func TestSyntaxErrorWithAliases(t *testing.T) {
	t.Parallel()
	const broken = "a: &a x\nb: *a\nc: [\n"
	cases := map[string]struct {
		reason string
		file   string
		text   string
		want   string
	}{
		"Values":     {"in the values", "values.yaml", broken, "values.yaml:3: is not valid: did not find expected node content"},
		"Subchart":   {"in the values of a subchart", "charts/s/values.yaml", broken, "charts/s/values.yaml:3: is not valid: did not find expected node content"},
		"Metadata":   {"in the metadata", "Chart.yaml", broken, "Chart.yaml:3: is not valid: did not find expected node content"},
		"Anchor":     {"an anchor that does not exist", "values.yaml", "a: &a x\nb: *b\n", "values.yaml: is not valid: unknown anchor 'b' referenced"},
		"Definition": {"in a definition", "crds/d.yaml", broken, `c/crds/d.yaml:3: is not YAML: did not find expected node content, near "c:"`},
		"Template":   {"in the output of a template", "templates/b.yaml", broken, `c/templates/b.yaml:3: is not YAML: did not find expected node content, near "c:"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := one(configMap)
			files["charts/s/Chart.yaml"] = []byte("apiVersion: v2\nname: s\nversion: 1.0.0\n")
			files[tc.file] = []byte(tc.text)
			_, err := Renderer{}.Render(t.Context(), input(files))
			if found := nf.ViolationsOf(err); len(found) != 1 || found[0].String() != tc.want {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestExpanded checks texts that become large when their aliases are expanded,
// and that a text with a syntax error is not expanded. It measures allocations,
// so it is not parallel.
func TestExpanded(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x]\n")
	for i := range 60 {
		fmt.Fprintf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	cases := map[string]struct {
		reason string
		text   string
		want   int
	}{
		"None":   {"a text without aliases", "a: [b]\n", 0},
		"Bomb":   {"each list contains the one before twice", bomb.String(), tooMuch},
		"Broken": {"the same, with a syntax error at its end", bomb.String() + "b: [\n", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			allocated := rendertest.Allocated(func() {
				if got := expanded([]byte(tc.text)); got != tc.want {
					t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
				}
				if tc.want == 0 {
					_, err = yaml.YAMLToJSON([]byte(tc.text))
				}
			})
			if broken := hasSyntaxError([]byte(tc.text)); broken != (err != nil) {
				t.Errorf("%s: has a syntax error: %t, but its parser returns %v", tc.reason, broken, err)
			}
			if allocated > 4<<20 {
				t.Errorf("%s: takes %d KiB", tc.reason, allocated>>10)
			}
		})
	}
}
