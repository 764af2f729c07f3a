package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML parses the documents of a YAML file.
func (rd *reader) readYAML(content []byte) []*node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	c := converter{reader: rd, anchors: map[*yaml.Node]*node{}}
	var documents []*node
	for {
		var d yaml.Node
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			rd.syntaxError(content, err)
			return nil
		}
		if !rd.begin(place{rd.file, d.Line}, 1) {
			return nil
		}
		root := c.convert(d.Content[0])
		if root.kind == scalar && root.value == nil {
			continue
		}
		if !rd.accept(root) {
			return nil
		}
		documents = append(documents, root)
	}
}

// syntaxError reports why a file is not YAML. The parser's own line is, for many
// errors, that of the beginning of the whole document; the line that people look
// for is the one up to which a file is broken in just this way.
func (rd *reader) syntaxError(content []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	at := place{file: rd.file}
	if before, after, found := strings.Cut(message, ": "); found {
		if _, err := fmt.Sscanf(before, "line %d", &at.line); err == nil {
			message = after
		}
	}
	count, _ := marks(content, maxMarks)
	times := bits.Len(uint(bytes.Count(content, []byte("\n"))))
	if rd.searched += max(len(content), 16*count) * times; rd.searched <= maxSearched {
		at.line = brokenLine(content)
	}
	rd.size += len(content)
	rd.full = rd.size > maxSize
	if tabbed(content, at.line) {
		message += " (the line is indented with a tab; use spaces)"
	}
	rd.report.add(at, "", "is not YAML: %s", message)
}

// tabbed reports whether a line is indented with a tab, which editors show like
// spaces and the parser calls a character that cannot start a token.
func tabbed(content []byte, line int) bool {
	lines := bytes.SplitN(content, []byte("\n"), line+1)
	if line < 1 || len(lines) < line {
		return false
	}
	text := lines[line-1]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	return bytes.ContainsRune(indent, '\t')
}

// maxSearched is how many bytes of a package, or what takes as long, may be
// parsed again for the sake of the lines of errors.
const maxSearched = 8 << 20

// brokenLine returns the line up to which content is broken as the whole is.
func brokenLine(content []byte) int {
	// The parser has no lines for what begins in the first one.
	content = append([]byte("#\n"), content...)
	lines := slices.Collect(bytes.Lines(content))
	whole := parseError(content)
	return sort.Search(len(lines)-1, func(line int) bool {
		return parseError(slices.Concat(lines[:line+1]...)) == whole
	})
}

// parseError returns the text of the first syntax error, or "".
func parseError(content []byte) string {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var d yaml.Node
		switch err := decoder.Decode(&d); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return err.Error()
		}
	}
}

// converter makes nodes of what the YAML parser returns.
type converter struct {
	*reader

	anchors map[*yaml.Node]*node // those that are complete
}

// convert never returns nil: what is wrong is reported, and becomes null.
func (c converter) convert(y *yaml.Node) *node {
	if y.Kind == yaml.AliasNode {
		if n, complete := c.anchors[y.Alias]; complete {
			return n
		}
		return c.wrong(y, "alias %q is inside its own anchor", y.Value)
	}
	var n *node
	switch y.Kind {
	case yaml.MappingNode:
		n = c.mapping(y)
	case yaml.SequenceNode:
		n = &node{kind: list, at: c.at(y)}
		for _, item := range y.Content {
			n.items = append(n.items, c.convert(item))
		}
	default:
		n = c.scalar(y)
	}
	if tag := y.ShortTag(); !slices.Contains(tags, tag) {
		n = c.wrong(y, "tag %q is not supported", tag)
	}
	n.measure()
	if y.Anchor != "" {
		c.anchors[y] = n
	}
	return n
}

var tags = []string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", mergeTag}

const mergeTag = "!!merge"

func (c converter) at(y *yaml.Node) place { return place{c.file, y.Line} }

func (c converter) wrong(y *yaml.Node, format string, args ...any) *node {
	c.report.add(c.at(y), "", format, args...)
	return newScalar(c.at(y), "", nil)
}

