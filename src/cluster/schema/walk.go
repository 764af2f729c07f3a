package schema

import (
	"strconv"
	"strings"
)

// maxFindings is the maximum number of findings per object.
const maxFindings = 100

// finding is one error in an object.
type finding struct {
	field   string
	message string

	// open means that the finding depends on an absent field. It does not hold
	// for an object that exists, where server-side apply may merge that field.
	open bool
}

// walk compares one object with its schema.
type walk struct {
	root     map[string]any // the whole object
	secret   bool           // do not quote values
	loose    bool           // check only types and unknown fields
	quiet    bool           // record only whether there is an error
	failed   bool           // there is an error
	open     bool           // the current findings depend on absent fields
	budget   *budget
	path     []segment
	findings []finding
}

// budget bounds the work of one Check in steps of about 100 ns.
type budget struct{ steps int }

func (b *budget) spend(n int) bool {
	b.steps -= n
	return b.steps >= 0
}

// segment is one step of a path: a field, a map key, or a list index. It is
// formatted only for a finding.
type segment struct {
	name  string
	index int
	how   byte // '.', '[' or '#'
}

func field(name string) segment { return segment{name: name, how: '.'} }
func key(name string) segment   { return segment{name: name, how: '['} }
func item(i int) segment        { return segment{index: i, how: '#'} }

// at calls f with the path extended by segments.
func (w *walk) at(f func(), segments ...segment) {
	n := len(w.path)
	w.path = append(w.path, segments...)
	f()
	w.path = w.path[:n]
}

// field returns the current path, in the format of API servers.
func (w *walk) field() string {
	var b strings.Builder
	for _, s := range w.path {
		switch s.how {
		case '.':
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		case '[':
			b.WriteString("[" + s.name + "]")
		case '#':
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return b.String()
}

// report adds a finding about the value at the current path, or below it.
func (w *walk) report(message string, below ...segment) {
	w.wrong(func() string { return message }, below...)
}

// reportOpen adds a finding that depends on an absent field.
func (w *walk) reportOpen(message string, below ...segment) {
	w.open = true
	w.report(message, below...)
	w.open = false
}

// wrong is report with a message that is built only if needed.
func (w *walk) wrong(message func() string, below ...segment) {
	w.failed = w.failed || !w.open || !w.loose
	if w.quiet || w.open && w.loose || len(w.findings) == maxFindings {
		return
	}
	w.at(func() { w.findings = append(w.findings, finding{w.field(), message(), w.open}) }, below...)
}

// visit compares a value with a node.
func (w *walk) visit(n *node, v any) {
	if !w.budget.spend(1) || w.quiet && w.failed {
		return
	}
	if n.loose && !w.loose {
		w.loose = true
		defer func() { w.loose = false }()
	}
	if v == nil {
		if !n.nullable && n.types != 0 {
			w.reportOpen("must be " + n.types.String() + ", got null")
		} else if n.enum != nil && !n.native {
			w.reportOpen("must be one of " + list(n.enum) + ", got null") // even if null is listed
		}
		return
	}
	allowed := n.types
	if w.loose && !n.native && n.types&integer != 0 {
		allowed |= number // server-side apply treats integers as numbers
	}
	if !allowed.allow(v) {
		w.wrong(func() string { return w.mismatch(n, v) })
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(n, v)
	case []any:
		w.array(n, v)
	case string:
		w.text(n, v)
	case int64, float64:
		w.number(n, v)
	}
	if w.loose {
		return
	}
	w.enum(n, v)
	w.combinations(n, v)
	if n.rule != nil {
		n.rule(w, v)
	}
}

func (w *walk) object(n *node, m map[string]any) {
	for name, v := range m {
		switch f := n.fields[name]; {
		case f != nil:
			w.at(func() { w.visit(f, v) }, field(name))
		case n.extra != nil:
			w.at(func() { w.visit(n.extra, v) }, key(name))
		case !n.open:
			w.wrong(func() string { return unknown(name, n.fields) }, field(name))
		}
	}
	if w.loose {
		return
	}
	for _, name := range n.required {
		if v, ok := m[name]; !ok || n.native && isZero(v) {
			w.reportOpen("is required", field(name))
		}
	}
	if l := n.limits; l != nil {
		w.count(l.minFields, l.maxFields, len(m), "field")
	}
}

// isZero reports whether Go code treats a value as absent.
func isZero(v any) bool {
	list, isList := v.([]any)
	return v == nil || v == "" || isList && len(list) == 0
}

func (w *walk) array(n *node, list []any) {
	if n.item != nil {
		for i, v := range list {
			w.at(func() { w.visit(n.item, v) }, item(i))
		}
	}
	switch n.list {
	case set:
		w.unique(list)
	case keyed:
		w.uniqueKeys(n, list)
	case plain:
	}
	if l := n.limits; l != nil && !w.loose {
		w.count(l.minItems, l.maxItems, len(list), "item")
	}
}

// unique reports duplicate values of a set.
func (w *walk) unique(list []any) {
	seen := make(map[string]bool, len(list))
	for i, v := range list {
		id := identity(v)
		if seen[id] {
			w.report("is in the list twice"+w.got(v), item(i))
		}
		seen[id] = true
	}
}

// uniqueKeys reports list items with duplicate keys, and items without a key.
func (w *walk) uniqueKeys(n *node, list []any) {
	seen := make(map[string]int, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			if v == nil {
				w.report("must be an object, got null", item(i))
			}
			continue
		}
		id, missing := n.key(m)
		first, twice := seen[id]
		switch {
		case missing != "":
			w.report("is required: it identifies the item in its list", item(i), field(missing))
		case twice:
			w.report("has the same "+w.label(n, m)+" as item "+strconv.Itoa(first), item(i))
		default:
			seen[id] = i
		}
	}
}

// key returns the identity of a list item from its keys, or the name of a key
// that is absent and has no default.
func (n *node) key(m map[string]any) (id, missing string) {
	if len(n.keys) == 1 {
		if name, ok := m[n.keys[0]].(string); ok {
			return name, ""
		}
	}
	var b strings.Builder
	for _, name := range n.keys {
		v := n.keyValue(m, name)
		if v == nil {
			return "", name
		}
		b.WriteString(identity(v) + "\x00")
	}
	return b.String(), ""
}

func (n *node) keyValue(m map[string]any, name string) any {
	if v := m[name]; v != nil || n.item == nil || n.item.fields[name] == nil {
		return v
	}
	return n.item.fields[name].deflt
}

// label formats the keys of an item.
func (w *walk) label(n *node, m map[string]any) string {
	var out []string
	for _, name := range n.keys {
		if w.secret {
			out = append(out, name)
		} else {
			out = append(out, name+" "+show(n.keyValue(m, name)))
		}
	}
	return strings.Join(out, " and ")
}
