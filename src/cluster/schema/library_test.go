package schema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// TestLikeTheLibrary compares values with schemas in the way of this package
// and in that of the API server's library, which costs too much time and memory
// for schemas of unknown origin: it keeps every pattern for ever, and cannot be
// bounded.
func TestLikeTheLibrary(t *testing.T) {
	var refused, accepted int
	rapid.Check(t, func(t *rapid.T) {
		r := randomSchema(3).Draw(t, "schema")
		value := likelyValue(r).Draw(t, "value")

		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var published apiextensionsv1.JSONSchemaProps
		var internal apiextensions.JSONSchemaProps
		if err := json.Unmarshal(text, &published); err != nil {
			t.Fatal(err)
		}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &internal, nil); err != nil {
			t.Fatal(err)
		}
		s, err := structural.NewStructural(&internal)
		if err != nil {
			t.Skip(err)
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readSchema(text)
		if err != nil {
			t.Fatal(err)
		}
		n, err := (&compiler{doc: newDocument()}).node(again)
		if err != nil {
			t.Fatal(err)
		}

		theirs, ours := runtime.DeepCopyJSONValue(value), runtime.DeepCopyJSONValue(value)
		defaulting.Default(theirs, s)
		b := &budget{maxSteps}
		b.complete(n, ours)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Fatalf("defaults of %s: -library +ours\n%s", text, diff)
		}
		errs := validation.ValidateCustomResource(nil, theirs, validator)
		w := &walk{budget: b}
		w.visit(n, ours)
		if w.failed != (len(errs) > 0) {
			t.Fatalf("schema %s\nvalue %v\nlibrary %v\nours %v", text, ours, errs, w.findings)
		}
		if w.failed {
			refused++
		} else {
			accepted++
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d values are refused and %d accepted: this proves nothing", refused, accepted)
	}
	t.Logf("%d values are refused and %d accepted", refused, accepted)
}

var fieldNames = []string{"a", "b", "c"}

// randomSchema makes a schema of a custom resource. Unknown fields are allowed
// everywhere: the library does not look at them here.
func randomSchema(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		r := map[string]any{}
		kinds := []string{"string", "integer", "number", "boolean"}
		if depth > 0 {
			kinds = append(kinds, "object", "object", "array", "either")
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "type")
		r["type"] = kind
		switch kind {
		case "either":
			delete(r, "type")
			r["x-kubernetes-int-or-string"] = true
		case "object":
			r["x-kubernetes-preserve-unknown-fields"] = true
			fields := map[string]any{}
			for _, name := range fieldNames {
				if rapid.Bool().Draw(t, name) {
					fields[name] = randomSchema(depth-1).Draw(t, name)
				}
			}
			r["properties"] = fields
			optional(t, r, "required", rapid.SliceOfNDistinct(rapid.SampledFrom(fieldNames), 1, 2, rapid.ID[string]))
		case "array":
			r["items"] = randomSchema(depth-1).Draw(t, "items")
		}
		optional(t, r, "nullable", rapid.Bool())
		if depth < 3 {
			optional(t, r, "default", randomValue(1))
		}
		constrain(t, r, depth)
		return r
	})
}

// constrain adds constraints to a schema, also such as have no meaning there. It
// adds no format: with one, the library takes a list for a string, which an API
// server refuses elsewhere.
func constrain(t *rapid.T, r map[string]any, depth int) {
	count := rapid.IntRange(0, 3)
	for _, name := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		optional(t, r, name, count)
	}
	number := rapid.SampledFrom([]any{-1, 0, 1, 2}) // with a fraction, new libraries refuse every integer
	optional(t, r, "minimum", number)
	optional(t, r, "maximum", number)
	optional(t, r, "exclusiveMinimum", rapid.Bool())
	optional(t, r, "exclusiveMaximum", rapid.Bool())
	optional(t, r, "multipleOf", rapid.SampledFrom([]any{1, 2}))
	optional(t, r, "pattern", rapid.SampledFrom([]string{"^a", "b$", "^[0-9]+$", "x*"}))
	optional(t, r, "enum", rapid.SliceOfN(randomValue(0), 1, 3))
	if depth == 0 {
		return
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		optional(t, r, name, rapid.SliceOfN(randomForm(depth-1), 1, 3))
	}
	optional(t, r, "not", randomForm(depth-1))
}

// randomForm makes a schema within allOf and the like, which may say less.
func randomForm(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		r := map[string]any{}
		constrain(t, r, depth)
		optional(t, r, "required", rapid.SliceOfNDistinct(rapid.SampledFrom(fieldNames), 1, 2, rapid.ID[string]))
		return r
	})
}

// optional gives a schema a member, mostly not.
func optional[T any](t *rapid.T, r map[string]any, name string, g *rapid.Generator[T]) {
	if rapid.IntRange(0, 7).Draw(t, "has "+name) == 0 {
		r[name] = g.Draw(t, name)
	}
}

// likelyValue makes a value that mostly has the types of a schema: of values of any
// type, next to none is accepted.
func likelyValue(r map[string]any) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 5).Draw(t, "of any type") == 0 {
			return randomValue(3).Draw(t, "value")
		}
		switch r["type"] {
		case "string":
			return rapid.SampledFrom([]any{"", "a", "ab", "abcd", "12"}).Draw(t, "string")
		case "integer":
			return rapid.SampledFrom([]any{int64(-2), int64(0), int64(1), int64(2), int64(7)}).Draw(t, "integer")
		case "boolean":
			return rapid.Bool().Draw(t, "boolean")
		case "array":
			items, _ := r["items"].(map[string]any)
			return rapid.SliceOfN(likelyValue(items), 0, 3).Draw(t, "list")
		case "object":
			fields, _ := r["properties"].(map[string]any)
			value := map[string]any{}
			for _, name := range fieldNames {
				if of, ok := fields[name].(map[string]any); ok && rapid.Bool().Draw(t, "has "+name) {
					value[name] = likelyValue(of).Draw(t, name)
				}
			}
			return value
		}
		return rapid.SampledFrom([]any{int64(1), int64(2), 0.5, "a"}).Draw(t, "number or text")
	})
}

// randomValue makes a value of JSON as unstructured objects hold it.
func randomValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		plain := []any{nil, true, false, "", "a", "ab", "abcd", "12", "2026-01-02", "10.0.0.1", "AAEC", int64(-2), int64(0), int64(1), int64(2), int64(7), 0.5, 1.5, 2.5}
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 || kind == 0 {
			return rapid.SampledFrom(plain).Draw(t, "plain")
		}
		if kind == 1 {
			return rapid.SliceOfN(randomValue(depth-1), 0, 3).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom(append([]string{"z"}, fieldNames...)), randomValue(depth-1), 0, 3).Draw(t, "object")
	})
}
