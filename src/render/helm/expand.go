package helm

import (
	"bufio"
	"bytes"
	"errors"
	"reflect"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	goyaml2 "sigs.k8s.io/yaml/goyaml.v2"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// maxExpanded bounds the size of a YAML text with its aliases expanded.
const maxExpanded = 16 << 20

// expanded returns the size of a YAML text with its aliases expanded. It is 0
// for a text without aliases, and for one with a syntax error, of which nothing
// is expanded: Helm's parser reports the error to the caller. It is tooMuch for
// a text that Helm's parser can read, but the one that is used here cannot. The
// YAML parser bounds the number of aliases, but not the size of the values that
// they refer to.
func expanded(content []byte) int {
	if !mayRefer(content) {
		return 0
	}
	var root goyaml.Node
	if guarded(func() error { return goyaml.Unmarshal(content, &root) }) == nil {
		e := expansion{known: map[*goyaml.Node]int{}}
		return e.size(&root)
	}
	if hasSyntaxError(content) {
		return 0
	}
	return tooMuch
}

// hasSyntaxError reports whether Helm's YAML parser, which is another version
// of the one used above, returns an error for a text. It parses all of the text
// before it expands aliases, and expands none for a value that decodes itself.
func hasSyntaxError(content []byte) bool {
	err := guarded(func() error { return goyaml2.Unmarshal(content, &ignored{}) })
	return err != nil && !errors.Is(err, errUnread)
}

// ignored is a YAML value that is not decoded.
type ignored struct{}

var _ goyaml2.Unmarshaler = (*ignored)(nil)

// UnmarshalYAML implements goyaml2.Unmarshaler.
func (*ignored) UnmarshalYAML(func(any) error) error { return nil }

// documentsOf returns the documents of a values.yaml. Helm decodes them one by
// one.
func documentsOf(content []byte) [][]byte {
	var documents [][]byte
	lines := bytes.NewReader(slices.Concat(content, []byte("\n"))) // the reader may omit a last line that has no end
	reader := utilyaml.NewYAMLReader(bufio.NewReader(lines))
	for {
		document, err := reader.Read()
		if err != nil {
			return documents // Helm stops here, too
		}
		documents = append(documents, document)
	}
}

// mayRefer reports whether a YAML text may contain aliases.
func mayRefer(content []byte) bool { return hasToken(content, '&') && hasToken(content, '*') }

// hasToken reports whether a text contains a mark before a name, at a position
// where a YAML value can begin.
func hasToken(content []byte, mark byte) bool {
	for from := 0; ; from++ {
		next := bytes.IndexByte(content[from:], mark)
		if from += next; next < 0 || from+1 == len(content) {
			return false
		}
		begins := from == 0 || content[from-1] <= ' ' || isFlow(content[from-1])
		if name := content[from+1]; begins && (isWordByte(name) || name == '-') {
			return true
		}
	}
}

// expansion remembers the sizes of nodes.
type expansion struct{ known map[*goyaml.Node]int }

// size returns the size of a node with its aliases expanded.
func (e expansion) size(n *goyaml.Node) int {
	const nodeSize = 64
	if n.Kind == goyaml.AliasNode {
		n = n.Alias
	}
	if size, again := e.known[n]; again {
		return size
	}
	e.known[n] = tooMuch // while it is being computed: a node that contains itself
	size := nodeSize + len(n.Value)
	for _, inner := range n.Content {
		size = min(size+e.size(inner), tooMuch)
	}
	e.known[n] = size
	return size
}

// maxMultiplied bounds the memory of a chart in bytes after Helm has copied its
// subcharts once for each alias, and their values once for each import.
const maxMultiplied = 128 << 20

// multiplied estimates that memory.
func multiplied(c *chart.Chart) int {
	const chartSize = 4 << 10
	size := chartSize + valuesSize(c)
	for _, t := range c.Templates {
		size += 2*len(t.Data) + product(actionCost, bytes.Count(t.Data, []byte("{{")))
	}
	for _, d := range c.Dependencies() {
		names, imports := 0, 0
		for _, wanted := range c.Metadata.Dependencies {
			if wanted != nil && wanted.Name == d.Name() {
				names++
				imports += len(wanted.ImportValues)
			}
		}
		size = min(size+product(max(names, 1), multiplied(d))+product(imports, valuesSize(d)), tooMuch)
	}
	return size
}

// valuesSize estimates the memory of the values of a chart and its subcharts.
func valuesSize(c *chart.Chart) int {
	w, err := weigh(reflect.ValueOf(c.Values))
	if err != nil {
		return tooMuch
	}
	size := 2*w.size + product(4*itemCost, w.items)
	for _, d := range c.Dependencies() {
		size += valuesSize(d)
	}
	return min(size, tooMuch)
}
