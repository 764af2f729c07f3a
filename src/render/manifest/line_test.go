package manifest

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const linesYAML = `apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
    app: web
    app.tier: front
    $key: web
spec:
  replicas:
    -1
  template:
    spec:
      containers:
      - name: a
        image: x
      -
        name: b
        ports: [{containerPort: 1},
          {containerPort: 2}]
        env: &env
        - name: c
      - {name: d, env: *env}
  strategy: $strategy
  dotted.field:
    a: 1
`

const linesJSON = `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1",
   "kind": "ConfigMap",
   "metadata": {"name": "web"},
   "data": {
     "a": {"b": 1},
     "list": [1,
       2]
   }}
]}
`

// TestLines asks for the lines of fields as the check of schemas and API servers
// name them.
func TestLines(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		json   bool
		field  string
		line   int
	}{
		"Object":        {"no field is the object", false, "", 5},
		"Top":           {"a field at the top", false, "kind", 6},
		"Dot":           {"a path that begins with a dot", false, ".kind", 6},
		"Inner":         {"a field of a field", false, "metadata.name", 8},
		"Key":           {"a key of a map", false, "metadata.labels[app]", 11},
		"Dotted key":    {"a key with dots and a slash", false, "metadata.labels[app.kubernetes.io/name]", 10},
		"Quoted key":    {"the same in quotes", false, `metadata.labels["app.kubernetes.io/name"]`, 10},
		"As a field":    {"or as API servers write some", false, "metadata.labels.app.kubernetes.io/name", 10},
		"Longest":       {"of two keys the one that is named", false, "metadata.labels.app.tier", 12},
		"Variable key":  {"a key that is a variable", false, "metadata.labels[tier]", 13},
		"Value below":   {"the line of the key counts, not that of its value", false, "spec.replicas", 15},
		"Item":          {"an item of a list", false, "spec.template.spec.containers[0]", 20},
		"In an item":    {"and what is in it", false, "spec.template.spec.containers[0].image", 21},
		"Dash":          {"an item begins with its first key", false, "spec.template.spec.containers[1]", 23},
		"Flow":          {"an item on a line of its own", false, "spec.template.spec.containers[1].ports[1].containerPort", 25},
		"Alias":         {"an alias is where it is written", false, "spec.template.spec.containers[2].env", 28},
		"In an alias":   {"and what is in it is at the anchor", false, "spec.template.spec.containers[2].env[0].name", 27},
		"Missing":       {"what is not there has the line of what it is missing from", false, "spec.template.spec.containers[0].imagee", 20},
		"Missing field": {"a prefix of a name is not the name", false, "spec.replica", 14},
		"Missing item":  {"an item that is not there", false, "spec.template.spec.containers[7].name", 19},
		"No item":       {"an index that is none", false, `spec.template.spec.containers[name="a"]`, 19},
		"Unclosed":      {"a path that was cut", false, "spec.template.spec.containers[1", 19},
		"Of a variable": {"what is in a variable is at the variable", false, "spec.strategy.type", 29},
		"Dotted field":  {"a field with a dot", false, "spec.dotted.field.a", 31},
		"JSON":          {"an object in a List", true, "", 2},
		"JSON field":    {"a field in JSON", true, "data.a.b", 6},
		"JSON item":     {"an item in JSON", true, "data.list[1]", 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, content, index := "m.yaml", linesYAML, 1
			if tc.json {
				file, content, index = "m.json", linesJSON, 0
			}
			out, err := Renderer{}.Render(t.Context(), render.Input{
				Files:  pkg(content, file),
				Inputs: nf.Inputs{Parameters: map[string]any{"key": "tier", "strategy": map[string]any{"type": "Recreate"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := render.Order(out.Groups, "ns")
			if err != nil {
				t.Fatal(err)
			}
			o := plan.Stages[0].Objects[index]
			if got := o.LineOf(tc.field); o.File != file || got != tc.line {
				t.Errorf("%s: %s is at %s:%d, want line %d", tc.reason, tc.field, o.File, got, tc.line)
			}
		})
	}
}

// TestLinesOfManyFiles has objects whose files are read again apart.
func TestLinesOfManyFiles(t *testing.T) {
	t.Parallel()
	files := render.Files{
		"metadata.yaml": []byte("resources: [{configmap: [a.yaml, b.yaml]}]"),
		"a.yaml":        []byte(head + "data:\n  a: b\n"), "b.yaml": []byte("# b\n\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  a: b\n"),
	}
	out, err := Renderer{}.Render(t.Context(), render.Input{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{5, 7} {
		if got := out.Groups[0].Objects[i].Lines("data[a]"); got != want {
			t.Errorf("the field of object %d is at line %d, want %d", i, got, want)
		}
	}
}
