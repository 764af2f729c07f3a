package manifest

import "strings"

// node is a value of a parsed document and the place where it was written.
// Aliases share the node of their anchor.
type node struct {
	kind   kind
	at     place
	style  style
	text   string   // of a scalar: as written, quotes and escapes resolved
	value  any      // of a scalar: nil, bool, int64, float64 or string
	parts  template // of a string with variables
	lines  bool     // of a string with variables: whether it has several lines
	fields []field  // of a mapping, in order, keys distinct
	items  []*node  // of a list
	size   int      // about how many bytes it takes, its aliases written out
	depth  int      // how many values are inside each other
}

type kind int

const (
	scalar kind = iota
	mapping
	list
)

// style says what a scalar that is nothing but a variable turns into.
type style int

const (
	plain  style = iota // unquoted YAML: the variable's value
	inJSON              // a JSON string: the same, since JSON has no other way to say it
	quoted              // text
	block               // text of several lines, which is often a script with variables of its own
)

type field struct {
	key   *node // a scalar whose text counts
	value *node
}

// get returns the value of a mapping's field, or nil.
func (n *node) get(key string) *node {
	for _, f := range n.fields {
		if f.key.text == key {
			return f.value
		}
	}
	return nil
}

// literal returns the value of a node without variables.
func (n *node) literal() any {
	return newExpander(&scope{}, &report{}).value(n)
}

func newScalar(at place, text string, value any) *node {
	return &node{at: at, text: text, value: value, size: valueSize + len(text), depth: 1}
}

// measure sets size and depth from the node's children.
func (n *node) measure() {
	n.size, n.depth = valueSize+len(n.text), 1
	for _, f := range n.fields {
		n.size, n.depth = n.size+f.key.size+f.value.size, max(n.depth, f.value.depth+1)
	}
	for _, i := range n.items {
		n.size, n.depth = n.size+i.size, max(n.depth, i.depth+1)
	}
	n.size = min(n.size, maxSize+1) // aliases of aliases grow without end
}

// reader parses the files of one package.
type reader struct {
	report    *report
	templates bool             // whether strings may have variables
	verbatim  bool             // whether keys are as they are written
	uses      map[string]place // variable → where it is used first
	size      int              // of all that has been read, aliases written out
	marks     int              // in all that has been read
	documents int              // how many there are, empty ones too
	full      bool             // whether one of these was too much; no more is read then
	searched  int              // how many bytes have been parsed again to find errors
	file      string           // being read
}

const (
	maxFile      = 4 << 20   // bytes of a file
	maxMarks     = 256 << 10 // in all files of a package; see marks
	maxSize      = 32 << 20  // of all files of a package, aliases written out
	maxDocuments = 5000      // in all files of a package
	maxDepth     = 200
	valueSize    = 64 // what a value takes beside its text
	partSize     = 64 // what a part of a template takes beside its text
)

// read returns the documents of a file, without empty ones: none if something
// is wrong with any.
func (rd *reader) read(file string, content []byte) []*node {
	rd.file = file
	before := len(rd.report.found)
	if rd.full || !rd.readable(content) {
		return nil
	}
	var documents []*node
	if isJSON(file) {
		documents = rd.readJSON(content)
	} else {
		documents = rd.readYAML(content)
	}
	if len(rd.report.found) > before {
		return nil
	}
	return documents
}

// accept counts a document, and tells whether it is within bounds.
func (rd *reader) accept(root *node) bool {
	rd.size += root.size
	switch {
	case root.depth > maxDepth:
		rd.report.add(root.at, "", "is nested more than %d deep", maxDepth)
	case rd.size > maxSize:
		rd.full = true
		rd.report.add(root.at, "", "makes the package too large, its aliases written out")
	default:
		return true
	}
	return false
}

// begin counts the documents that begin at a place, and tells whether there may
// be so many.
func (rd *reader) begin(at place, documents int) bool {
	if rd.documents += documents; rd.documents > maxDocuments && !rd.full {
		rd.full = true
		rd.report.add(at, "", "brings the package to more than %d documents", maxDocuments)
	}
	return !rd.full
}

// newText returns a scalar, and finds the variables in it.
func (rd *reader) newText(at place, s style, text string, value any) *node {
	n := newScalar(at, text, value)
	n.style = s
	if _, isText := value.(string); !isText || !rd.templates {
		return n
	}
	parts, err := parseTemplate(text)
	if err != nil {
		rd.report.add(at, "", "%v", err)
	}
	n.size += partSize * len(parts)
	for _, p := range parts {
		if p.path == nil {
			continue
		}
		n.parts = parts
		if _, used := rd.uses[p.path[0]]; !used {
			rd.uses[p.path[0]] = at
		}
	}
	if n.parts == nil && err == nil {
		n.value = parts.literal()
	}
	n.lines = n.parts != nil && (s == block || strings.Contains(text, "\n"))
	return n
}

// add appends a field to a mapping, and refuses a second one of the same key.
func (rd *reader) add(n *node, seen map[string]*node, f field) {
	if first := seen[f.key.text]; first != nil {
		rd.report.add(f.key.at, "", "key %q is written twice, first at line %d", f.key.text, first.at.line)
		return
	}
	seen[f.key.text] = f.key
	n.fields = append(n.fields, f)
}
