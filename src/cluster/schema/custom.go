package schema

import (
	"maps"
	"math"
	"slices"
)

// compileCustom compiles the schema of a custom resource. Such a schema has no
// references, except to metadata.
func (d *document) compileCustom(s *served) (*kind, error) {
	r, err := readSchema(d.components[s.component])
	if err != nil {
		return nil, err
	}
	if r["properties"] == nil && !r.flag(preserve) {
		return nil, errNoSchema // an API server omits a schema that it cannot publish
	}
	c := &compiler{doc: d}
	if d.components[objectMeta] != nil {
		if c.metadata, err = d.native(objectMeta); err != nil {
			return nil, err
		}
	}
	root, err := c.node(withoutMetadata(r))
	d.charge(c.nodes)
	if err != nil {
		return nil, err
	}
	root.whole(c.metadata)
	k := &kind{root: root, status: s.status}
	if c.rules > 0 {
		k.rules, k.unruled = compileRules(r, c)
	}
	return k, nil
}

// withoutMetadata returns the schema of a complete object without its metadata
// property, which is a reference in published schemas.
func withoutMetadata(r raw) raw {
	fields, ok := r.schema("properties")
	if !ok || fields["metadata"] == nil {
		return r
	}
	r, fields = maps.Clone(r), maps.Clone(fields)
	delete(fields, "metadata")
	r["properties"] = map[string]any(fields)
	return r
}

// whole makes n the node of a complete or embedded object. metadata is nil if
// it is unknown.
func (n *node) whole(metadata *node) {
	if metadata == nil {
		metadata = &node{open: true}
	}
	if n.fields == nil {
		n.fields = map[string]*node{}
	}
	name := &node{types: text, limits: &limits{minLength: new(int64(1))}}
	n.fields["apiVersion"], n.fields["kind"], n.fields["metadata"] = name, name, metadata
	for _, name := range []string{"apiVersion", "kind"} {
		if !slices.Contains(n.required, name) {
			n.required = append(n.required, name)
		}
	}
}

// complete sets the defaults of a custom resource as an API server does before
// validation, including for a null where null is not allowed.
func (b *budget) complete(n *node, v any) {
	if n == nil || !b.spend(1) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, f := range n.fields {
			if _, ok := v[name]; !ok && f.deflt != nil {
				v[name] = b.clone(f.deflt)
			}
		}
		for name := range v {
			f := n.child(name)
			v[name] = b.instead(f, v[name])
			b.complete(f, v[name])
		}
	case []any:
		for i := range v {
			v[i] = b.instead(n.item, v[i])
			b.complete(n.item, v[i])
		}
	}
}

// instead returns the default for a null that is not allowed, otherwise v.
func (b *budget) instead(n *node, v any) any {
	if v != nil || n == nil || n.nullable || n.deflt == nil {
		return v
	}
	return b.clone(n.deflt)
}

// child returns the node of a field, or nil.
func (n *node) child(name string) *node {
	if f := n.fields[name]; f != nil {
		return f
	}
	return n.extra
}

// clone copies a JSON value as an API server decodes it: a number without a
// fraction is an integer. It stops when the budget is spent.
func (b *budget) clone(v any) any {
	if !b.spend(1) {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = b.clone(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.clone(v[i])
		}
		return out
	case float64:
		if isWhole(v) && math.Abs(v) < math.MaxInt64 {
			return int64(v)
		}
	}
	return v
}
