package csar

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

// get returns the value of a key of a mapping, or nil.
func get(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Kind == yaml.ScalarNode && k.Value == key {
			return v
		}
	}
	return nil
}

// scalar returns the text of a scalar, or "".
func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}
