package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// expander returns the values of nodes with their variables replaced. Each
// value is a separate copy, even for aliases of one anchor.
type expander struct {
	scope  *scope // nil: texts have no variables
	report *report
	file   string   // of the nodes
	left   []string // warnings about references that stay unresolved in texts
	warned map[string]bool
	room   int // bytes that values with variables may still take
}

// maxExpanded bounds the memory that a package can create from the values of
// its variables: a small package can use a large value any number of times.
const maxExpanded = 64 << 20

func newExpander(s *scope, r *report) *expander {
	return &expander{scope: s, report: r, warned: map[string]bool{}, room: maxExpanded}
}

func (e *expander) at(n *yaml.Node) place { return place{e.file, n.Line} }

// reserve subtracts the size of an inserted value from the remaining memory, and
// reports whether the value fits.
func (e *expander) reserve(n *yaml.Node, size int) bool {
	if e.room < 0 {
		return false
	}
	if e.room -= size; e.room < 0 {
		e.report.add(e.at(n), "", "brings the values with variables to more than %d bytes", maxExpanded)
	}
	return e.room >= 0
}

func (e *expander) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		return e.mapping(n)
	case yaml.SequenceNode:
		values := make([]any, len(n.Content))
		for i, item := range n.Content {
			values[i] = e.value(item)
		}
		return values
	default:
		return e.scalar(n)
	}
}

func (e *expander) scalar(n *yaml.Node) any {
	value, _ := scalarValue(n) // the reader has reported any fault
	if text, isText := value.(string); !isText || e.scope == nil || !strings.Contains(text, "$") {
		return value
	}
	t := newTemplated(n)
	typed := t.whole() && (n.Style == 0 || n.Style == jsonStyle)
	if typed && e.scope.declared[t.parts[0].path[0]].Type != "string" {
		return e.typed(t)
	}
	return e.text(t)
}

func (e *expander) mapping(n *yaml.Node) any {
	values := make(map[string]any, len(n.Content)/2)
	for f := range fields(n) {
		key, known := e.value(f.key).(string)
		if !known {
			key = f.key.Value
		}
		if _, twice := values[key]; twice {
			e.report.add(e.at(f.key), "", "key %q occurs twice once variables are replaced", f.key.Value)
		}
		values[key] = e.value(f.value)
	}
	return values
}

// typed returns the value of a scalar that consists of one reference.
func (e *expander) typed(t templated) any {
	p := t.parts[0]
	v := e.scope.lookup(p.path)
	switch {
	case v.found && e.room >= 0 && e.reserve(t.Node, sizeOf(v.value)):
		return deepCopy(v.value)
	case v.found:
		return unknown{}
	case p.fallback == nil || v.foreign:
		return e.unresolved(t, p, v)
	}
	value, err := plainValue(*p.fallback)
	if err != nil {
		e.report.add(e.at(t.Node), "", "default of variable %q: %v", p.path[0], err)
	}
	return value
}

// text returns the text of a scalar with references, or unknown.
func (e *expander) text(t templated) any {
	var b strings.Builder
	known := true
	for _, p := range t.parts {
		text, ok := p.text, true
		if p.path != nil {
			text, ok = e.partText(t, p)
		}
		if !e.reserve(t.Node, len(text)) {
			return unknown{}
		}
		b.WriteString(text)
		known = known && ok
	}
	if !known {
		return unknown{}
	}
	return b.String()
}

// partText returns the text that replaces a reference inside a text, and
// whether it is known.
func (e *expander) partText(t templated, p part) (string, bool) {
	v := e.scope.lookup(p.path)
	if !v.found {
		if p.fallback != nil && !v.foreign {
			return *p.fallback, true
		}
		text, known := e.unresolved(t, p, v).(string)
		return text, known
	}
	switch value := v.asText().(type) {
	case unknown:
		return "", false
	case map[string]any, []any:
		e.report.add(e.at(t.Node), "", "variable %q is %s, which cannot be part of a text", p.path[0], withArticle(typeOf(value)))
		return "", false
	default:
		return textOf(value), true
	}
}

// unresolved reports a reference without a value, and returns its replacement.
// If the whole scalar is the reference, that is an error. Inside a longer text
// it is a warning, and the reference stays as written. A text of several lines
// is often a script with its own variables, so there an undeclared name is
// reported only if it looks like a misspelling.
func (e *expander) unresolved(t templated, p part, v lookup) any {
	name := p.path[0]
	guess := e.scope.suggest(name)
	hint := ""
	if guess != "" {
		hint = suggestionText(p.naming(guess))
	}
	alone := t.whole() && t.Style&blockStyle == 0
	switch {
	case v.foreign && alone:
		e.report.add(e.at(t.Node), "", "%s is not declared%s; write $$ for a dollar sign", p.naming(name), hint)
	case v.foreign && t.lines && (guess == "" || name == strings.ToUpper(name)):
	case v.foreign:
		e.warn(t.Line, p, fmt.Sprintf("%s is not declared%s; write $$ for a dollar sign", p.naming(nf.Clip(name, maxQuote)), hint))
	case alone:
		e.report.add(e.at(t.Node), "", "variable %q has no value%s; write $%s for the text", name, hint, p.text)
	default:
		e.warn(t.Line, p, fmt.Sprintf("variable %q has no value%s and stays as it is", nf.Clip(name, maxQuote), hint))
	}
	if alone {
		return unknown{}
	}
	return p.text
}

// warn records a warning about a reference, once for each variable of a scalar.
func (e *expander) warn(line int, p part, warning string) {
	seen := fmt.Sprintf("%s:%d %s", e.file, line, p.path[0])
	if !e.warned[seen] && len(e.left) < maxFound {
		e.warned[seen] = true
		e.left = append(e.left, fmt.Sprintf("%s:%d: %s", e.file, line+p.row, warning))
	}
}

// warnings returns the warnings to show to the client.
func (e *expander) warnings() []string { return capped(e.left, "variables without a value") }

// deepCopy returns a copy of a value.
func deepCopy(value any) any {
	if value == (unknown{}) {
		return value
	}
	return runtime.DeepCopyJSONValue(value)
}

// sizeOf returns the approximate size of a value in bytes.
func sizeOf(value any) int {
	size := valueSize
	switch v := value.(type) {
	case string:
		size += len(v)
	case []any:
		for _, item := range v {
			size += sizeOf(item)
		}
	case map[string]any:
		for key, item := range v {
			size += len(key) + sizeOf(item)
		}
	}
	return size
}

// textOf returns a scalar in JSON notation, or a text without quotes.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
