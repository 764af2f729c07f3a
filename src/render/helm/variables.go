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
)

// variables returns the variables of a chart: the properties of its schema, or
// else its default values.
func variables(c *chart.Chart) []nf.Variable {
	schema := schemaOf(c)
	properties, required := schema.described()
	names := slices.Sorted(maps.Keys(properties))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.Values))
	}
	secrets := secretNames(c, nf.Inputs{})
	room := maxDefaults
	var found []nf.Variable
	for _, name := range names[:min(len(names), maxVariables)] {
		if nf.CheckText("", name) != nil {
			continue
		}
		chain := schema.chain(properties[name])
		value, there := c.Values[name]
		if !there || value == nil {
			value = first(chain, "default")
		}
		description, _ := first(chain, "description").(string)
		v := nf.Variable{
			Name: name, Description: oneLine(description, maxDescription), Type: typeOf(first(chain, "type"), value),
			Required: required[name] && value == nil,
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

// defaultTexts returns the secrets in the default values of a chart and its
// subcharts.
func defaultTexts(c *chart.Chart, secrets render.SecretNames) []string {
	texts := secrets.Texts(c.Values)
	for _, d := range c.Dependencies() {
		texts = append(texts, defaultTexts(d, secrets)...)
	}
	return texts
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
