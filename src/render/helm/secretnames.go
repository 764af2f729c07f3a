package helm

import (
	"maps"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Limits of the search for declared secrets in a schema.
const (
	maxSchemaDepth = 32
	maxParts       = 100 << 10
)

var (
	// sameValueKeywords have subschemas of the value that the schema describes.
	sameValueKeywords = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

	// innerValueKeywords have subschemas of values in that value, whose names the
	// schema does not contain.
	innerValueKeywords = []string{
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "patternProperties", "unevaluatedProperties",
	}

	// tableKeywords have a table of subschemas.
	tableKeywords = []string{"dependentSchemas", "dependencies", "patternProperties"}
)

// secretNames returns which names of values, at any depth, are declared secret
// or not secret by the schemas of a chart and its subcharts. If a schema
// declares a value secret without its name, the name of the value that contains
// it is secret. On the top level, the names are those in the chart's values and
// in the inputs.
func secretNames(c *chart.Chart, in nf.Inputs) render.SecretNames {
	m := search(c)
	if m.others {
		m.markOthers(in.Parameters)
		for path := range in.Overrides {
			if steps := nf.PathSteps(path); len(steps) > 0 {
				m.markOthers(map[string]any{steps[0]: nil})
			}
		}
	}
	return m.found
}

// search returns what the schemas of a chart and its subcharts declare.
func search(c *chart.Chart) *marker {
	m := &marker{schema: schemaOf(c), found: render.SecretNames{}, left: maxParts}
	m.described, _ = m.schema.described()
	m.search()
	if m.others {
		m.markOthers(c.Values)
	}
	for _, d := range c.Dependencies() {
		inner := search(d)
		for name, secret := range inner.found {
			m.mark(name, secret)
		}
		if inner.others {
			m.markSubchart(c, d)
		}
	}
	return m
}

// marker collects what a schema declares secret or not secret. The parts of a
// schema may refer to each other in cycles.
type marker struct {
	schema    part
	described map[string]part // on the top level
	found     render.SecretNames
	others    bool // values on the top level are secret that the schema does not name
	left      int  // parts that may still be searched
}

// subschema is a part of a schema, and the value that it describes.
type subschema struct {
	part  part
	name  string // of the value; empty: all values of the chart
	inner bool   // it describes values in that value, without their names
	depth int
}

// mark records a declaration for a name. A name is secret if any property of
// that name is declared secret.
func (m *marker) mark(name string, secret bool) { m.found[name] = m.found[name] || secret }

// markOthers marks the values on the top level that the schema does not name.
func (m *marker) markOthers(values map[string]any) {
	for name := range values {
		if _, known := m.described[name]; !known {
			m.mark(name, true)
		}
	}
}

// markSubchart marks the values that a chart gives a subchart.
func (m *marker) markSubchart(c, sub *chart.Chart) {
	m.mark(sub.Name(), true)
	for _, wanted := range c.Metadata.Dependencies {
		if wanted != nil && wanted.Name == sub.Name() && wanted.Alias != "" {
			m.mark(wanted.Alias, true)
		}
	}
}

// search searches the schema level by level, so that references in cycles do
// not keep it from the other parts.
func (m *marker) search() {
	queue := []subschema{{part: m.schema}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		parts := []part{at.part}
		if m.left > 0 {
			parts = m.schema.chain(at.part)
			m.left -= len(parts) - 1
		}
		for _, p := range parts {
			m.declare(at, p)
			queue = append(queue, m.inside(at, p)...)
		}
	}
}

// declare records what a part declares of its value.
func (m *marker) declare(at subschema, p part) {
	secret := p.secret()
	_, declared := p["writeOnly"].(bool)
	switch {
	case at.name == "":
		m.others = m.others || at.inner && secret
	case secret || declared && !at.inner:
		m.mark(at.name, secret)
	}
}

// inside returns the subschemas of a part, in a fixed order.
func (m *marker) inside(at subschema, p part) []subschema {
	if m.left <= 0 || at.depth == maxSchemaDepth {
		return nil
	}
	var found []subschema
	add := func(v any, name string, inner bool) {
		m.left--
		if sub, ok := v.(map[string]any); ok && m.left >= 0 {
			found = append(found, subschema{sub, name, inner, at.depth + 1})
		}
	}
	for _, keyword := range sameValueKeywords {
		for _, v := range subschemasOf(p, keyword) {
			add(v, at.name, at.inner)
		}
	}
	for _, keyword := range innerValueKeywords {
		for _, v := range subschemasOf(p, keyword) {
			add(v, at.name, true)
		}
	}
	properties, _ := p["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		add(properties[name], name, false)
	}
	return found
}

// subschemasOf returns the subschemas of a keyword: one, a list or a table.
func subschemasOf(p part, keyword string) []any {
	switch v := p[keyword].(type) {
	case []any:
		return v
	case map[string]any:
		if !slices.Contains(tableKeywords, keyword) {
			return []any{v}
		}
		var found []any
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, v[name])
		}
		return found
	}
	return nil
}
