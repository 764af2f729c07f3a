package tosca

import (
	"math"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// scripts reads the operations of the interface Vnflcm of the VNF. An operation without a
// script, such as "instantiate: []", is one that runs nothing.
func (s *scope) scripts(into map[string]Script) {
	lcm := get(s.vnf.node, "interfaces", "Vnflcm")
	common := s.values(get(lcm, "inputs"))
	operations := lcm
	if under := get(lcm, "operations"); under != nil { // TOSCA 1.3
		operations = under
	}
	for key, node := range pairs(operations) {
		if operations == lcm && slices.Contains([]string{"type", "inputs", "notifications", "description"}, key.Value) {
			continue
		}
		if key.Value == "" || len(key.Value) > maxText || nf.CheckText("operation", key.Value) != nil {
			s.r.fault(s.vnf.file, key, "an operation must have a name of at most %d bytes", maxText)
			continue
		}
		into[key.Value] = s.script(node, common)
	}
}

// script reads one operation: the name of its artifact, or a mapping with it.
func (s *scope) script(node *yaml.Node, common map[string]any) Script {
	out := Script{Inputs: common}
	if own := s.values(get(node, "inputs")); len(own) > 0 {
		out.Inputs = own
		for name, value := range common {
			if _, found := own[name]; !found {
				own[name] = value
			}
		}
	}
	implementation := node
	if node.Kind == yaml.MappingNode {
		implementation = get(node, "implementation")
		if primary := get(implementation, "primary"); primary != nil {
			implementation = primary
		}
	}
	name := scalar(implementation)
	artifact := implementation
	if name != "" {
		artifact = get(s.vnf.node, "artifacts", name)
		if artifact == nil {
			artifact = s.r.definition(s.vnf.typ, "artifacts", name)
		}
	}
	file := artifact
	if artifact != nil && artifact.Kind == yaml.MappingNode {
		file, out.Type = get(artifact, "file"), scalar(get(artifact, "type"))
	} else if artifact == nil {
		file = implementation // a file without an artifact
	}
	if scalar(file) == "" {
		return out
	}
	out.Artifact = nf.Clip(name, maxText)
	out.File = s.file(file)
	return out
}

// file returns the path in the CSAR of a file that the VNF names: relative to its own
// file, or else to the top.
func (s *scope) file(name *yaml.Node) string {
	for _, from := range [...]string{path.Dir(s.vnf.file), "."} {
		found, ok := clean(path.Join(from, name.Value))
		if _, exists := s.r.files[found]; ok && exists {
			return found
		}
	}
	s.r.fault(s.vnf.file, name, "the script %q is not in the CSAR", nf.Clip(name.Value, maxQuote))
	return ""
}

// values returns the values of a mapping.
func (s *scope) values(n *yaml.Node) map[string]any {
	out := map[string]any{}
	for key, node := range pairs(n) {
		node = s.resolve(node)
		// An input counts wherever it is used, as an alias does.
		if !s.r.count(node, 0) {
			s.r.fault(s.vnf.file, key, "the descriptor has more than %d values, with each input wherever it is used", maxNodes)
			break
		}
		out[key.Value] = s.value(node)
	}
	return out
}

// value returns a value as JSON has it.
func (s *scope) value(n *yaml.Node) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for key, value := range pairs(n) {
			out[key.Value] = s.value(value)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for item := range items(n) {
			out = append(out, s.value(item))
		}
		return out
	default:
		var out any
		switch n.Tag {
		case "!!int", "!!bool", "!!null":
			if n.Decode(&out) == nil {
				return out
			}
		case "!!float":
			if number := 0.0; n.Decode(&number) == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
				return number
			}
		}
		return n.Value
	}
}
