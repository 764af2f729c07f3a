package tosca_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

const entry = "Definitions/top.yaml"

// held returns the files of a descriptor in testdata.
func held(t testing.TB, name string) map[string][]byte {
	t.Helper()
	out, root := map[string][]byte{}, os.DirFS(path.Join("testdata", name))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out[name], err = fs.ReadFile(root, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func small(t *testing.T) tosca.Flavor {
	t.Helper()
	top, err := tosca.Read(held(t, "scaled"), entry)
	if err != nil {
		t.Fatal(err)
	}
	f, err := top.Flavor("small")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	t.Parallel()
	top, err := tosca.Read(held(t, "scaled"), entry)
	if err != nil {
		t.Fatal(err)
	}
	const file = "Definitions/df_small.yaml"
	got := top.Flavors["small"]
	got.Levels, got.Scripts = nil, nil
	worker := []map[string]int{{"WORKER": 1}, {"WORKER": 2}}
	want := tosca.Flavor{
		ID: "small", Description: "A firewall", NodeType: "example.Firewall", DefaultLevel: "least",
		VDUs: map[string]tosca.VDU{
			"FRONT":  {Name: "front", Description: "Accepts connections", Min: 1, Max: 1, Initial: -1, File: file, Line: 29},
			"WORKER": {Name: "fw-worker", Min: 1, Max: 9, Initial: 1, File: file, Line: 35},
		},
		Aspects: map[string]tosca.Aspect{"work": {Name: "Work", MaxLevel: 4, Steps: worker}, "still": {Name: "Still"}},
		ConnectionPoints: map[string]tosca.ConnectionPoint{
			"FRONT_CP":  {VDU: "FRONT", External: "virtual_link_external"},
			"WORKER_CP": {VDU: "WORKER", Link: "internal", Order: 1},
			"OUTSIDE":   {Link: "internal", Order: -1},
		},
		Links:     map[string]tosca.Link{"internal": {Description: "Between front and workers"}},
		Placement: []tosca.PlacementRule{{Name: "apart", Anti: true, Scope: "nfvi_node", VDUs: []string{"FRONT", "WORKER"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the flavor (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]tosca.VDU{"BIG": {Name: "BIG", Initial: -1, File: "Definitions/df_large.yaml", Line: 8}}, top.Flavors["large"].VDUs); diff != "" {
		t.Errorf("the other flavor (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`Definitions/top.yaml:6: the import "https://example.com/etsi_nfv_sol001_vnfd_types.yaml" is not in the CSAR, and is not read`,
		`Definitions/df_small.yaml:96: the policy "front_levels" has the target "GONE", which is not a VDU`,
	}, top.Warnings[:2]); diff != "" {
		t.Errorf("the warnings (-want +got):\n%s", diff)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	common := map[string]any{"region": "east", "retries": 3}
	want := map[string]tosca.Script{
		"instantiate": {Inputs: common}, "instantiate_start": {Inputs: common}, "terminate_start": {Inputs: common},
		"instantiate_end": {Artifact: "setup", Type: "tosca.artifacts.Implementation.Python", File: "Scripts/setup.py", Inputs: map[string]any{
			"region": "east", "retries": 3, "mode": "first", "nested": map[string]any{"list": []any{1, 2.5, true, "2026-01-01"}},
		}},
		"terminate_end": {Artifact: "typed-script", Type: "tosca.artifacts.Implementation.Bash", File: "Scripts/typed.sh", Inputs: common},
		"scale_end":     {Artifact: "../Scripts/plain.sh", File: "Scripts/plain.sh", Inputs: common},
	}
	if diff := cmp.Diff(want, small(t).Scripts); diff != "" {
		t.Errorf("the scripts (-want +got):\n%s", diff)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	f := small(t)
	cases := map[string]struct {
		reason string
		level  string
		want   map[string]int
		wrong  bool
	}{
		"Default": {"a request without a level has the default one", "", map[string]int{"FRONT": 1, "WORKER": 1}, false},
		"Derived": {"a level that only names aspects has the pods of their steps", "some", map[string]int{"WORKER": 1 + 1 + 2 + 2}, false},
		"Given":   {"the number of a level precedes that of its aspects", "given", map[string]int{"WORKER": 7}, false},
		"Unknown": {"another level is not one", "most", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := f.Counts(tc.level)
			v := nf.ViolationsOf(err)
			if tc.wrong != (err != nil) || tc.wrong && (len(v) != 1 || v[0].Field != "instantiation_level_id") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]int{"work": 3, "still": 0}, f.AspectLevels("some")); diff != "" {
		t.Errorf("the levels of the aspects (-want +got):\n%s", diff)
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	f := small(t)
	cases := map[string]struct {
		reason      string
		aspect      string
		from, steps int
		want        map[string]int
		wrong       bool
	}{
		"First":   {"the first step has its own delta", "work", 0, 1, map[string]int{"WORKER": 1}, false},
		"Last":    {"the last delta is repeated", "work", 1, 3, map[string]int{"WORKER": 6}, false},
		"In":      {"steps back remove what these steps add", "work", 4, -4, map[string]int{"WORKER": -7}, false},
		"None":    {"no step changes nothing", "work", 2, 0, map[string]int{}, false},
		"Above":   {"there is no level above the maximum", "work", 3, 2, nil, true},
		"Below":   {"nor below 0", "work", 1, -2, nil, true},
		"Unknown": {"an aspect has a name", "rest", 0, 1, nil, true},
		"Still":   {"an aspect may have no steps", "still", 0, 1, nil, true},
		"Many":    {"a large number does not wrap", "work", 1 << 62, 1 << 62, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := f.Delta(tc.aspect, tc.from, tc.steps)
			if tc.wrong != (nf.KindOf(err) == nf.Invalid && err != nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

const head = "tosca_definitions_version: tosca_simple_yaml_1_2\n"

// nodes returns a descriptor with node templates.
func nodes(text string) string {
	return head + "topology_template:\n  node_templates:\n    V: {type: tosca.nodes.nfv.Vdu.Compute}\n" + text
}

func TestReadRejects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"NotYAML":  {"a descriptor is YAML", head + "a: [\n", "top.yaml:2: is not YAML"},
		"Two":      {"one document", head + "---\n" + head, "must be one YAML document"},
		"NotTOSCA": {"of TOSCA", "a: b\n", "top.yaml:1: lacks tosca_definitions_version"},
		"Import":   {"an import is in the CSAR", head + "imports: [other.yaml]\n", `top.yaml:2: imports "other.yaml"`},
		"Outside":  {"and not above it", head + "imports: [../../../top.yaml]\n", "which is not in the CSAR"},
		"Number":   {"a number is one", nodes("    W: {type: tosca.nodes.nfv.Vdu.Compute, properties: {vdu_profile: {min_number_of_instances: two}}}\n"), "top.yaml:5: min_number_of_instances must be a whole number"},
		"Negative": {"of at least 0", nodes("    W: {type: tosca.nodes.nfv.Vdu.Compute, properties: {vdu_profile: {max_number_of_instances: -1}}}\n"), "must be a whole number"},
		"Profile":  {"the least is not the most", nodes("    W: {type: tosca.nodes.nfv.Vdu.Compute, properties: {vdu_profile: {min_number_of_instances: 3, max_number_of_instances: 2}}}\n"), "is greater than"},
		"Name":     {"a name is a text", nodes("    W: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: [a]}}\n"), "name must be a text"},
		"Twice":    {"a name is there once", nodes("    V: {type: tosca.nodes.nfv.Vdu.Compute}\n"), "V"},
		"Default":  {"the default level is one", nodes("  policies: [{l: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {a: {}}, default_level: b}}}]\n"), `default_level "b"`},
		"Script": {
			"a script is in the CSAR", nodes("    N: {type: tosca.nodes.nfv.VNF, interfaces: {Vnflcm: {scale_end: {implementation: ../../x.sh}}}}\n"),
			`the script "../../x.sh" is not in the CSAR`,
		},
		"Aliases": {"aliases do not make a descriptor large", head + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + bomb(), "more than"},
		"Itself":  {"nor endless", head + "a: &a [*a]\n", "top.yaml"},
		"Deep":    {"nor deep", head + "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "\n", "more than"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tosca.Read(map[string][]byte{entry: []byte(tc.text)}, entry)
			if nf.KindOf(err) != nf.Invalid || err == nil || !strings.Contains(err.Error(), tc.want) || nf.ViolationsOf(err)[0].File != entry {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestReadWarns has parts that Tacker ignores.
func TestReadWarns(t *testing.T) {
	t.Parallel()
	text := nodes("    C: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: X, virtual_link: V]}\n" +
		"  policies:\n    - d: {type: tosca.policies.nfv.VduScalingAspectDeltas, targets: [V], properties: {aspect: gone, deltas: {one: {number_of_instances: 1}}}}\n")
	top, err := tosca.Read(map[string][]byte{entry: []byte(text)}, entry)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		`Definitions/top.yaml:5: the connection point "C" is bound to "X", which is not a VDU`,
		`Definitions/top.yaml:5: the connection point "C" has the link "V", which is not a virtual link of the VNF`,
	}, top.Warnings); diff != "" {
		t.Errorf("the warnings (-want +got):\n%s", diff)
	}
}

func bomb() string {
	var b strings.Builder
	for _, c := range "abcdefgh" {
		name := string(c)
		b.WriteString(name + "1: &" + name + "1 [" + strings.Repeat("*a0, ", 9) + "*a0]\n")
	}
	b.WriteString("all: &all [" + strings.Repeat("*a1, *b1, *c1, ", 50) + "*a1]\nmore: [" + strings.Repeat("*all, ", 50) + "*all]\n")
	return b.String()
}

// TestReadSingle reads a descriptor that does not name its flavor.
func TestReadSingle(t *testing.T) {
	t.Parallel()
	top, err := tosca.Read(map[string][]byte{entry: []byte(nodes(""))}, entry)
	if err != nil {
		t.Fatal(err)
	}
	f, err := top.Flavor("")
	if err != nil || f.ID != tosca.DefaultFlavor || f.VDUs["V"].Name != "V" {
		t.Errorf("flavor %+v: %v", f, err)
	}
	if counts, err := f.Counts(""); err != nil || len(counts) > 0 {
		t.Errorf("a flavor without levels: %v, %v", counts, err)
	}
	if _, err := top.Flavor("x"); nf.KindOf(err) != nf.Invalid || nf.ViolationsOf(err)[0].Field != "flavour_id" {
		t.Errorf("an unknown flavor: %v", err)
	}
	if top, err := tosca.Read(map[string][]byte{entry: []byte(head)}, entry); err != nil || len(top.Flavors) > 0 {
		t.Errorf("a descriptor without VDUs: %+v, %v", top, err)
	}
}

// FuzzRead reads any text: it returns, and its errors name a file.
func FuzzRead(f *testing.F) {
	base := held(f, "scaled")
	for name, content := range base {
		if strings.HasSuffix(name, ".yaml") {
			f.Add(string(content))
		}
	}
	f.Add(nodes("    C: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_link: V]}\n"))
	f.Add(head + "a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		files := maps.Clone(base)
		files["Definitions/df_small.yaml"] = []byte(text)
		top, err := tosca.Read(files, entry)
		for _, v := range nf.ViolationsOf(err) {
			if v.File == "" || v.Message == "" {
				t.Errorf("violation %+v", v)
			}
		}
		for _, flavor := range top.Flavors {
			for level := range flavor.Levels {
				flavor.AspectLevels(level)
				for _, count := range flavor.Levels[level].Counts {
					if count < 0 {
						t.Errorf("level %q has %d pods", level, count)
					}
				}
			}
		}
	})
}
