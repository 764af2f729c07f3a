package aai

import (
	"maps"
	"slices"
	"strings"
)

// transaction is the changes of one request, which become visible together.
type transaction struct {
	graph   *graph
	schema  *schema
	version int    // of the API
	stamp   string // the resource version of all objects that it changes
	implied []string
	violate func(format string, args ...any)
}

// put creates or replaces an object with the children that its body lists.
func (tx *transaction) put(n *node, body map[string]any) (created bool, err *refusal) {
	body, err = adoptKeys(n, body)
	if err != nil {
		return false, err
	}
	doc, err := tx.read(n.object, body)
	if err != nil {
		return false, err
	}
	old := tx.graph.vertices[n.uri]
	if err := tx.precondition(n, old, doc.version); err != nil {
		return false, err
	}
	tx.graph.set(&vertex{node: n, version: tx.stamp, attributes: doc.attributes})
	for _, c := range doc.containers {
		if err := tx.putChildren(n, c); err != nil {
			return false, err
		}
	}
	if doc.hasEdges {
		return old == nil, tx.replaceEdges(n, doc.edges)
	}
	return old == nil, nil
}

// precondition compares the resource version that a PUT must have.
func (tx *transaction) precondition(n *node, old *vertex, version *string) *refusal {
	switch {
	case old == nil && n.parent != nil && tx.graph.vertices[n.parent.uri] == nil:
		return refuse(codeNotFound, "no parent node of type %s at %s", n.parent.object.Type, n.parent.uri)
	case old == nil && version != nil:
		return refuse(codeVersionOnCreate, "a resource version was given for %s, which does not exist", n.uri)
	case old == nil:
		return nil
	}
	return old.compare(version)
}

// compare rejects a version that is not the present one.
func (v *vertex) compare(version *string) *refusal {
	switch {
	case version == nil || *version == "":
		return refuse(codeVersionMissing, "the resource version of %s is missing", v.node.uri)
	case *version != v.version:
		return refuse(codeVersionOther, "the resource version of %s is not %s", v.node.uri, *version)
	}
	return nil
}

// putChildren puts the children that a document lists. It removes the others of
// their type, if the client may.
func (tx *transaction) putChildren(parent *node, c container) *refusal {
	listed := make(map[string]bool)
	nodes := make([]*node, len(c.bodies))
	for i, body := range c.bodies {
		keys, err := keysOf(c.object, body)
		if err != nil {
			return err
		}
		nodes[i] = newNode(parent, c.object, keys)
		listed[nodes[i].uri] = true
	}
	for _, child := range tx.graph.childrenOf(parent, c.object) {
		if listed[child.node.uri] {
			continue
		}
		if !slices.Contains(tx.implied, parent.object.Type) {
			return refuse(codeImpliedDelete, "the body omits %s, and the client may not delete children of a %s so", child.node.uri, parent.object.Type)
		}
		if err := tx.drop(child); err != nil {
			return err
		}
	}
	for i, body := range c.bodies {
		if _, err := tx.put(nodes[i], body); err != nil {
			return err
		}
	}
	return nil
}

// patch merges scalars into an object. It does not compare resource versions.
func (tx *transaction) patch(n *node, body map[string]any) *refusal {
	old := tx.graph.vertices[n.uri]
	if old == nil {
		return notFound(n)
	}
	body, err := adoptKeys(n, body)
	if err != nil {
		return err
	}
	merged := maps.Clone(old.attributes)
	for name, value := range body {
		switch child, _ := n.object.child(name); {
		case child != nil:
			return refuse(codeInvalid, "a patch of %s may not have %s", n.object.Type, name)
		case value == nil:
			delete(merged, name)
		case name != versionName:
			merged[name] = value
		}
	}
	doc, err := tx.read(n.object, merged)
	if err != nil {
		return err
	}
	tx.graph.set(&vertex{node: n, version: tx.stamp, attributes: doc.attributes})
	if doc.hasEdges {
		return tx.replaceEdges(n, doc.edges)
	}
	return nil
}

// remove deletes an object with the objects that go with it.
func (tx *transaction) remove(n *node, version *string) *refusal {
	old := tx.graph.vertices[n.uri]
	if old == nil {
		return notFound(n)
	}
	if err := old.compare(version); err != nil {
		return err
	}
	return tx.drop(old)
}

func (tx *transaction) drop(v *vertex) *refusal {
	gone := tx.cascade(v)
	if blockers := tx.blockers(gone); len(blockers) > 0 {
		return refuse(codeBlocked, "%s cannot be deleted: there are edges to %s", v.node.uri, strings.Join(blockers, ", "))
	}
	for _, v := range slices.Backward(gone) {
		for _, e := range tx.graph.edgesOf(v.node.uri) {
			tx.graph.setEdge(e, false)
			tx.touch(e.other(v.node.uri))
		}
		tx.graph.remove(v)
	}
	return nil
}

// cascade returns an object and those that are deleted with it, parents first.
func (tx *transaction) cascade(v *vertex) []*vertex {
	out := []*vertex{v}
	for _, o := range v.node.object.children {
		if tx.schema.containing(o, v.node.object).Deletion == deletionBlocks {
			continue
		}
		for _, child := range tx.graph.childrenOf(v.node, o) {
			out = append(out, tx.cascade(child)...)
		}
	}
	return out
}

// blockers returns the types of the objects that prevent the deletion of others.
func (tx *transaction) blockers(gone []*vertex) []string {
	types := make(map[string]bool)
	for _, v := range gone {
		for _, o := range v.node.object.children {
			if tx.schema.containing(o, v.node.object).Deletion == deletionBlocks && len(tx.graph.childrenOf(v.node, o)) > 0 {
				types[o.Type] = true
			}
		}
		for e := range tx.graph.edges[v.node.uri] {
			if e.rule.Deletion == deletionBlocks && e.to == v.node.uri {
				types[e.rule.From] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// touch gives an object a new resource version.
func (tx *transaction) touch(uri string) {
	if old := tx.graph.vertices[uri]; old != nil {
		tx.graph.set(&vertex{node: old.node, version: tx.stamp, attributes: old.attributes})
	}
}

func notFound(n *node) *refusal {
	return refuse(codeNotFound, "no node of type %s at %s", n.object.Type, n.uri)
}
