package onap_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// stored is an object that clients send, and where they read it again. A
// question mark in a request stands for the object's name.
type stored struct {
	create, update string   // the second may be empty
	read           []string // an answer that is a list has one item
	in             string   // the field of an answer that has the object
	none           string   // what an absent object or list is read as; default null
	body           string   // with every field that must be there
}

func storedObjects() map[string]stored {
	const one = "/v1/rb/definition/fw/1"
	return map[string]stored{
		"definition": {
			create: "POST /v1/rb/definition", update: "PUT /v1/rb/definition/?/1", body: `{"rb-name": "?", "rb-version": "1"}`,
			read: []string{"GET /v1/rb/definition/?/1", "GET /v1/rb/definition/?"},
		},
		"profile": {
			create: "POST " + one + "/profile", update: "PUT " + one + "/profile/?", body: `{"rb-name": "fw", "rb-version": "1", "profile-name": "?"}`,
			read: []string{"GET " + one + "/profile/?"},
		},
		"connection": {
			create: "POST /v1/connectivity-info", body: `{"cloud-region": "?", "cloud-owner": "acme", "kubeconfig": "eA=="}`,
			read: []string{"GET /v1/connectivity-info/?"},
		},
		"instance": {
			create: "POST /v1/instance", update: "POST /v1/instance/?/upgrade", in: "request.",
			body: `{"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "cloud-region": "east"}`,
			read: []string{"GET /v1/instance/?", "GET /v1/instance/??full=true", "GET /v1/instance/?/status"},
		},
		"configuration": {
			create: "POST " + configs, update: "PUT " + configs + "/?", body: `{"config-name": "?", "template-name": "ssh"}`,
			read: []string{"GET " + configs + "/?", "GET " + configs + "/?/version/1"},
		},
		"subscription": {
			create: "POST " + subscriptions, update: "PUT " + subscriptions + "/?", body: `{"name": "?", "callback-url": "http://so.example.org/x"}`,
			none: "{}",
			read: []string{"GET " + subscriptions + "/?"},
		},
	}
}

// collections returns the paths of the fields of a wire type that are objects,
// lists or any JSON, each with values that are empty.
func collections(of reflect.Type, path string) map[string][]string {
	out := map[string][]string{}
	for f := range of.Fields() {
		at := path + f.Tag.Get("json")
		switch {
		case f.Type == reflect.TypeFor[json.RawMessage]() || f.Type.Kind() == reflect.Map:
			out[at] = []string{"{}"}
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Map:
			out[at] = []string{"[]", "[{}]"}
		case f.Type.Kind() == reflect.Slice:
			out[at] = []string{"[]"}
		case f.Type.Kind() == reflect.Struct:
			maps.Copy(out, collections(f.Type, at+"."))
		}
	}
	return out
}

// TestEmptyStaysEmpty sends each object or list of each of ONAP's objects empty,
// as null, and not at all. An absent one is read as ONAP's plugin answers it.
func TestEmptyStaysEmpty(t *testing.T) {
	t.Parallel()
	wire, objects := onap.Wire(), storedObjects()
	for kind, o := range objects {
		for path, empty := range collections(reflect.TypeOf(wire[kind]), "") {
			for _, value := range append(empty, "null", "") {
				t.Run(kind+" "+path+" "+value, func(t *testing.T) {
					t.Parallel()
					w := subscribing(t, false)
					name := w.put(t, o, o.create, "x", path, value)
					w.shows(t, o, name, path, value)
					for _, next := range append(empty, "") {
						if o.update == "" {
							break
						}
						after := o
						switch kind {
						case "configuration":
							after.read = o.read[:1] // a version stays as it was made
						case "instance":
							// An upgrade to what is there already changes nothing.
							after.body = strings.Replace(o.body, "{", `{"labels": {"n": "`+next+`"}, "override-values": {"n": "`+next+`"}, `, 1)
						}
						w.put(t, after, o.update, name, path, next)
						w.shows(t, after, name, path, next)
					}
				})
			}
		}
	}
}

