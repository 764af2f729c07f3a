package schema

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// FuzzDocument reads any document, and compares any object with each kind in it.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(schemas(`{"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "x-kubernetes-validations": [{"rule": "self.a > 0"}]}`, "")), []byte(`{"spec": {"a": 5}}`))
	f.Add([]byte(schemas(`{"anyOf": [{"minimum": 1}, {"pattern": "a{2,5}"}], "enum": [1, "a"], "x-kubernetes-int-or-string": true}`, "")), []byte(`{"spec": "a"}`))
	f.Add([]byte(schemas(`{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object"}}`, "")), []byte(`{"spec": [{"k": 1}, null]}`))
	f.Add([]byte(strings.ReplaceAll(schemas(`{"$ref": "#/components/schemas/io.k8s.api.x"}`, `, "io.k8s.api.x": {"properties": {"x": {"$ref": "#/components/schemas/io.k8s.api.x"}}}`), "com.example", "io.k8s.api.example")), []byte(`{"spec": {"x": {"x": 1}}}`))
	f.Add([]byte(`{"paths": {"/apis/x/v1/y/{name}/status": {"get": {"x-kubernetes-group-version-kind": {"kind": "X"}}}}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, document, object []byte) {
		d, err := parseDocument(document)
		if err != nil {
			return
		}
		var content map[string]any
		if err := kjson.Unmarshal(object, &content); err != nil || content == nil {
			return
		}
		for gvk := range d.kinds {
			k, err := d.kind(gvk)
			if err != nil {
				continue
			}
			u := &unstructured.Unstructured{Object: content}
			before := u.DeepCopy()
			c := &check{budget: &budget{100_000}, rules: 1_000_000}
			findings, _ := c.compare(t.Context(), k, u, false)
			if len(findings) > 2*maxFindings {
				t.Errorf("%d findings", len(findings))
			}
			if !equal(before.Object, u.Object) {
				t.Errorf("the object was changed from %v to %v", before.Object, u.Object)
			}
		}
	})
}

// FuzzCheck compares any object with a definition that uses everything, and with
// what is known of every kind.
func FuzzCheck(f *testing.F) {
	text, err := os.ReadFile("testdata/custom.yaml")
	if err != nil {
		f.Fatal(err)
	}
	all := clustertest.Documents(f, strings.ReplaceAll(string(text), "GROUP", "example.com"))
	spec, err := json.Marshal(all[0].Object["spec"])
	if err != nil {
		f.Fatal(err)
	}
	d, err := definition(spec, nil)
	if err != nil {
		f.Fatal(err)
	}
	k, err := d.kind(all[1].GroupVersionKind())
	if err != nil {
		f.Fatal(err)
	}
	for _, u := range append(natural(f), all[1]) {
		seed, err := u.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var content map[string]any
		if err := kjson.Unmarshal(object, &content); err != nil || content == nil {
			return
		}
		u := &unstructured.Unstructured{Object: content}
		for _, k := range []*kind{k, nil} {
			c := &check{budget: &budget{100_000}, rules: 1_000_000}
			if findings, _ := c.compare(t.Context(), k, u, false); len(findings) > 2*maxFindings {
				t.Errorf("%d findings", len(findings))
			}
		}
		w := &walk{root: content, budget: &budget{100_000}}
		for _, checks := range natives {
			if checks.rule != nil {
				checks.rule(w, content)
				checks.rule(w, content["spec"])
			}
		}
	})
}
