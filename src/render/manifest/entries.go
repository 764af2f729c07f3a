package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// entries returns the entries of a list of the metadata, whose values may have variables.
func (m *metadataReader) entries(f field, noun string, most int) []*yaml.Node {
	switch list := f.value; {
	case isNull(list):
	case list.Kind != yaml.SequenceNode:
		m.add(list, f.key.Value, "must be a list of %s", noun)
	case len(list.Content) > most:
		m.add(list.Content[most], f.key.Value, "has more than %d entries", most)
	default:
		return list.Content
	}
	return nil
}

// useEntries checks the templates in the lists of the metadata, and records the variables
// that they use. A secret cannot be one of them, because their entries are shown.
func (p *parsedPackage) useEntries(rd *reader) {
	secrets := p.secretNames()
	var visit func(n *yaml.Node, shown string)
	visit = func(n *yaml.Node, shown string) {
		if n.Kind != yaml.ScalarNode {
			for _, child := range n.Content {
				visit(child, shown)
			}
			return
		}
		rd.checkScalar(n)
		parts, err := parseTemplate(n.Value)
		if err != nil {
			return // checkScalar has reported it
		}
		for _, part := range parts {
			for _, name := range part.path {
				if secrets.Has(name, name) {
					rd.wrong(n, "variable %q is secret, and %s are shown", part.path[0], shown)
					return
				}
			}
		}
	}
	rd.file = p.meta.at.file
	for _, n := range p.meta.networks {
		visit(n, "attachments")
	}
	for _, n := range p.meta.volumes {
		visit(n, "volumes")
	}
	for _, n := range p.meta.clusters {
		visit(n, "workload_clusters")
	}
	for _, f := range p.meta.profiles {
		visit(f.value, "compute_profiles")
	}
}

// entryReader reads one entry of a list of the metadata.
type entryReader struct {
	e      *expander
	field  string
	hollow bool // a value is unknown, or has a fault
}

// wrong reports a fault of a field.
func (r *entryReader) wrong(n *yaml.Node, field, format string, args ...any) {
	r.hollow = true
	r.e.report.add(r.e.at(n), r.field+field, format, args...)
}

// value returns a value with its variables replaced; nil if it is unknown.
func (r *entryReader) value(n *yaml.Node) any {
	v := r.e.value(n)
	if v == (unknown{}) {
		r.hollow = true
		return nil
	}
	return v
}

// place returns the place of an entry.
func (r *entryReader) place(n *yaml.Node) nf.Place {
	return nf.Place{Field: r.field, File: r.e.file, Lines: r.e.lines(document{root: n, again: func() *yaml.Node { return n }})}
}

func (r *entryReader) unknownKey(key *yaml.Node, field string, allowed ...string) {
	r.wrong(key, field, "unknown key %q%s; allowed: %s", key.Value, r.e.report.suggest(key.Value, allowed...), strings.Join(allowed, ", "))
}

// text reads a text. Null counts as empty: it is a default of a variable.
func (r *entryReader) text(n *yaml.Node, field string) string {
	v := r.value(n)
	text, is := v.(string)
	if v != nil && !is {
		r.wrong(n, field, "must be a text, got %s", typeOf(v))
	}
	return text
}
