package aai

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// document is the body of one object, checked.
type document struct {
	attributes map[string]any
	version    *string
	edges      []any // relationships, if hasEdges
	hasEdges   bool
	containers []container
}

// container has the children of one type that a document lists.
type container struct {
	object *object
	bodies []map[string]any
}

// decode decodes a JSON object, with numbers as they are written.
func decode(data []byte) (map[string]any, *refusal) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, refuse(codeInvalid, "the body is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse(codeInvalid, "there is data after the body's JSON object")
	}
	if out == nil {
		return nil, refuse(codeInvalid, "the body is null")
	}
	return out, nil
}

// read checks the body of an object, and fills in defaults. It records violations
// for members that the version does not have.
func (tx *transaction) read(o *object, body map[string]any) (document, *refusal) {
	doc := document{attributes: make(map[string]any)}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if err := tx.readMember(&doc, o, name, body[name]); err != nil {
			return doc, err
		}
	}
	return doc, o.complete(doc.attributes)
}

func (tx *transaction) readMember(doc *document, o *object, name string, value any) *refusal {
	switch name {
	case versionName:
		text, ok := value.(string)
		if !ok {
			return refuse(codeInvalid, "%s must be a string", versionName)
		}
		doc.version = &text
		return nil
	case edgesName:
		return doc.readEdges(value)
	}
	if child, array := o.child(name); child != nil && tx.version >= child.Introduced {
		return doc.readChildren(child, name, array, value)
	}
	a, known := o.attributes[name]
	if !known || tx.version < a.since {
		tx.violate("%s: unknown attribute %q in version v%d", o.Type, name, tx.version)
		return nil
	}
	if !a.kind.has(value) {
		return refuse(codeInvalid, "%s of %s must be %s", name, o.Type, a.kind)
	}
	doc.attributes[name] = value
	return nil
}

func (doc *document) readEdges(value any) *refusal {
	list, ok := value.(map[string]any)
	if !ok {
		return refuse(codeInvalid, "%s must be an object", edgesName)
	}
	doc.edges, ok = list[edgeName].([]any)
	if !ok {
		return refuse(codeInvalid, "%s must have an array %q", edgesName, edgeName)
	}
	doc.hasEdges = true
	return nil
}

// child returns the type of the children that a member of a document has, and the
// name of the array in it.
func (o *object) child(name string) (child *object, array string) {
	for _, c := range o.children {
		if wrapper, array := c.container(); wrapper == name {
			return c, array
		}
	}
	return nil, ""
}

func (doc *document) readChildren(child *object, name, array string, value any) *refusal {
	if array != "" {
		wrapper, ok := value.(map[string]any)
		if !ok {
			return refuse(codeInvalid, "%s must be an object", name)
		}
		value = wrapper[array]
	}
	list, ok := value.([]any)
	if !ok {
		return refuse(codeInvalid, "%s must have an array", name)
	}
	c := container{object: child}
	for _, item := range list {
		body, ok := item.(map[string]any)
		if !ok {
			return refuse(codeInvalid, "a member of %s must be an object", name)
		}
		c.bodies = append(c.bodies, body)
	}
	doc.containers = append(doc.containers, c)
	return nil
}

// complete fills in defaults, and rejects attributes without the mandatory ones.
func (o *object) complete(attributes map[string]any) *refusal {
	var missing []string
	for name, a := range o.attributes {
		if attributes[name] != nil {
			continue
		}
		if a.filled {
			attributes[name] = false
		}
		if a.required {
			missing = append(missing, name)
		}
	}
	for _, names := range o.Together {
		isSet := func(name string) bool { return attributes[name] != nil }
		if slices.ContainsFunc(names, isSet) {
			missing = append(missing, slices.DeleteFunc(slices.Clone(names), isSet)...)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return refuse(codeInvalid, "missing required property of %s: %s", o.Type, strings.Join(missing, ", "))
}

// has reports whether a value has the kind.
func (k kind) has(value any) bool {
	switch v := value.(type) {
	case string:
		return k == kindText
	case bool:
		return k == kindBoolean
	case json.Number:
		_, err := v.Int64()
		return k == kindInteger && err == nil
	case []any:
		return k == kindTexts && !slices.ContainsFunc(v, func(item any) bool { return !kindText.has(item) })
	}
	return false
}

// adoptKeys sets the keys that a body omits from the path, and rejects those that
// differ.
func adoptKeys(n *node, body map[string]any) (map[string]any, *refusal) {
	out := maps.Clone(body)
	for i, name := range n.object.Keys {
		given, has := out[name]
		if has && given != n.keys[i] {
			return nil, refuse(codeInvalid, "%s is %q in the path, and %v in the body", name, n.keys[i], given)
		}
		out[name] = n.keys[i]
	}
	return out, nil
}

// keysOf returns the keys that a child's body has.
func keysOf(o *object, body map[string]any) ([]string, *refusal) {
	keys := make([]string, len(o.Keys))
	for i, name := range o.Keys {
		key, ok := body[name].(string)
		if !ok || key == "" {
			return nil, refuse(codeInvalid, "missing required property of %s: %s", o.Type, name)
		}
		keys[i] = key
	}
	return keys, nil
}
