package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// extent is how large a node is with its aliases expanded.
type extent struct {
	size  int // approximate bytes
	depth int // levels of nested values
}

// simplify replaces aliases by the nodes of their anchors, merge keys by the
// fields of their mappings, and keys by texts. It reports the faults of the
// node, adds to the size of the package, and returns the node's depth.
func (rd *reader) simplify(slot **yaml.Node) (depth int) {
	y, before := *slot, rd.size
	if y.Kind == yaml.AliasNode {
		anchor, complete := rd.anchors[y.Alias]
		if !complete {
			rd.wrong(y, "alias %q is inside its own anchor", y.Value)
			return 1
		}
		*slot = y.Alias
		rd.grow(anchor.size)
		return anchor.depth
	}
	rd.grow(valueSize + len(y.Value))
	switch y.Kind {
	case yaml.MappingNode:
		depth = rd.simplifyMapping(y)
	case yaml.SequenceNode:
		for i := range y.Content {
			depth = max(depth, rd.simplify(&y.Content[i]))
		}
	default:
		rd.checkScalar(y)
	}
	if tag := y.ShortTag(); !slices.Contains(tags, tag) {
		rd.wrong(y, "tag %q is not supported", tag)
	}
	if y.Anchor != "" {
		rd.anchors[y] = extent{rd.size - before, depth + 1}
	}
	return depth + 1
}

var tags = []string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", mergeTag}

const mergeTag = "!!merge"

// grow adds to the size of the package. Nested aliases would overflow it.
func (rd *reader) grow(size int) { rd.size = min(rd.size+size, maxSize+1) }

// simplifyMapping returns the depth of the deepest value.
func (rd *reader) simplifyMapping(y *yaml.Node) (depth int) {
	written := y.Content
	y.Content = written[:0]
	lines := map[string]int{} // of the keys
	var merged []*yaml.Node
	for i := 0; i+1 < len(written); i += 2 {
		if written[i].ShortTag() == mergeTag {
			sources, deepest := rd.merged(written[i+1])
			merged, depth = append(merged, sources...), max(depth, deepest)
			continue
		}
		key := rd.key(written[i], lines)
		depth = max(depth, rd.simplify(&written[i+1]))
		y.Content = append(y.Content, key, written[i+1])
	}
	for _, m := range merged {
		if rd.size > maxSize {
			break // one mapping may be merged any number of times
		}
		for f := range fields(m) {
			if lines[f.key.Value] == 0 {
				lines[f.key.Value] = f.key.Line
				y.Content = append(y.Content, f.key, f.value)
			}
		}
	}
	return depth
}

// merged returns the mappings that a merge key, <<, adds, and the depth of
// their deepest value.
func (rd *reader) merged(y *yaml.Node) (sources []*yaml.Node, depth int) {
	value := y
	depth = rd.simplify(&value) - 1
	sources = []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		sources, depth = value.Content, depth-1
	}
	noMapping := func(n *yaml.Node) bool { return n.Kind != yaml.MappingNode }
	if len(sources) == 0 || slices.ContainsFunc(sources, noMapping) {
		rd.wrong(y, "<< needs a mapping or a list of mappings")
	}
	return sources, depth
}

// key returns a mapping's key as a text, and adds it to the lines of the keys.
// As for kubectl, a number or boolean becomes its text. In metadata, which
// kubectl does not read, a key stays as written, so that a variable can be named
// n or on.
func (rd *reader) key(y *yaml.Node, lines map[string]int) *yaml.Node {
	written, before := y, rd.size
	rd.simplify(&written)
	text := written.Value
	switch value, _ := scalarValue(written); value.(type) {
	case nil:
		rd.wrong(y, "a key must be a text")
		return y
	case string:
	default:
		if !rd.verbatim {
			text = textOf(value)
		}
	}
	if first := lines[text]; first > 0 {
		rd.wrong(y, "key %q is written twice, first at line %d", text, first)
		rd.size = before // the text is not kept
	} else {
		lines[text] = y.Line
	}
	key := y
	if y != written || y.Anchor != "" {
		key = &yaml.Node{} // the anchor may be used as a value
	}
	*key = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text, Line: y.Line}
	return key
}

// checkScalar reports a scalar that has no valid value, and records the
// variables of a text.
func (rd *reader) checkScalar(y *yaml.Node) {
	value, err := scalarValue(y)
	if err != nil {
		rd.wrong(y, "%v", err)
	}
	text, isText := value.(string)
	if !isText || !rd.templates || !strings.Contains(text, "$") {
		return
	}
	parts, err := parseTemplate(text)
	if err != nil {
		rd.wrong(y, "%v", err)
	}
	rd.grow(partSize * len(parts))
	for _, p := range parts {
		if p.path == nil {
			continue
		}
		if _, used := rd.uses[p.path[0]]; !used {
			rd.uses[p.path[0]] = place{rd.file, y.Line}
		}
	}
}
