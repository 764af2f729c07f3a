// Package rendertest tests renderers by example, builds archives for the tests
// of other packages, and measures how much memory hostile input takes.
//
// An example is a .txtar file with the files of a package, the inputs and the
// expected output. The package contains nothing that the service itself needs.
package rendertest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The sections of an example that are not files of the package.
const (
	inputsFile = "inputs.json"
	wantYAML   = "want.yaml" // objects, groups, warnings and sensitive names
	wantError  = "want.err"  // the violations, one on a line
)

// inputs are the inputs of an example.
type inputs struct {
	Builtins   map[string]string `json:"builtins"`
	Parameters map[string]any    `json:"parameters"`
	OOF        []map[string]any  `json:"oof_parameters"`
	Network    map[string]any    `json:"network_parameters"`
}

// Run checks and renders every example in a folder, and compares the result
// with its want.yaml or want.err. The comment at the top of an example says
// what it is for. If the test binary has a boolean flag -update and it is set,
// Run rewrites the examples instead.
func Run(t *testing.T, r render.Renderer, dir string) {
	t.Helper()
	examples, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples in %s: %v", dir, err)
	}
	for _, example := range examples {
		t.Run(strings.TrimSuffix(filepath.Base(example), ".txtar"), func(t *testing.T) { run(t, r, example) })
	}
}

func run(t *testing.T, r render.Renderer, example string) {
	archive, err := txtar.ParseFile(example)
	if err != nil {
		t.Fatal(err)
	}
	in, want, rest := split(t, archive)
	name, got := wantYAML, ""
	summary, err := r.Check(t.Context(), in.Files)
	var out render.Output
	if err == nil {
		out, err = r.Render(t.Context(), in)
	}
	if err != nil {
		name, got = wantError, errorText(err)
	} else {
		got = outputText(t, summary, out)
	}
	if update() {
		archive.Files = append(rest, txtar.File{Name: name, Data: []byte(got)})
		if err := os.WriteFile(example, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want[name], got); diff != "" || len(want) != 1 {
		t.Errorf("%s%s wants %d sections; in %s (-want +got):\n%s", archive.Comment, example, len(want), name, diff)
	}
}

// split separates an example into its input and its expected output. rest is
// everything except the latter.
func split(t *testing.T, archive *txtar.Archive) (in render.Input, want map[string]string, rest []txtar.File) {
	in.Files, want = render.Files{}, map[string]string{}
	for _, f := range archive.Files {
		if f.Name == wantYAML || f.Name == wantError {
			want[f.Name] = string(f.Data)
			continue
		}
		rest = append(rest, f)
		if f.Name != inputsFile {
			in.Files[f.Name] = f.Data
			continue
		}
		var i inputs
		if err := json.Unmarshal(f.Data, &i); err != nil {
			t.Fatalf("%s: %v", inputsFile, err)
		}
		in.Builtins = i.Builtins
		in.Inputs = nf.Inputs{Parameters: i.Parameters, OOF: i.OOF, Network: i.Network}
	}
	return in, want, rest
}

func update() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func errorText(err error) string {
	var b strings.Builder
	for _, v := range nf.ViolationsOf(err) {
		fmt.Fprintln(&b, v)
	}
	if b.Len() == 0 || nf.KindOf(err) != nf.Invalid {
		fmt.Fprintf(&b, "%s: %v\n", nf.KindOf(err), err)
	}
	return b.String()
}

// outputText formats all of a rendering. Parts that are not objects become YAML
// comments.
func outputText(t *testing.T, summary render.Summary, out render.Output) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# package %q version %q: %s\n", summary.Name, summary.Version, summary.Description)
	if len(summary.Namespaces) > 0 {
		fmt.Fprintf(&b, "# opens namespaces %s\n", strings.Join(summary.Namespaces, ", "))
	}
	for _, v := range summary.Variables {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "# variable %s\n", text)
	}
	for _, name := range out.Sensitive {
		fmt.Fprintf(&b, "# sensitive %s\n", name)
	}
	for _, warning := range out.Warnings {
		fmt.Fprintf(&b, "# warning %s\n", warning)
	}
	for line := range strings.Lines(out.Notes) {
		fmt.Fprintf(&b, "# notes: %s\n", strings.TrimSuffix(line, "\n"))
	}
	for _, c := range out.Networks {
		text, err := json.Marshal(c.Attachment)
		if err != nil {
			t.Fatal(err)
		}
		v := c.Violation("workload", "")
		fmt.Fprintf(&b, "# %s:%d: %s: %s\n", v.File, v.Line, c.At.Field, text)
	}
	for _, use := range out.Volumes {
		v := use.At.Violation("volume", "")
		fmt.Fprintf(&b, "# %s:%d: %s: %s for the claim %s\n", v.File, v.Line, use.At.Field, use.Volume, use.Claim)
	}
	for _, c := range out.Clusters {
		text, err := json.Marshal(c.WorkloadCluster)
		if err != nil {
			t.Fatal(err)
		}
		v := c.At.Violation("cluster", "")
		fmt.Fprintf(&b, "# %s:%d: %s: %s\n", v.File, v.Line, c.At.Field, text)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Profiles)) {
		text, err := json.Marshal(out.Profiles[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "# compute profile %s: %s\n", name, text)
	}
	for _, g := range out.Groups {
		fmt.Fprintf(&b, "# group %q after %q wait %q timeout %s%s\n", g.Name, g.After, g.Wait, g.Timeout, recreate(g))
		for _, o := range g.Objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "---\n# %s:%d\n%s", o.File, o.Line, text)
		}
	}
	return b.String()
}

func recreate(g render.Group) string {
	if g.Recreate == "" {
		return ""
	}
	return " recreate " + string(g.Recreate)
}
