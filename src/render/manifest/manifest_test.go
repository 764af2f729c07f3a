package manifest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// Read by rendertest.Run.
var _ = flag.Bool("update", false, "rewrite the examples in testdata")

func TestExamples(t *testing.T) { rendertest.Run(t, Renderer{}, "testdata") }

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
			case secret && f.Name == "inputs.json":
				given++
			case secret:
				t.Errorf("%s: the secret is in %s", example, f.Name)
			}
		}
	}
	if given < 4 {
		t.Errorf("only %d examples have a secret", given)
	}
}

// pkg makes a package of one file, m.yaml unless another is named.
func pkg(content string, name ...string) render.Files {
	file := append(name, "m.yaml")[0]
	return render.Files{"metadata.yaml": []byte("resources: [{manifest: " + file + "}]"), file: []byte(content)}
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestBounds(t *testing.T) {
	bomb := "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		alias := fmt.Sprintf("*a%d", i)
		bomb += fmt.Sprintf("b%d: &a%d [%s]\n", i, i+1, strings.Repeat(alias+",", 9)+alias)
	}
	fields := "a: &a {"
	for i := range 1000 {
		fields += fmt.Sprintf("k%d: 1, ", i)
	}
	merges := fields + "}\nb: {<<: [" + strings.Repeat("*a,", 1000) + "*a]}\n"
	deepAlias := "a: &a0 [x]\n"
	for i := range 250 {
		deepAlias += fmt.Sprintf("b%d: &a%d [*a%d]\n", i, i+1, i)
	}
	half := "data: [&a " + strings.Repeat("x", 1<<16) + strings.Repeat(", *a", 260) + "]"
	many := render.Files{"metadata.yaml": []byte("resources: [{manifest: [a.yaml, b.yaml]}]")}
	for _, name := range []string{"a", "b"} {
		many[name+".yaml"] = []byte(strings.Replace(head, "a}", name+"}", 1) + half)
	}
	const tooLarge = "makes the package too large, its aliases written out"
	texts := "a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a,", 512) + "]\n"
	cases := map[string]struct {
		reason string
		files  render.Files
		want   nf.Violation
	}{
		"aliases":    {"aliases of aliases", pkg(head + bomb), nf.Violation{Line: 1, Message: tooLarge}},
		"merges":     {"one mapping merged often", pkg(head + merges), nf.Violation{Line: 1, Message: tooLarge}},
		"texts":      {"one long text often", pkg(head + texts), nf.Violation{Line: 1, Message: tooLarge}},
		"files":      {"all files together", many, nf.Violation{File: "b.yaml", Line: 1, Message: tooLarge}},
		"deep":       {"deep nesting", pkg(head + "data: " + strings.Repeat("[", 300) + strings.Repeat("]", 300)), nf.Violation{Line: 1, Message: "is nested more than 200 deep"}},
		"deep alias": {"deep nesting by aliases", pkg(head + deepAlias), nf.Violation{Line: 1, Message: "is nested more than 200 deep"}},
		"deep json":  {"deep nesting that need not even be closed", pkg(strings.Repeat("[", 1<<17), "m.json"), nf.Violation{File: "m.json", Line: 1, Message: "is not JSON: it is nested too deep"}},
		"large":      {"a large file", pkg(head + strings.Repeat("#", maxFile)), nf.Violation{Message: "has more than 4194304 bytes"}},
		"utf-8":      {"broken text", pkg("{\"a\": \"\xff\"}", "m.json"), nf.Violation{File: "m.json", Line: 1, Message: "is not UTF-8"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Renderer{}.Check(t.Context(), tc.files)
			if tc.want.File == "" {
				tc.want.File = "m.yaml"
			}
			if diff := cmp.Diff(nf.Violations{tc.want}, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
			}
		})
	}
}

func TestValuesAreBounded(t *testing.T) {
	in := render.Input{
		Files:  pkg(head + "data:\n" + strings.Repeat("- $big\n- a$big\n", 60)),
		Inputs: nf.Inputs{Parameters: map[string]any{"big": strings.Repeat("x", 1<<20)}},
	}
	_, err := Renderer{}.Render(t.Context(), in)
	want := nf.Violations{{File: "m.yaml", Line: 68, Message: "brings the values with variables to more than 67108864 bytes"}}
	if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" {
		t.Errorf("a small package cannot make gigabytes of its inputs (-want +got):\n%s", diff)
	}
}

func TestViolationsAreCapped(t *testing.T) {
	_, err := Renderer{}.Render(t.Context(), render.Input{Files: pkg(head + "data:\n" + strings.Repeat("- $none\n", 70))})
	found := nf.ViolationsOf(err)
	if len(found) != maxShown+1 || found[maxShown].Message != "and 20 more" {
		t.Errorf("%d violations, want %d and one that counts the rest: %v", len(found), maxShown, found[len(found)-1])
	}
	out, err := Renderer{}.Render(t.Context(), render.Input{Files: pkg(head + "data: |\n" + strings.Repeat("  $a $b\n", 70))})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Warnings) != 2 {
		t.Errorf("one scalar has %d warnings for two variables", len(out.Warnings))
	}
}

func TestRenderIsPure(t *testing.T) {
	shared := map[string]any{"labels": map[string]any{"a": "b"}, "n": 1, "f": float32(0.5)}
	in := render.Input{
		Files:  pkg(head + "one: $shared\ntwo: $shared\nthree: &x {a: b}\nfour: *x\n"),
		Inputs: nf.Inputs{Parameters: map[string]any{"shared": shared}},
	}
	first, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	content := first.Groups[0].Objects[0].Object
	want := map[string]any{"labels": map[string]any{"a": "b"}, "n": int64(1), "f": 0.5}
	if diff := cmp.Diff(want, content["one"]); diff != "" {
		t.Errorf("values have the types of unstructured objects (-want +got):\n%s", diff)
	}
	content["one"].(map[string]any)["labels"].(map[string]any)["a"] = "changed"
	content["three"].(map[string]any)["a"] = "changed"
	if diff := cmp.Diff(want, content["two"]); diff != "" {
		t.Errorf("a variable's value is not shared (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": "b"}, content["four"]); diff != "" {
		t.Errorf("an alias's value is not shared (-want +got):\n%s", diff)
	}
	second, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, second.Groups[0].Objects[0].Object["one"]); diff != "" {
		t.Errorf("the input is not changed by the output (-want +got):\n%s", diff)
	}
}

func TestRenderHeedsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Renderer{}).Render(ctx, render.Input{Files: pkg(head)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled rendering returns %v", err)
	}
}

func TestInputsThatAreNotJSON(t *testing.T) {
	in := render.Input{Files: pkg(head), Inputs: nf.Inputs{Parameters: map[string]any{"f": func() {}}}}
	_, err := Renderer{}.Render(t.Context(), in)
	if diff := cmp.Diff(nf.Violations{{Field: "parameters", Message: "are not JSON"}}, nf.ViolationsOf(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOverridesAreRefused(t *testing.T) {
	t.Parallel()
	in := render.Input{Files: render.Files{
		"metadata.yaml": []byte("resources:\n- configmap: [a.yaml]\n"), "a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
	}, Inputs: nf.Inputs{Overrides: map[string]string{"a": "b"}}}
	_, err := Renderer{}.Render(t.Context(), in)
	if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].Field != "set" {
		t.Errorf("what only charts have gives %v", err)
	}
}
