package tosca

import (
	"iter"

	"go.yaml.in/yaml/v3"
)

// aliased returns the node that an alias stands for, or the node itself.
func aliased(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// pairs yields the keys and values of a mapping; none for any other node.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		n := aliased(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(aliased(n.Content[i]), aliased(n.Content[i+1])) {
				return
			}
		}
	}
}

// items yields the items of a list; none for any other node.
func items(n *yaml.Node) iter.Seq[*yaml.Node] {
	return func(yield func(*yaml.Node) bool) {
		n := aliased(n)
		if n == nil || n.Kind != yaml.SequenceNode {
			return
		}
		for _, item := range n.Content {
			if !yield(aliased(item)) {
				return
			}
		}
	}
}

// named yields the entries of a mapping, or of a list of mappings: TOSCA has both forms
// for policies and requirements.
func named(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for k, v := range pairs(n) {
			if !yield(k, v) {
				return
			}
		}
		for item := range items(n) {
			for k, v := range pairs(item) {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// get returns the value at a path of keys of mappings, or nil.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		var found *yaml.Node
		for k, v := range pairs(n) {
			if k.Kind == yaml.ScalarNode && k.Value == key {
				found = v
				break
			}
		}
		n = found
	}
	return aliased(n)
}

// scalar returns the text of a scalar, or "".
func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// isNull reports whether a value is absent or null.
func isNull(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
