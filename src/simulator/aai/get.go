package aai

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

const (
	allDepths  = 1 << 10 // the depth "all"
	maxNumbers = 1 << 20 // the largest index, size and limit
)

// query is the parameters of a GET.
type query struct {
	depth     int
	nodesOnly bool
	index     int // of the page, from 1; 0 without pages
	size      int
	limit     int
	count     bool // send the numbers of results and pages
	filters   url.Values
}

// parseQuery parses the parameters of a GET. Only a collection can be filtered.
func parseQuery(values url.Values, collection *object) (query, *refusal) {
	q := query{filters: url.Values{}}
	for name := range values {
		if err := q.set(name, values.Get(name), collection); err != nil {
			return q, err
		}
	}
	if (q.index > 0) != (q.size > 0) {
		return q, refuse(codeInvalid, "resultIndex and resultSize belong together")
	}
	return q, nil
}

func (q *query) set(name, value string, collection *object) *refusal {
	switch name {
	case "depth":
		return q.setDepth(value)
	case "nodes-only":
		q.nodesOnly = value == "" || value == "true"
	case "includeTotalCount":
		q.count = value == "true"
	case "resultIndex":
		return setPositive(&q.index, name, value)
	case "resultSize":
		return setPositive(&q.size, name, value)
	case "limit":
		return setPositive(&q.limit, name, value)
	default:
		if collection == nil {
			return refuse(codeInvalid, "unknown parameter %q", name)
		}
		if _, known := collection.attributes[name]; !known {
			return refuse(codeInvalid, "parameter %q is not an attribute of %s", name, collection.Type)
		}
		q.filters.Set(name, value)
	}
	return nil
}

func (q *query) setDepth(value string) *refusal {
	if value == "all" {
		q.depth = allDepths
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return refuse(codeDepth, "depth %q is neither a number nor all", value)
	}
	q.depth = n
	return nil
}

func setPositive(into *int, name, value string) *refusal {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxNumbers {
		return refuse(codeInvalid, "%s must be an integer from 1 to %d", name, maxNumbers)
	}
	*into = n
	return nil
}

// object returns the document of an object.
func (tx *transaction) object(n *node, q query) (map[string]any, *refusal) {
	v := tx.graph.vertices[n.uri]
	if v == nil {
		return nil, notFound(n)
	}
	return tx.render(v, q), nil
}

// collection returns the members of a type below a parent that match the query,
// and their number without pages and limit.
func (tx *transaction) collection(parent *node, o *object, q query) (out []any, total int, err *refusal) {
	var found []*vertex
	for _, v := range tx.graph.childrenOf(parent, o) {
		if v.matches(q.filters) {
			found = append(found, v)
		}
	}
	total = len(found)
	if q.index > 0 {
		found = found[min((q.index-1)*q.size, total):min(q.index*q.size, total)]
	}
	if q.limit > 0 {
		found = found[:min(q.limit, len(found))]
	}
	if len(found) == 0 {
		return nil, total, refuse(codeNotFound, "no node of type %s below %s", o.Type, cmp.Or(parent.address(), "/"))
	}
	for _, v := range found {
		out = append(out, tx.render(v, q))
	}
	return out, total, nil
}

func (v *vertex) matches(filters url.Values) bool {
	for name := range filters {
		if fmt.Sprint(v.attributes[name]) != filters.Get(name) {
			return false
		}
	}
	return true
}

// render returns the document of an object, with its children by depth.
func (tx *transaction) render(v *vertex, q query) map[string]any {
	out := maps.Clone(v.attributes)
	maps.DeleteFunc(out, func(name string, _ any) bool { return tx.version < v.node.object.attributes[name].since })
	out[versionName] = v.version
	if edges := tx.relationships(v.node); len(edges) > 0 && !q.nodesOnly {
		out[edgesName] = map[string]any{edgeName: edges}
	}
	if q.depth == 0 {
		return out
	}
	q.depth--
	for _, o := range v.node.object.children {
		if tx.version < o.Introduced {
			continue
		}
		var children []any
		for _, child := range tx.graph.childrenOf(v.node, o) {
			children = append(children, tx.render(child, q))
		}
		if len(children) == 0 {
			continue
		}
		name, array := o.container()
		out[name] = children
		if array != "" {
			out[name] = map[string]any{array: children}
		}
	}
	return out
}

// relationships returns the edges of an object, except for containment.
func (tx *transaction) relationships(n *node) []any {
	var out []any
	for _, e := range tx.graph.edgesOf(n.uri) {
		other := tx.graph.vertices[e.other(n.uri)].node
		if tx.version < other.object.Introduced {
			continue
		}
		var keys []any
		for _, at := range other.chain() {
			for i, name := range at.object.Keys {
				keys = append(keys, map[string]any{"relationship-key": at.object.Type + "." + name, "relationship-value": at.keys[i]})
			}
		}
		out = append(out, map[string]any{
			"related-to":         other.object.Type,
			"relationship-label": e.rule.Label,
			"related-link":       fmt.Sprintf("/aai/v%d%s", tx.version, other.uri),
			"relationship-data":  keys,
		})
	}
	return slices.Clip(out)
}
