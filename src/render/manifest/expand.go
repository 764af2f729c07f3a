package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// expander makes the values of nodes, with variables replaced. Every value is
// fresh: two aliases of one anchor do not share it.
type expander struct {
	scope  *scope
	report *report
	left   []string // warnings of variables that were left in texts, distinct
	warned map[string]bool
	room   int // bytes that values with variables may still take
}

// maxExpanded bounds what a package can make of its variables' values: a small
// package can use a large value any number of times.
const maxExpanded = 64 << 20

func newExpander(s *scope, r *report) *expander {
	return &expander{scope: s, report: r, warned: map[string]bool{}, room: maxExpanded}
}

// take counts the size of a value that is put in, and reports whether there is
// room for it.
func (e *expander) take(n *node, size int) bool {
	if e.room < 0 {
		return false
	}
	if e.room -= size; e.room < 0 {
		e.report.add(n.at, "", "brings the values with variables to more than %d bytes", maxExpanded)
	}
	return e.room >= 0
}

func (e *expander) value(n *node) any {
	switch n.kind {
	case mapping:
		return e.mapping(n)
	case list:
		values := make([]any, len(n.items))
		for i, item := range n.items {
			values[i] = e.value(item)
		}
		return values
	case scalar:
	}
	if n.parts == nil {
		return n.value
	}
	if p := n.parts[0]; n.parts.whole() && e.scope.keepsType(n.style, p.path[0]) {
		return e.typed(n, p)
	}
	return e.text(n)
}

func (e *expander) mapping(n *node) any {
	values := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		key := f.key.text
		if text, known := e.keyText(f.key); known {
			key = text
		}
		if _, twice := values[key]; twice {
			e.report.add(f.key.at, "", "key %q is there twice once variables are replaced", f.key.text)
		}
		values[key] = e.value(f.value)
	}
	return values
}

func (e *expander) keyText(key *node) (text string, known bool) {
	if key.parts == nil {
		text, known = key.value.(string)
		return text, known
	}
	text, known = e.text(key).(string)
	return text, known
}

// typed returns the value of a scalar that is one variable.
func (e *expander) typed(n *node, p part) any {
	v := e.scope.lookup(p.path)
	switch {
	case v.found && e.room >= 0 && e.take(n, sizeOf(v.value)):
		return fresh(v.value)
	case v.found:
		return unknown{}
	case p.fallback == nil || v.foreign:
		return e.unresolved(n, p, v)
	}
	value, err := plainValue(*p.fallback)
	if err != nil {
		e.report.add(n.at, "", "default of variable %q: %v", p.path[0], err)
	}
	return value
}

// text returns the text of a scalar with variables, or unknown.
func (e *expander) text(n *node) any {
	var b strings.Builder
	known := true
	for _, p := range n.parts {
		text, ok := p.text, true
		if p.path != nil {
			text, ok = e.partText(n, p)
		}
		if !e.take(n, len(text)) {
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

// partText returns what a reference is inside a text, and whether it is known.
func (e *expander) partText(n *node, p part) (string, bool) {
	v := e.scope.lookup(p.path)
	if !v.found {
		if p.fallback != nil && !v.foreign {
			return *p.fallback, true
		}
		e.unresolved(n, p, v)
		return p.text, true
	}
	switch value := v.asText().(type) {
	case unknown:
		return "", false
	case map[string]any, []any:
		e.report.add(n.at, "", "variable %q is %s, which cannot be part of a text", p.path[0], withArticle(typeOf(value)))
		return "", false
	default:
		return textOf(value), true
	}
}

// unresolved returns the reference as it is written, and says so: it is an
// error when the whole scalar is the reference, unless the variable is none of
// the package's, and a warning inside a longer text.
func (e *expander) unresolved(n *node, p part, v lookup) any {
	switch {
	case v.foreign:
	case n.parts.whole() && n.style != block:
		e.report.add(n.at, "", "variable %q has no value; write $%s for the text", p.path[0], p.text)
	default:
		e.warn(fmt.Sprintf("%s:%d: variable %q has no value and stays as it is", n.at.file, n.at.line, p.path[0]))
	}
	return p.text
}

func (e *expander) warn(warning string) {
	if !e.warned[warning] && len(e.left) < maxFound {
		e.warned[warning] = true
		e.left = append(e.left, warning)
	}
}

// warnings returns what the reader of the output should know.
func (e *expander) warnings() []string {
	left := e.left
	if more := len(left) - maxShown; more > 0 {
		left = append(left[:maxShown:maxShown], fmt.Sprintf("and %d more variables without a value", more))
	}
	return left
}

// fresh returns a copy of a value.
func fresh(value any) any {
	if value == (unknown{}) {
		return value
	}
	return runtime.DeepCopyJSONValue(value)
}

// sizeOf returns about how many bytes a value takes.
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

// textOf returns a scalar as JSON shows it, a text without quotes.
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
