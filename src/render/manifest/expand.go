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
	left   []string // warnings of references that stay in texts as they are
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
		text, known := e.unresolved(n, p, v).(string)
		return text, known
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

// unresolved reports a reference without a value, and returns what takes its
// place. It is an error when the whole scalar is the reference, and inside a
// longer text a warning: the reference stays as it is written. A text of several
// lines is often a script with variables of its own, so there an undeclared one
// is not mentioned unless it looks like a misspelling.
func (e *expander) unresolved(n *node, p part, v lookup) any {
	name := p.path[0]
	guess := e.scope.suggest(name)
	hint := ""
	if guess != "" {
		hint = meant(p.naming(guess))
	}
	alone := n.parts.whole() && n.style != block
	switch {
	case v.foreign && alone:
		e.report.add(n.at, "", "%s is not declared%s; write $$ for a dollar sign", p.naming(name), hint)
	case v.foreign && n.lines && (guess == "" || name == strings.ToUpper(name)):
	case v.foreign:
		e.warn(n, p, fmt.Sprintf("%s is not declared%s; write $$ for a dollar sign", p.naming(clip(name, maxQuote)), hint))
	case alone:
		e.report.add(n.at, "", "variable %q has no value%s; write $%s for the text", name, hint, p.text)
	default:
		e.warn(n, p, fmt.Sprintf("variable %q has no value%s and stays as it is", clip(name, maxQuote), hint))
	}
	if alone {
		return unknown{}
	}
	return p.text
}

// warn keeps a warning of a reference, once for each variable of a scalar.
func (e *expander) warn(n *node, p part, warning string) {
	seen := fmt.Sprintf("%s:%d %s", n.at.file, n.at.line, p.path[0])
	if !e.warned[seen] && len(e.left) < maxFound {
		e.warned[seen] = true
		e.left = append(e.left, fmt.Sprintf("%s:%d: %s", n.at.file, n.at.line+p.row, warning))
	}
}

// warnings returns what the reader of the output should know.
func (e *expander) warnings() []string { return capped(e.left, "variables without a value") }

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
