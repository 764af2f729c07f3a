package aai

import (
	"cmp"
	"maps"
	"slices"
)

// graph is the objects and the edges between them, except for containment, which
// their URIs express. It remembers how to undo the changes since the last commit.
type graph struct {
	vertices map[string]*vertex         // by URI
	children map[string]map[string]bool // URIs by the parent's URI
	edges    map[string]map[edge]bool   // by the URI of either end
	made     int                        // vertices ever made
	undo     []func()
	changed  []change // since the last call of take
	kept     int      // of them, those before the last commit
}

// change is the creation, change or removal of an object.
type change struct{ from, to *vertex } // nil: it did not exist, or does no longer

// vertex is one object. It is not changed, but replaced.
type vertex struct {
	node       *node
	number     int // in the order of creation
	version    string
	attributes map[string]any
}

// edge is a relationship.
type edge struct {
	rule     *rule
	from, to string // URIs
}

func newGraph() *graph {
	return &graph{vertices: map[string]*vertex{}, children: map[string]map[string]bool{}, edges: map[string]map[edge]bool{}}
}

// set stores an object.
func (g *graph) set(v *vertex) {
	uri := v.node.uri
	old := g.vertices[uri]
	if old == nil {
		g.made++
		v.number = g.made
	} else {
		v.number = old.number
	}
	g.vertices[uri] = v
	g.changed = append(g.changed, change{old, v})
	setMember(g.children, v.node.parent.address(), uri, true)
	g.undo = append(g.undo, func() {
		if old != nil {
			g.vertices[uri] = old
			return
		}
		delete(g.vertices, uri)
		setMember(g.children, v.node.parent.address(), uri, false)
	})
}

// remove removes an object without its children and edges.
func (g *graph) remove(v *vertex) {
	uri, parent := v.node.uri, v.node.parent.address()
	delete(g.vertices, uri)
	setMember(g.children, parent, uri, false)
	g.changed = append(g.changed, change{v, nil})
	g.undo = append(g.undo, func() {
		g.vertices[uri] = v
		setMember(g.children, parent, uri, true)
	})
}

// setEdge adds or removes an edge, and reports whether that changed anything.
func (g *graph) setEdge(e edge, present bool) bool {
	if g.edges[e.from][e] == present {
		return false
	}
	put := func(present bool) {
		setMember(g.edges, e.from, e, present)
		setMember(g.edges, e.to, e, present)
	}
	put(present)
	g.undo = append(g.undo, func() { put(!present) })
	return true
}

// commit makes the changes permanent.
func (g *graph) commit() { g.undo, g.kept = nil, len(g.changed) }

// take returns the permanent changes since its last call, in their order.
func (g *graph) take() []change {
	out := g.changed[:g.kept]
	g.changed, g.kept = nil, 0
	return out
}

// rollback undoes the changes since the last commit.
func (g *graph) rollback() {
	for _, undo := range slices.Backward(g.undo) {
		undo()
	}
	g.undo, g.changed = nil, g.changed[:g.kept]
}

// setMember adds a member to one of several sets, or removes it.
func setMember[K, M comparable](sets map[K]map[M]bool, key K, member M, present bool) {
	switch {
	case !present:
		delete(sets[key], member)
		if len(sets[key]) == 0 {
			delete(sets, key)
		}
	case sets[key] == nil:
		sets[key] = map[M]bool{member: true}
	default:
		sets[key][member] = true
	}
}

// childrenOf returns the children of a type in the order of their creation; nil is
// the root.
func (g *graph) childrenOf(parent *node, o *object) []*vertex {
	var out []*vertex
	for uri := range g.children[parent.address()] {
		if v := g.vertices[uri]; v.node.object == o {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *vertex) int { return cmp.Compare(a.number, b.number) })
	return out
}

// edgesOf returns the edges of an object in a fixed order.
func (g *graph) edgesOf(uri string) []edge {
	return slices.SortedFunc(maps.Keys(g.edges[uri]), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.rule.Label, b.rule.Label))
	})
}

// other returns the end of an edge that is not uri.
func (e edge) other(uri string) string {
	if e.from == uri {
		return e.to
	}
	return e.from
}
