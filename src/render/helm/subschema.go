package helm

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

const (
	maxRef      = 1 << 10 // bytes of a reference that is followed
	maxRefChain = 32      // references, each of which leads to the next
)

// part is a schema, or one of its subschemas. It is nil for a schema of another
// form, such as true.
type part map[string]any

// schemaOf returns the schema of the values of a chart, without its subcharts.
func schemaOf(c *chart.Chart) part {
	var p part
	if len(c.Schema) == 0 || json.Unmarshal(c.Schema, &p) != nil {
		return nil
	}
	return p
}

// secret reports whether a value is declared secret: as a password, or as
// write-only.
func (p part) secret() bool { return p["writeOnly"] == true || p["format"] == "password" }

// chain returns a subschema, followed by those that its reference leads to.
func (p part) chain(sub part) []part {
	found := []part{sub}
	for range maxRefChain {
		ref, _ := sub["$ref"].(string)
		if sub = p.target(ref); sub == nil {
			break
		}
		found = append(found, sub)
	}
	return found
}

// target returns the subschema that a reference leads to, or nil if it leads
// out of the schema.
func (p part) target(ref string) part {
	if ref == "" || len(ref) > maxRef {
		return nil
	}
	document, fragment, _ := strings.Cut(ref, "#")
	id, _ := p["$id"].(string)
	if document != "" && document != strings.TrimSuffix(id, "#") {
		return nil
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil
	}
	var v any = map[string]any(p)
	for _, step := range strings.Split(pointer, "/")[1:] {
		v = element(v, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
	}
	sub, _ := v.(map[string]any)
	return sub
}

// element returns an element of a JSON value, or nil.
func element(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && 0 <= i && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// first returns a keyword's value in the first of several subschemas that has
// the keyword.
func first(schemas []part, keyword string) any {
	for _, p := range schemas {
		if v, there := p[keyword]; there {
			return v
		}
	}
	return nil
}

// described returns the properties that a schema describes on the top level,
// and the names of those that are required.
func (p part) described() (properties map[string]part, required map[string]bool) {
	properties, required = map[string]part{}, map[string]bool{}
	for _, schema := range p.chain(p) {
		table, _ := schema["properties"].(map[string]any)
		for name, v := range table {
			if _, known := properties[name]; !known {
				sub, _ := v.(map[string]any)
				properties[name] = sub
			}
		}
		names, _ := schema["required"].([]any)
		for _, v := range names {
			if name, ok := v.(string); ok {
				required[name] = true
			}
		}
	}
	return properties, required
}
