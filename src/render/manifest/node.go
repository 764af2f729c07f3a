package manifest

import (
	"errors"
	"io"
	"iter"

	"go.yaml.in/yaml/v3"
)

// Documents are trees of the YAML library's nodes, for JSON files too. After
// reader.simplify they contain only mappings with distinct texts as keys, lists
// and scalars. The node of an anchor is in the tree once for each alias.

// jsonStyle is the style of a JSON string. The YAML parser sets it for no scalar.
const jsonStyle = yaml.FlowStyle

// blockStyle is the style of a text of several lines, often a script with its own
// variables.
const blockStyle = yaml.LiteralStyle | yaml.FoldedStyle

type field struct{ key, value *yaml.Node }

// fields yields the fields of a mapping in order, and none of another node.
func fields(n *yaml.Node) iter.Seq[field] {
	return func(yield func(field) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(field{n.Content[i], n.Content[i+1]}) {
				return
			}
		}
	}
}

// get returns the value of a mapping's field, or nil.
func get(n *yaml.Node, key string) *yaml.Node {
	for f := range fields(n) {
		if f.key.Value == key {
			return f.value
		}
	}
	return nil
}

// isNull reports whether a node is null or an empty value.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// literal returns the value of a node without variables.
func literal(n *yaml.Node) any { return (&expander{}).value(n) }

// reader parses the files of one package and enforces its limits.
type reader struct {
	report     *report
	templates  bool             // whether strings may have variables
	verbatim   bool             // whether keys stay as written
	uses       map[string]place // variable → its first use
	size       int              // approximate bytes read so far, with aliases expanded
	separators int              // separators read so far; see countSeparators
	documents  int              // number read so far, including empty ones
	full       bool             // a limit was exceeded; nothing more is read
	searched   int              // bytes parsed again to locate errors
	file       string           // being read

	anchors map[*yaml.Node]extent // only complete ones
}

const (
	maxFile      = 4 << 20   // bytes of a file
	maxMarks     = 256 << 10 // in all files of a package; see countSeparators
	maxSize      = 32 << 20  // bytes of all files of a package, with aliases expanded
	maxDocuments = 5000      // in all files of a package
	maxDepth     = 200
	valueSize    = 64 // bytes of a value in addition to its text
	partSize     = 64 // bytes of a part of a template in addition to its text
)

// read returns the documents of a file, without empty ones. It returns none if
// any of them has a fault.
func (rd *reader) read(file string, content []byte) []*yaml.Node {
	rd.file = file
	before := len(rd.report.found)
	if rd.full || !rd.readable(content) {
		return nil
	}
	parse := rd.readYAML
	if isJSON(file) {
		parse = rd.readJSON
	}
	documents := parse(content)
	if len(rd.report.found) > before {
		return nil
	}
	return documents
}

// collect returns the roots of the documents that next returns before io.EOF,
// without empty ones, or the first other error. It stops at a limit.
func (rd *reader) collect(next func() (*yaml.Node, error)) ([]*yaml.Node, error) {
	rd.anchors = map[*yaml.Node]extent{}
	var roots []*yaml.Node
	for {
		d, err := next()
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil || !rd.begin(d, 1) {
			return nil, err
		}
		depth := rd.simplify(&d.Content[0])
		switch root := d.Content[0]; {
		case isNull(root):
		case depth > maxDepth:
			rd.wrong(root, "is nested more than %d deep", maxDepth)
			return nil, nil
		case rd.size > maxSize:
			rd.full = true
			rd.wrong(root, "makes the package too large, its aliases written out")
			return nil, nil
		default:
			roots = append(roots, root)
		}
	}
}

// begin counts documents that begin with a node, and reports whether their
// number is within the limit.
func (rd *reader) begin(n *yaml.Node, documents int) bool {
	if rd.documents += documents; rd.documents > maxDocuments && !rd.full {
		rd.full = true
		rd.wrong(n, "brings the package to more than %d documents", maxDocuments)
	}
	return !rd.full
}

func (rd *reader) wrong(n *yaml.Node, format string, args ...any) {
	rd.report.add(place{rd.file, n.Line}, "", format, args...)
}
