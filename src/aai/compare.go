package aai

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

const (
	actionPut    = "put"
	actionDelete = "delete"
)

// create returns the change that creates an object with its children and edges.
func (d Document) create() change { return change{actionPut, d.Path, d.body()} }

// remove returns the change that deletes an object in the state in which it was read.
func remove(path string, have map[string]any) change {
	return change{actionDelete, path + "?" + url.Values{versionName: {versionOf(have)}}.Encode(), map[string]any{}}
}

// removeAll returns the changes that delete an object after those of its children that
// prevent it. Children of others are left, and A&AI then rejects the deletion.
func removeAll(owner, path string, have map[string]any) (out []change) {
	children := childrenOf(path, have)
	for _, child := range slices.Sorted(maps.Keys(children)) {
		if blocking[typeOf(child)] && children[child][ownerName] == owner {
			out = append(out, remove(child, children[child]))
		}
	}
	return append(out, remove(path, have))
}

func versionOf(have map[string]any) string { return fmt.Sprint(have[versionName]) }

// compare returns the changes that make an object, as A&AI has it, equal to a
// document: its attributes, its children at their own paths, and its edges last,
// because an edge changes the versions of both its ends. Attributes and children that
// others have added stay.
func compare(owner string, want Document, have map[string]any) []change {
	attributes, edges := compareOne(owner, want, have)
	return append(attributes, edges...)
}

func compareOne(owner string, want Document, have map[string]any) (attributes, edges []change) {
	if want.differs(have) {
		attributes = append(attributes, change{actionPut, want.Path, want.merge(have)})
	}
	edges = compareEdges(want, have)
	present := childrenOf(want.Path, have)
	for _, c := range want.Children {
		child, exists := present[c.Path]
		delete(present, c.Path)
		if !exists {
			attributes = append(attributes, c.create())
			continue
		}
		a, e := compareOne(owner, c, child)
		attributes, edges = append(attributes, a...), append(edges, e...)
	}
	for _, path := range slices.Sorted(maps.Keys(present)) {
		if present[path][ownerName] == owner {
			edges = append(edges, remove(path, present[path]))
		}
	}
	return attributes, edges
}

// differs reports whether an attribute of the document has another value.
func (d Document) differs(have map[string]any) bool {
	for name, want := range d.Attributes {
		if !equal(want, have[name]) {
			return true
		}
	}
	return false
}

// equal reports whether a wanted value and a decoded one are the same. The order of a
// list does not matter.
func equal(want, have any) bool {
	if list, ok := want.([]string); ok {
		given, ok := have.([]any)
		if !ok || len(given) != len(list) {
			return false
		}
		var texts []string
		for _, g := range given {
			texts = append(texts, fmt.Sprint(g))
		}
		return slices.Equal(slices.Sorted(slices.Values(list)), slices.Sorted(slices.Values(texts)))
	}
	if n, ok := have.(json.Number); ok {
		return fmt.Sprint(want) == n.String()
	}
	return want == have
}

// merge returns the body of a PUT that replaces an object: the attributes that it has,
// with those of the document, and the version in which it was compared. Children and
// edges are omitted, so that they stay.
func (d Document) merge(have map[string]any) map[string]any {
	out := make(map[string]any)
	for name, value := range have {
		if name != edgesName && isAttribute(value) {
			out[name] = value
		}
	}
	for name, value := range d.Attributes {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = value
	}
	out[versionName] = versionOf(have)
	return out
}

// isAttribute reports whether a member of an object is not a container.
func isAttribute(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return false
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool {
			_, isObject := item.(map[string]any)
			return isObject
		})
	}
	return true
}

// childrenOf returns the children of an object, of the types that documents contain,
// by their paths.
func childrenOf(path string, have map[string]any) map[string]map[string]any {
	out := make(map[string]map[string]any)
	add := func(prefix, array string, list any) {
		items, _ := list.([]any)
		for _, item := range items {
			child, _ := item.(map[string]any)
			if key, ok := child[childKeys[array]].(string); ok {
				out[join(prefix, key)] = child
			}
		}
	}
	for name, value := range have {
		if childKeys[name] != "" {
			add(path+"/"+name, name, value)
		}
		wrapper, _ := value.(map[string]any)
		for array, list := range wrapper {
			if childKeys[array] != "" {
				add(path+"/"+name+"/"+array, array, list)
			}
		}
	}
	return out
}

// compareEdges returns the changes that add missing edges. An edge to another object
// of the same type is removed first, because most objects can have one only.
func compareEdges(want Document, have map[string]any) (out []change) {
	present := edgesOf(have)
	for _, target := range want.Edges {
		if slices.Contains(present, normalPath(target)) {
			continue
		}
		for _, other := range present {
			if typeOf(other) == typeOf(target) && !slices.Contains(want.Edges, other) {
				out = append(out, change{actionDelete, want.Path + edgePath, edgeTo(other)})
			}
		}
		out = append(out, change{actionPut, want.Path + edgePath, edgeTo(target)})
	}
	return out
}

// edgesOf returns the paths of the objects that an object is related to.
func edgesOf(have map[string]any) (out []string) {
	list, _ := have[edgesName].(map[string]any)
	edges, _ := list[edgeName].([]any)
	for _, item := range edges {
		edge, _ := item.(map[string]any)
		if link, ok := edge["related-link"].(string); ok {
			out = append(out, normalPath(link))
		}
	}
	return out
}

// typeOf returns the type of the object at a path, such as "generic-vnf". All types
// that documents are related to have one key, except for cloud regions.
func typeOf(path string) string {
	segments := strings.Split(path, "/")
	if n := len(segments); n > 2 && segments[n-3] == "cloud-region" {
		return segments[n-3]
	}
	return segments[max(len(segments)-2, 0)]
}