func (c converter) mapping(y *yaml.Node) *node {
	n := &node{kind: mapping, at: c.at(y)}
	seen := map[string]*node{}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.ShortTag() == mergeTag {
			merged = append(merged, c.merged(value)...)
			continue
		}
		c.add(n, seen, field{c.key(key), c.convert(value)})
	}
	for _, m := range merged {
		// One anchor may be merged any number of times, into fields that are
		// there already: what it costs counts, not what it adds.
		if c.size += valueSize * len(m.fields); c.size > maxSize {
			break
		}
		for _, f := range m.fields {
			if seen[f.key.text] == nil {
				c.add(n, seen, f)
			}
		}
	}
	return n
}

// merged returns the mappings of a merge key, <<.
func (c converter) merged(y *yaml.Node) []*node {
	value := c.convert(y)
	sources := value.items
	if value.kind == mapping {
		sources = []*node{value}
	}
	noMapping := func(n *node) bool { return n.kind != mapping }
	if len(sources) == 0 || slices.ContainsFunc(sources, noMapping) {
		c.wrong(y, "<< needs a mapping or a list of mappings")
	}
	return sources
}

// key converts a mapping's key. As for kubectl, one that is a number or a
// boolean is its text; in metadata, which is not for kubectl, a key is as it is
// written, so that a variable may be called n or on.
func (c converter) key(y *yaml.Node) *node {
	n := c.convert(y)
	if n.kind != scalar || n.value == nil {
		return c.wrong(y, "a key must be a text")
	}
	key := newScalar(c.at(y), n.text, n.value)
	if _, isText := n.value.(string); !isText && !c.verbatim {
		key.text = textOf(n.value)
	}
	key.value = key.text
	key.style, key.parts = quoted, n.parts
	return key
}

func (c converter) scalar(y *yaml.Node) *node {
	s := plain
	switch {
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		s = block
	case y.Style != 0:
		s = quoted
	}
	value, err := scalarValue(y)
	if err != nil {
		return c.wrong(y, "%v", err)
	}
	n := c.newText(c.at(y), s, y.Value, value)
	if y.Style&yaml.LiteralStyle != 0 {
		n.parts.count()
	}
	return n
}

// scalarValue returns what a scalar means to kubectl: the YAML 1.2 core types,
// YAML 1.1's booleans and octal numbers; a date is a text.
func scalarValue(y *yaml.Node) (any, error) {
	tag := y.ShortTag()
	truth, isTruth := truthOf(y.Value)
	switch {
	case tag == "!!null":
		return nil, nil
	case isTruth && (tag == "!!bool" || y.Style == 0):
		return truth, nil
	case tag == "!!bool":
		return nil, fmt.Errorf("%q is neither true nor false", clip(y.Value, maxQuote))
	case tag != "!!int" && tag != "!!float":
		return y.Value, nil
	}
	var v any
	if err := y.Decode(&v); err != nil {
		return nil, fmt.Errorf("%q is not of the type %s", clip(y.Value, maxQuote), tag)
	}
	return number(v)
}

// truthOf reads a boolean of YAML 1.1, of which YAML 1.2 has dropped most and
// Kubernetes none.
func truthOf(word string) (truth, ok bool) {
	lower, upper := strings.ToLower(word), strings.ToUpper(word)
	if word == lower || word == upper || word == upper[:1]+lower[1:] {
		truth, ok = booleans[lower]
	}
	return truth, ok
}

var booleans = map[string]bool{
	"y": true, "yes": true, "on": true, "true": true,
	"n": false, "no": false, "off": false, "false": false,
}

// plainValue returns what an unquoted scalar means.
func plainValue(text string) (any, error) {
	return scalarValue(&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)})
}

// number returns a number as unstructured objects have it: an int64 wherever
// JSON would show an integer that fits, otherwise a float64.
func number(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("is not a number that JSON knows")
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
		return v, nil
	}
	return nil, fmt.Errorf("%T is not a number", v)
}
