package manifest

import (
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// readVariables reads the declarations: a mapping of names, or a list of
// mappings that each have a name.
func (m *metadataReader) readVariables(variables *node) {
	m.declares = true
	switch variables.kind {
	case mapping:
		for _, f := range variables.fields {
			m.declare(nf.Variable{Name: f.key.text}, f.key.at, f.value)
		}
	case list:
		for _, item := range variables.items {
			m.declare(nf.Variable{}, item.at, item)
		}
	case scalar:
		if variables.value != nil {
			m.report.add(variables.at, "variables", "must be a mapping or a list of declarations")
		}
	}
}

func (m *metadataReader) declare(v nf.Variable, at place, declaration *node) {
	if declaration.kind != mapping && (declaration.value != nil || declaration.kind == list) {
		m.report.add(declaration.at, "variables", "a declaration must be a mapping")
		return
	}
	inMap := v.Name != ""
	for _, f := range declaration.fields {
		switch f.key.text {
		case "type":
			v.Type = m.typeName(f)
		case "default":
			v.Default = f.value.literal()
		case "required":
			v.Required = m.truth(f)
		case "sensitive":
			v.Sensitive = m.truth(f)
		case "description":
			v.Description = m.text(f)
		default:
			if inMap || f.key.text != "name" {
				m.report.unknownKey(f.key, "type", "default", "required", "sensitive", "description")
				continue
			}
			v.Name = m.text(f)
		}
	}
	m.declared[v.Name] = at
	m.addVariable(v, declaration)
}

func (m *metadataReader) addVariable(v nf.Variable, declaration *node) {
	if v.Type == "" {
		v.Type = "string"
		if v.Default != nil {
			v.Type = typeOf(v.Default)
		}
	}
	sameName := func(other nf.Variable) bool { return other.Name == v.Name }
	at := declaration.at
	if d := declaration.get("default"); d != nil {
		at = d.at
	}
	switch {
	case len(m.variables) == maxVars:
		m.report.add(declaration.at, "variables", "are more than %d", maxVars)
	case !isName(v.Name) || len(v.Name) > maxWord:
		m.report.add(declaration.at, "variables", "a name must be %d letters, digits and underscores at most, and not begin with a digit", maxWord)
	case slices.Contains(builtins, v.Name):
		m.report.add(declaration.at, "variables."+v.Name, "is set by the service")
	case slices.ContainsFunc(m.variables, sameName):
		m.report.add(declaration.at, "variables."+v.Name, "is declared twice")
	case v.Default != nil && slices.Contains(typeNames, v.Type) && !hasType(v.Default, v.Type):
		m.report.add(at, "variables."+v.Name+".default", "%s", mistyped(v, v.Default))
	default:
		m.variables = append(m.variables, v)
	}
}

var (
	typeNames  = []string{"string", "integer", "number", "boolean", "object", "array"}
	shortTypes = map[string]string{"int": "integer", "float": "number", "bool": "boolean"}
)

func (m *metadataReader) typeName(f field) string {
	name := f.value.text
	if long, found := shortTypes[name]; found {
		return long
	}
	if !slices.Contains(typeNames, name) {
		m.report.add(f.value.at, "type", "must be string, integer, number, boolean, object or array")
	}
	return name
}

func (m *metadataReader) truth(f field) bool {
	truth, ok := f.value.value.(bool)
	if !ok {
		m.report.add(f.value.at, f.key.text, "must be true or false")
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

// hasType reports whether a value may be given for a variable of the type. An
// integer is a number; a text is never anything else.
func hasType(value any, want string) bool {
	is := typeOf(value)
	return is == want || is == "integer" && want == "number"
}

// mistyped says that a value is not of a variable's type. It shows the value,
// unless the variable is sensitive.
func mistyped(v nf.Variable, value any) string {
	text := fmt.Sprintf("must be %s, got %s", withArticle(v.Type), typeOf(value))
	if v.Sensitive {
		return text
	}
	switch value := value.(type) {
	case string:
		text += fmt.Sprintf(" %q", clip(value, maxQuote))
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
