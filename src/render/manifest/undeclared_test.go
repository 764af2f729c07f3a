package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestUndeclared holds what is said of references to variables that the package
// does not declare, at an upload as well as with a request.
func TestUndeclared(t *testing.T) {
	const dollar = "; write $$ for a dollar sign"
	cases := map[string]struct {
		reason   string
		data     string // begins at line 5 of a.yaml
		asJSON   bool   // data is the value of a text in a.json instead
		wrong    string
		warnings []string
	}{
		"plain":       {"a value that is nothing but an unknown variable is a mistake", "a: $replica", false, "a.yaml:5: $replica is not declared (did you mean $replicas?)" + dollar, nil},
		"quoted":      {"in quotes, too", `a: "${replica}"`, false, "a.yaml:5: ${replica} is not declared (did you mean ${replicas}?)" + dollar, nil},
		"single":      {"in either kind", "a: '$replica'", false, "a.yaml:5: $replica is not declared (did you mean $replicas?)" + dollar, nil},
		"json":        {"and in JSON", "$replica", true, "a.json:1: $replica is not declared (did you mean $replicas?)" + dollar, nil},
		"path":        {"a path does not make it known", "a: ${replica.first}", false, "a.yaml:5: ${replica} is not declared (did you mean ${replicas}?)" + dollar, nil},
		"default":     {"neither does a default", "a: ${replica:-3}", false, "a.yaml:5: ${replica} is not declared (did you mean ${replicas}?)" + dollar, nil},
		"key":         {"a key is a value", "$replica: a", false, "a.yaml:5: $replica is not declared (did you mean $replicas?)" + dollar, nil},
		"argument":    {"no shell expands an argument: $(HOME) would be replaced by Kubernetes", `args: ["${HOME}"]`, false, "a.yaml:5: ${HOME} is not declared" + dollar, nil},
		"once":        {"the kind is not complained of as well", "---\napiVersion: v1\nkind: $knd\nmetadata: {name: b}", false, "a.yaml:7: $knd is not declared" + dollar, nil},
		"in a text":   {"inside a longer text it may be meant", "a: b-$replica", false, "", []string{"a.yaml:5: $replica is not declared (did you mean $replicas?)" + dollar}},
		"in JSON":     {"inside a longer text it may be meant", "b-$replica", true, "", []string{"a.json:1: $replica is not declared (did you mean $replicas?)" + dollar}},
		"case":        {"a variable has one spelling", "a: b-$ReplicaS", false, "", []string{"a.yaml:5: $ReplicaS is not declared (did you mean $replicas?)" + dollar}},
		"underscore":  {"with underscores, too", "a: b-$dbName", false, "", []string{"a.yaml:5: $dbName is not declared (did you mean $db_name?)" + dollar}},
		"built-in":    {"the service's own variables are meant as often", "a: b-$nmaespace", false, "", []string{"a.yaml:5: $nmaespace is not declared (did you mean $namespace?)" + dollar}},
		"far":         {"nothing is near", "a: b ${pwd}", false, "", []string{"a.yaml:5: ${pwd} is not declared" + dollar}},
		"in default":  {"a default changes nothing", "a: b ${pwd:-x}", false, "", []string{"a.yaml:5: ${pwd} is not declared" + dollar}},
		"one line":    {"a script in one line is a text like any", `command: [sh, -c, "echo $HOME"]`, false, "", []string{"a.yaml:5: $HOME is not declared" + dollar}},
		"repeated":    {"of one text each is told once", "a: b $x $x ${y}", false, "", []string{"a.yaml:5: $x is not declared" + dollar, "a.yaml:5: ${y} is not declared" + dollar}},
		"others":      {"what is no reference stays as it is", `a: ["$1", "$(HOME)", "$$HOME", "$", "${x%y}", "5$"]`, false, "", nil},
		"script":      {"a text of several lines has variables of its own", "a: |\n  for i in $ITEMS ${HOME} $1 $(date); do echo ${i:-none} $PATH; done", false, "", nil},
		"script text": {"however it is written", `a: "echo $HOME\necho $PATH"`, false, "", nil},
		"JSON script": {"and in JSON", `echo $HOME\n`, true, "", nil},
		"environment": {"upper case is that of the environment", "a: |\n  echo $REPLICAS ${DB_NAME}", false, "", nil},
		"misspelt":    {"a text of several lines may have the package's variables, too", "a: |\n  x\n  replicas = $replica", false, "", []string{"a.yaml:7: $replica is not declared (did you mean $replicas?)" + dollar}},
		"folded":      {"whose lines are not those of the file when it is folded", "a: >\n  x\n  replicas = $replica", false, "", []string{"a.yaml:5: $replica is not declared (did you mean $replicas?)" + dollar}},
		"alone":       {"there, a variable alone is no error", "a: |-\n  $HOME\nb: |-\n  $replica", false, "", []string{"a.yaml:8: $replica is not declared (did you mean $replicas?)" + dollar}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := render.Files{
				"metadata.yaml": []byte("variables: {replicas: {default: 1}, db_name: {default: a}}\nresources: [{manifest: a.yaml}]"),
				"a.yaml":        []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nused: $replicas $db_name\n" + tc.data + "\n"),
			}
			if tc.asJSON {
				files["metadata.yaml"] = []byte(strings.ReplaceAll(string(files["metadata.yaml"]), ".yaml", ".json"))
				files["a.json"] = []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "used": "$replicas $db_name", "a": "` + tc.data + `"}`)
				delete(files, "a.yaml")
			}
			summary, checked := Renderer{}.Check(t.Context(), files)
			out, rendered := Renderer{}.Render(t.Context(), render.Input{Files: files})
			for when, got := range map[string]struct {
				err      error
				warnings []string
			}{"check": {checked, summary.Warnings}, "render": {rendered, out.Warnings}} {
				wrong := ""
				if got.err != nil {
					wrong = nf.ViolationsOf(got.err).Error()
				}
				if diff := cmp.Diff(tc.wrong, wrong); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", tc.reason, when, diff)
				}
				if diff := cmp.Diff(tc.warnings, got.warnings); diff != "" {
					t.Errorf("%s: warnings of %s (-want +got):\n%s", tc.reason, when, diff)
				}
			}
		})
	}
}

// TestUnused holds what is said of variables and parameters that change nothing.
func TestUnused(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: b-$replicas-$vnf_id\n"
	cases := map[string]struct {
		reason     string
		variables  string
		parameters map[string]any
		check      []string
		render     []string // in addition to those of the check
	}{
		"declared":     {"a variable of no use", "variables:\n  pw: {}\n  replicas: {default: 1}", nil, []string{`metadata.yaml:3: variable "pw" is declared and never used`}, nil},
		"in a list":    {"in the other form", "variables:\n- name: replicas\n  default: 1\n- name: pw", nil, []string{`metadata.yaml:5: variable "pw" is declared and never used`}, nil},
		"undeclared":   {"a parameter that is not declared", "variables: {replicas: {default: 1}}", map[string]any{"replica": 1}, nil, []string{"parameters.replica: the package declares no such variable (did you mean replicas?)"}},
		"far":          {"nothing is near", "variables: {replicas: {default: 1}}", map[string]any{"nope": 1}, nil, []string{"parameters.nope: the package declares no such variable"}},
		"no use":       {"without declarations, one that nothing uses", "", map[string]any{"Replicas": 1, "replicas": 1, "nope": 2}, nil, []string{"parameters.Replicas: the package uses no such variable (did you mean replicas?)", "parameters.nope: the package uses no such variable"}},
		"nothing":      {"null is no value", "", map[string]any{"nope": nil, "replicas": 1}, nil, nil},
		"not set here": {"a parameter cannot set what the service sets", "", map[string]any{"vnf_ids": 1, "replicas": 1}, nil, []string{"parameters.vnf_ids: the package uses no such variable"}},
		"no value":     {"a variable without a value may be one that was given", "", map[string]any{"replica": 1}, nil, []string{"parameters.replica: the package uses no such variable (did you mean replicas?)", `a.yaml:4: variable "replicas" has no value (did you mean $replica?) and stays as it is`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := render.Files{"metadata.yaml": []byte("resources: [{manifest: a.yaml}]\n" + tc.variables), "a.yaml": []byte(object)}
			summary, err := Renderer{}.Check(t.Context(), files)
			if diff := cmp.Diff(tc.check, summary.Warnings); diff != "" || err != nil {
				t.Errorf("%s: the check: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			in := render.Input{Files: files, Builtins: map[string]string{"vnf_id": "x"}, Inputs: nf.Inputs{Parameters: tc.parameters}}
			out, err := Renderer{}.Render(t.Context(), in)
			if diff := cmp.Diff(append(tc.check, tc.render...), out.Warnings); diff != "" || err != nil {
				t.Errorf("%s: the rendering: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			var want, got []string // with Strict
			for _, warning := range tc.render {
				if strings.HasPrefix(warning, "parameters.") {
					want = append(want, warning)
				}
			}
			in.Strict = true
			_, err = Renderer{}.Render(t.Context(), in)
			for _, v := range nf.ViolationsOf(err) {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the strict rendering (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManyUndeclared checks that what is said stays short, however much is wrong.
func TestManyUndeclared(t *testing.T) {
	var variables, data strings.Builder
	for i := range maxVars {
		fmt.Fprintf(&variables, "  v%d: {}\n", i)
	}
	for i := range 5000 {
		fmt.Fprintf(&data, "- b $%s%d\n", strings.Repeat("x", 300), i)
	}
	files := pkg(head + "data:\n" + data.String())
	files["metadata.yaml"] = append(files["metadata.yaml"], "\nvariables:\n"+variables.String()...)
	summary, err := Renderer{}.Check(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(summary.Warnings); n != 2*(maxShown+1) {
		t.Errorf("a record holds %d warnings", n)
	}
	for _, warning := range summary.Warnings {
		if len(warning) > 2*maxQuote {
			t.Errorf("a warning has %d bytes: %s", len(warning), warning)
		}
	}
}