// put sends an object with a value at a path; none is an absent field. It returns
// the object's name.
func (w *world) put(t *testing.T, o stored, request, name, path, value string) string {
	t.Helper()
	body := parsed(t, strings.ReplaceAll(o.body, "?", name)).(map[string]any)
	delete(body, path)
	if value != "" {
		set(body, strings.Split(path, "."), parsed(t, value))
	}
	document, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got := w.ask(t, strings.Replace(request, "?", name, 1), string(document))
	if got.status >= 300 {
		t.Fatalf("%s: %d %s", request, got.status, got.body)
	}
	answer, _ := parsed(t, got.body).(map[string]any)
	o.same(t, request, answer, path, value)
	if id, ok := answer["id"].(string); ok {
		return id
	}
	return name
}

// shows fails unless an object has a value at a path wherever it is read.
func (w *world) shows(t *testing.T, o stored, name, path, value string) {
	t.Helper()
	for _, request := range o.read {
		got := w.ask(t, strings.Replace(request, "?", name, 1), "")
		answer := parsed(t, got.body)
		if list, ok := answer.([]any); ok && len(list) == 1 {
			answer = list[0]
		}
		o.same(t, request, answer, path, value)
	}
}

func (o stored) same(t *testing.T, request string, answer any, path, value string) {
	t.Helper()
	if value == "" || value == "null" {
		value = cmp.Or(o.none, "null")
	}
	for key := range strings.SplitSeq(o.in+path, ".") {
		object, _ := answer.(map[string]any)
		answer = object[key]
	}
	if diff := gocmp.Diff(parsed(t, value), answer); diff != "" {
		t.Errorf("%s: %s (-want +got):\n%s", request, path, diff)
	}
}

func set(object map[string]any, path []string, value any) {
	if len(path) > 1 {
		inner := map[string]any{}
		object[path[0]] = inner
		set(inner, path[1:], value)
		return
	}
	object[path[0]] = value
}

// TestEveryCollectionIsKnown fails for a wire type with an object or a list that
// TestEmptyStaysEmpty does not send.
func TestEveryCollectionIsKnown(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"configResult": "it is a version, too",
		"config":       "it is a version, which is what the request for it was",
		"instanceFull": "resources and hooks are found out", "instanceResponse": "resources are found out", "instanceStatus": "objects are found out",
		"queryStatus": "objects are found out", "resourceStatus": "the object is the cluster's", "runList": "runs and hooks are found out",
		"hook": "events are the chart's", "newWorkload": "resources are found out", "stacks": "stacks are found out",
		"subscriptionShown": "it is what the request was", "connectivity": "it is a part of connection", "directives": "they become override-values, and are not shown",
		"storedProfile": "it is not shown", "capacity": "zones are found out",
	}
	sent := map[string]bool{}
	for _, object := range onap.Wire() {
		sent[reflect.TypeOf(object).Name()] = true
	}
	found := map[string]bool{}
	for name := range structs(t) {
		found[name] = true
		if _, known := answers[name]; !known && !sent[name] {
			t.Errorf("%s has an object or a list, and nothing sends it empty", name)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(sent)), slices.Collect(maps.Keys(answers))) {
		if !found[name] {
			t.Errorf("%s is listed, and has neither an object nor a list", name)
		}
	}
}

// structs returns the names of the package's struct types that have a field with
// a JSON name whose type is a map, a list, or any JSON.
func structs(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for n := range ast.Preorder(file) {
			if spec, ok := n.(*ast.TypeSpec); ok && collects(spec.Type) {
				out[spec.Name.Name] = true
			}
		}
	}
	return out
}

// collects reports whether a type is a struct with such a field.
func collects(e ast.Expr) bool {
	s, ok := e.(*ast.StructType)
	if !ok {
		return false
	}
	for n := range ast.Preorder(s) {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil && holds(f.Type) {
			return true
		}
	}
	return false
}

// holds reports whether a type, as it is written, may be empty in JSON.
func holds(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.MapType, *ast.ArrayType:
		return true
	case *ast.Ident:
		return slices.Contains([]string{"texts", "extraTypes", "connectivity"}, e.Name)
	case *ast.SelectorExpr:
		return fmt.Sprint(e.X)+"."+e.Sel.Name == "json.RawMessage"
	}
	return false
}
