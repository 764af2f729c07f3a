package helm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Limits of the variables and texts that are stored with a package.
const (
	maxVariables   = 1000
	maxDefault     = 4 << 10  // bytes of a default; a larger one is left out
	maxDefaults    = 64 << 10 // bytes of all of them
	maxDescription = 1 << 10
	maxSchemaDepth = 32        // of the search for marked properties in a schema
	maxParts       = 100 << 10 // of a schema that are searched
)

// property is the part of a schema, and of each of its subschemas, that is
// read.
type property struct {
	Ref         string              `json:"$ref"`
	Type        any                 `json:"type"`
	Format      string              `json:"format"`
	WriteOnly   *bool               `json:"writeOnly"`
	Description string              `json:"description"`
	Default     any                 `json:"default"`
	Required    []string            `json:"required"`
	Properties  map[string]property `json:"properties"`
	Items       *property           `json:"items"`
	AllOf       []property          `json:"allOf"`
	AnyOf       []property          `json:"anyOf"`
	OneOf       []property          `json:"oneOf"`
	Definitions map[string]property `json:"definitions"`
	Defs        map[string]property `json:"$defs"`
}

// UnmarshalJSON treats a schema of another form, such as true, as an empty one.
func (p *property) UnmarshalJSON(content []byte) error {
	type form property
	var f form
	if json.Unmarshal(content, &f) == nil {
		*p = property(f)
	}
	return nil
}

func schemaOf(c *chart.Chart) property {
	var p property
	if len(c.Schema) > 0 && json.Unmarshal(c.Schema, &p) != nil {
		return property{}
	}
	return p
}

// variables returns the variables of a chart: the properties of its schema, or
// else its default values.
func variables(c *chart.Chart) []nf.Variable {
	schema := schemaOf(c)
	names := slices.Sorted(maps.Keys(schema.Properties))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.Values))
	}
	secrets := secretNames(c)
	room := maxDefaults
	var found []nf.Variable
	for _, name := range names[:min(len(names), maxVariables)] {
		if nf.CheckText("", name) != nil {
			continue
		}
		p := schema.resolve(schema.Properties[name])
		value, there := c.Values[name]
		if !there || value == nil {
			value = p.Default
		}
		v := nf.Variable{
			Name: name, Description: oneLine(p.Description, maxDescription), Type: typeOf(p.Type, value),
			Required: slices.Contains(schema.Required, name) && value == nil,
		}
		var other any = "a text" // any text, since the default of a secret is often empty
		if v.Type == "boolean" {
			other = true
		}
		v.Sensitive = secrets.Has(name, other)
		value = secrets.Mask(value)
		if text, err := json.Marshal(value); err == nil && len(text) <= min(room, maxDefault) && !v.Sensitive {
			room -= len(text)
			v.Default = value
		}
		found = append(found, v)
	}
	return found
}

// secretNames returns which names of values, at any depth, are declared secret
// or not secret by the schemas of a chart and its subcharts.
func secretNames(c *chart.Chart) render.SecretNames {
	schema := schemaOf(c)
	m := marker{schema: schema, found: render.SecretNames{}, left: maxParts}
	m.visit(schema, 0)
	for _, d := range c.Dependencies() {
		for name, secret := range secretNames(d) {
			m.mark(name, secret)
		}
	}
	return m.found
}

// defaultTexts returns the secrets in the default values of a chart and its
// subcharts.
func defaultTexts(c *chart.Chart, secrets render.SecretNames) []string {
	texts := secrets.Texts(c.Values)
	for _, d := range c.Dependencies() {
		texts = append(texts, defaultTexts(d, secrets)...)
	}
	return texts
}

// secret reports whether a property is declared secret: as a password, or as
// write-only.
func (p property) secret() bool {
	return p.WriteOnly != nil && *p.WriteOnly || p.Format == "password"
}

// resolve follows a reference to the definitions of a schema.
func (p property) resolve(part property) property {
	for range maxSchemaDepth {
		name, definitions := part.Ref, p.Definitions
		if rest, ok := strings.CutPrefix(name, "#/$defs/"); ok {
			name, definitions = rest, p.Defs
		} else if name, ok = strings.CutPrefix(name, "#/definitions/"); !ok {
			break
		}
		target, there := definitions[name]
		if !there {
			break
		}
		if part.WriteOnly != nil && !target.secret() {
			target.WriteOnly = part.WriteOnly
		}
		if part.Description != "" {
			target.Description = part.Description
		}
		part = target
	}
	return part
}

// marker collects what a schema declares secret or not secret. The parts of a
// schema may refer to each other in cycles.
type marker struct {
	schema property
	found  render.SecretNames
	left   int
}

// mark records a declaration for a name. A name is secret if any property of
// that name is declared secret.
func (m *marker) mark(name string, secret bool) { m.found[name] = m.found[name] || secret }

func (m *marker) visit(part property, depth int) {
	if m.left--; m.left < 0 || depth > maxSchemaDepth {
		return
	}
	parts := slices.Concat(part.AllOf, part.AnyOf, part.OneOf)
	if part.Items != nil {
		parts = append(parts, *part.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(part.Properties)) {
		inner := m.schema.resolve(part.Properties[name])
		if inner.secret() || inner.WriteOnly != nil {
			m.mark(name, inner.secret())
		}
		parts = append(parts, inner)
	}
	for _, inner := range parts {
		m.visit(m.schema.resolve(inner), depth+1)
	}
}

// typeOf returns the type of a variable: the type in the schema, or else the
// type of its value.
func typeOf(declared, value any) string {
	types, _ := declared.([]any)
	for _, t := range append([]any{declared}, types...) {
		if name, _ := t.(string); slices.Contains(typeNames, name) {
			return name
		}
	}
	switch value := value.(type) {
	case bool:
		return "boolean"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "string"
}

var typeNames = []string{"string", "integer", "number", "boolean", "object", "array"}

// oneLine returns a text of a chart on one line, with limited length and only
// with printable characters.
func oneLine(text string, most int) string {
	graphic := strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) || unicode.IsSpace(c) {
			return c
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	return nf.Clip(strings.Join(strings.Fields(graphic), " "), most)
}
