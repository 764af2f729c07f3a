package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// declaring returns a chart with a schema and default values.
func declaring(name, schema string, values map[string]any) *chart.Chart {
	return &chart.Chart{Metadata: &chart.Metadata{Name: name}, Schema: []byte(schema), Values: values}
}

func TestSecretNames(t *testing.T) {
	t.Parallel()
	const secret = `{"type": "string", "writeOnly": true}`
	key := render.SecretNames{"key": true}
	cases := map[string]struct {
		reason string
		schema string
		want   render.SecretNames
	}{
		"Property":          {"a property is declared secret", `{"properties": {"key": ` + secret + `}}`, key},
		"Format":            {"so is a password", `{"properties": {"key": {"format": "password"}}}`, key},
		"Plain":             {"a property is declared not secret", `{"properties": {"key": {"writeOnly": false}, "size": {"type": "integer"}}}`, render.SecretNames{"key": false}},
		"AllOf":             {"one of several schemas of a property declares it", `{"properties": {"key": {"anyOf": [{"type": "null"}, ` + secret + `]}}}`, key},
		"Items":             {"each item of a list is secret", `{"properties": {"key": {"items": ` + secret + `}}}`, key},
		"ItemsList":         {"an item at one position is secret", `{"properties": {"key": {"items": [{"type": "string"}, ` + secret + `]}}}`, key},
		"PrefixItems":       {"the same in later drafts", `{"properties": {"key": {"prefixItems": [` + secret + `]}}}`, key},
		"Contains":          {"one item is secret", `{"properties": {"key": {"contains": ` + secret + `}}}`, key},
		"Additional":        {"the values of a map are secret", `{"properties": {"key": {"additionalProperties": ` + secret + `}}}`, key},
		"AdditionalDeep":    {"the values of maps in a map are secret", `{"properties": {"key": {"additionalProperties": {"additionalProperties": ` + secret + `}}}}`, key},
		"AdditionalNot":     {"a declaration for values in it does not make a property not secret", `{"properties": {"key": {"additionalProperties": {"writeOnly": false}}}}`, render.SecretNames{}},
		"Pattern":           {"values with some names are secret", `{"properties": {"key": {"patternProperties": {"^a": {"type": "string"}, "^b": ` + secret + `}}}}`, key},
		"InItems":           {"a secret in an item has a name", `{"properties": {"list": {"items": [{"properties": {"key": ` + secret + `}}]}}}`, key},
		"InAdditional":      {"a secret in a value of a map has a name", `{"properties": {"map": {"additionalProperties": {"properties": {"key": ` + secret + `}}}}}`, key},
		"InPattern":         {"or in one of those with some names", `{"patternProperties": {"^a": {"properties": {"key": ` + secret + `}}}}`, key},
		"If":                {"a condition declares it", `{"if": {"properties": {"key": ` + secret + `}}}`, key},
		"Then":              {"under a condition", `{"then": {"properties": {"key": ` + secret + `}}}`, key},
		"Else":              {"or otherwise", `{"else": {"properties": {"key": ` + secret + `}}}`, key},
		"DependentSchemas":  {"if another property exists", `{"dependentSchemas": {"a": {"properties": {"key": ` + secret + `}}}}`, key},
		"Dependencies":      {"the same in earlier drafts", `{"dependencies": {"a": ["b"], "c": {"properties": {"key": ` + secret + `}}}}`, key},
		"Not":               {"in what must not be", `{"not": {"properties": {"key": ` + secret + `}}}`, key},
		"Ref":               {"by a definition", `{"properties": {"key": {"$ref": "#/$defs/s"}}, "$defs": {"s": ` + secret + `}}`, key},
		"RefChain":          {"by a definition of a definition", `{"properties": {"key": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"$ref": "#/definitions/b"}, "b": ` + secret + `}}`, key},
		"RefBeside":         {"beside a reference", `{"properties": {"key": {"$ref": "#/$defs/s", "writeOnly": true}}, "$defs": {"s": {"type": "string"}}}`, key},
		"RefProperty":       {"like another property", `{"properties": {"map": {"properties": {"a/b": ` + secret + `}}, "key": {"$ref": "#/properties/map/properties/a~1b"}}}`, render.SecretNames{"a/b": true, "key": true}},
		"Root":              {"the whole schema is a definition", `{"$ref": "#/$defs/helm-values", "$defs": {"helm-values": {"properties": {"key": ` + secret + `}}}}`, key},
		"RootID":            {"the same, with the schema's own URL", `{"$id": "https://example.org/v.json", "$ref": "https://example.org/v.json#/$defs/v", "$defs": {"v": {"properties": {"key": ` + secret + `}}}}`, key},
		"Cycle":             {"a schema that contains itself has an end", `{"properties": {"again": {"$ref": "#"}, "key": ` + secret + `}}`, key},
		"Self":              {"so has a reference to itself", `{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`, render.SecretNames{}},
		"Elsewhere":         {"other schemas are not read", `{"properties": {"key": {"$ref": "https://example.org/v.json"}}}`, render.SecretNames{}},
		"RootAdditional":    {"other values on the top level are secret", `{"properties": {"size": {}}, "additionalProperties": ` + secret + `}`, render.SecretNames{"default": true, "given": true, "set": true}},
		"RootUndescribed":   {"a schema of another form declares nothing", `true`, render.SecretNames{}},
		"RootInAdditional":  {"only a value in other values is secret", `{"additionalProperties": {"properties": {"key": ` + secret + `}}}`, key},
		"RootItselfIsNever": {"a declaration for all values at once has no effect", `{"writeOnly": true}`, render.SecretNames{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := declaring("c", tc.schema, map[string]any{"size": 1, "default": "x"})
			in := nf.Inputs{Parameters: map[string]any{"given": "x", "size": 2}, Overrides: map[string]string{"set.a[0]": "x", "size": "3"}}
			if diff := cmp.Diff(tc.want, secretNames(c, in)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSecretNamesOfSubcharts checks that the values of a subchart are secret in
// the subchart and in the chart that contains it.
func TestSecretNamesOfSubcharts(t *testing.T) {
	t.Parallel()
	c := declaring("c", "", nil)
	c.Metadata.Dependencies = []*chart.Dependency{{Name: "s", Alias: "db"}, {Name: "other", Alias: "no"}}
	c.SetDependencies(declaring("s", `{"additionalProperties": {"writeOnly": true}}`, map[string]any{"own": "x"}))
	want := render.SecretNames{"own": true, "s": true, "db": true}
	if diff := cmp.Diff(want, secretNames(c, nf.Inputs{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNamelessSecretsAreMasked checks that nothing of a map of secrets is shown.
func TestNamelessSecretsAreMasked(t *testing.T) {
	t.Parallel()
	files := one(`{{ fail (printf "%s %s" .Values.users.a .Values.users.b) }}`)
	files["values.yaml"] = []byte("users: {a: hunter2}\n")
	files["values.schema.json"] = []byte(`{"properties": {"users": {"additionalProperties": {"type": "string", "writeOnly": true}}}}`)
	in := input(files)
	in.Inputs.Parameters = map[string]any{"users": map[string]any{"b": "hunter3"}}
	_, err := Renderer{}.Render(t.Context(), in)
	if found := nf.ViolationsOf(err); len(found) != 1 || found[0].Message != nf.Masked+" "+nf.Masked {
		t.Errorf("the failure is told as %v", err)
	}
	summary, err := Renderer{}.Check(t.Context(), files)
	want := []nf.Variable{{Name: "users", Type: "object", Sensitive: true}}
	if diff := cmp.Diff(want, summary.Variables); diff != "" || err != nil {
		t.Errorf("%v: variables (-want +got)\n%s", err, diff)
	}
}

// TestVariablesOfReference checks a schema that is only a reference.
func TestVariablesOfReference(t *testing.T) {
	t.Parallel()
	c := declaring("c", `{"$ref": "#/$defs/helm-values", "$defs": {
		"helm-values": {"required": ["name"], "properties": {"name": {"$ref": "#/$defs/name"}, "size": {"type": "integer", "default": 2}}},
		"name": {"type": "string", "description": "How it is called."}}}`, nil)
	want := []nf.Variable{
		{Name: "name", Type: "string", Required: true, Description: "How it is called."},
		{Name: "size", Type: "integer", Default: 2.0},
	}
	if diff := cmp.Diff(want, variables(c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
