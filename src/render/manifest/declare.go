package manifest

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// readVariables reads the declarations: a mapping from names, or a list of
// mappings that each have a name.
func (m *metadataReader) readVariables(variables *yaml.Node) {
	m.declares = true
	switch variables.Kind {
	case yaml.MappingNode:
		for f := range fields(variables) {
			m.declare(nf.Variable{Name: f.key.Value}, m.place(f.key), f.value)
		}
	case yaml.SequenceNode:
		for _, item := range variables.Content {
			m.declare(nf.Variable{}, m.place(item), item)
		}
	default:
		if !isNull(variables) {
			m.add(variables, "variables", "must be a mapping or a list of declarations")
		}
	}
}

func (m *metadataReader) declare(v nf.Variable, at place, declaration *yaml.Node) {
	if declaration.Kind != yaml.MappingNode && !isNull(declaration) {
		m.add(declaration, "variables", "a declaration must be a mapping")
		return
	}
	inMap := v.Name != ""
	for f := range fields(declaration) {
		switch f.key.Value {
		case "type":
			v.Type = m.typeName(f)
		case "default":
			v.Default = literal(f.value)
		case "required":
			v.Required = m.boolean(f)
		case "sensitive":
			v.Sensitive = m.boolean(f)
		case "description":
			v.Description = m.text(f)
		default:
			if inMap || f.key.Value != "name" {
				m.unknownKey(f.key, "type", "default", "required", "sensitive", "description")
				continue
			}
			v.Name = m.text(f)
		}
	}
	m.declared[v.Name] = at
	m.addVariable(v, declaration)
}

func (m *metadataReader) addVariable(v nf.Variable, declaration *yaml.Node) {
	if v.Type == "" {
		v.Type = "string"
		if v.Default != nil {
			v.Type = typeOf(v.Default)
		}
	}
	sameName := func(other nf.Variable) bool { return other.Name == v.Name }
	at := declaration
	if d := get(declaration, "default"); d != nil {
		at = d
	}
	switch {
	case len(m.variables) == maxVars:
		m.add(declaration, "variables", "are more than %d", maxVars)
	case !isName(v.Name) || len(v.Name) > maxWord:
		m.add(declaration, "variables", "a name must be %d letters, digits and underscores at most, and not begin with a digit", maxWord)
	case slices.Contains(builtins, v.Name):
		m.add(declaration, "variables."+v.Name, "is set by the service")
	case slices.ContainsFunc(m.variables, sameName):
		m.add(declaration, "variables."+v.Name, "is declared twice")
	case v.Default != nil && slices.Contains(typeNames, v.Type) && !hasType(v.Default, v.Type):
		m.add(at, "variables."+v.Name+".default", "%s", typeMismatch(v, v.Default))
	default:
		m.variables = append(m.variables, v)
	}
}

var (
	typeNames  = []string{"string", "integer", "number", "boolean", "object", "array"}
	shortTypes = map[string]string{"int": "integer", "float": "number", "bool": "boolean"}
)

func (m *metadataReader) typeName(f field) string {
	name := f.value.Value
	if long, found := shortTypes[name]; found {
		return long
	}
	if !slices.Contains(typeNames, name) {
		m.add(f.value, "type", "must be string, integer, number, boolean, object or array")
	}
	return name
}

func (m *metadataReader) boolean(f field) bool {
	truth, ok := literal(f.value).(bool)
	if !ok {
		m.add(f.value, f.key.Value, "must be true or false")
	}
	return truth
}

// typeOf returns the name of a value's type.
func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "null"
}

// hasType reports whether a value is valid for a variable of the type. An
// integer is also a number. A string is valid only as a string.
func hasType(value any, want string) bool {
	is := typeOf(value)
	return is == want || is == "integer" && want == "number"
}

// typeMismatch returns the message for a value that is not of a variable's type.
// It quotes the value, unless the variable is sensitive.
func typeMismatch(v nf.Variable, value any) string {
	text := fmt.Sprintf("must be %s, got %s", withArticle(v.Type), typeOf(value))
	if v.Sensitive {
		return text
	}
	switch value := value.(type) {
	case string:
		text += fmt.Sprintf(" %q", nf.Clip(value, maxQuote))
	case int64, float64, bool:
		text += " " + textOf(value)
	}
	return text
}

func withArticle(name string) string {
	switch name {
	case "integer", "object", "array":
		return "an " + name
	case "null":
		return name
	}
	return "a " + name
}
