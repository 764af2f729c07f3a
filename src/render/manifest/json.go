package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

func isJSON(file string) bool { return strings.EqualFold(path.Ext(file), ".json") }

// readJSON parses the values of a JSON file, which may follow one another.
func (rd *reader) readJSON(content []byte) []*yaml.Node {
	p := jsonParser{content: content, decoder: json.NewDecoder(bytes.NewReader(content)), line: 1}
	p.decoder.UseNumber()
	documents, err := rd.collect(func() (*yaml.Node, error) {
		root, err := p.value(0)
		if err != nil {
			return nil, err
		}
		return &yaml.Node{Kind: yaml.DocumentNode, Line: root.Line, Content: []*yaml.Node{root}}, nil
	})
	if err != nil {
		rd.syntaxFault(place{rd.file, p.at()}, content, err)
	}
	return documents
}

// syntaxFault reports why a file is not valid JSON.
func (rd *reader) syntaxFault(at place, content []byte, err error) {
	message := err.Error()
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		var column int
		at.line, column, message = syntax.JSONStream(content)
		message = fmt.Sprintf("column %d: %s", column, message)
	}
	rd.report.add(at, "", "is not JSON: %s", message)
}

// jsonParser builds nodes from JSON tokens: encoding/json keeps no positions,
// and a YAML parser does not read all escapes of JSON.
type jsonParser struct {
	content []byte
	decoder *json.Decoder
	line    int
	counted int64 // bytes whose line breaks are counted in line
}

// at returns the line in which the last token ends.
func (p *jsonParser) at() int {
	end := min(p.decoder.InputOffset(), int64(len(p.content)))
	p.line += bytes.Count(p.content[p.counted:end], []byte("\n"))
	p.counted = end
	return p.line
}

// value returns the next value, or nil at the end of a list or mapping. The
// error is io.EOF only where the file may end.
func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	from := p.decoder.InputOffset()
	token, err := p.decoder.Token()
	if err != nil {
		if depth > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("it is nested too deep")
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.at()}
	switch t := token.(type) {
	case json.Delim:
		return p.nested(n, t, depth)
	case string:
		if syntax.HalfPair(p.content[from:p.decoder.InputOffset()]) {
			return nil, errors.New("a string contains half of a surrogate pair, which is not a character")
		}
		n.Value, n.Tag, n.Style = t, "!!str", jsonStyle
	case json.Number:
		if _, err := t.Float64(); err != nil {
			return nil, errors.New("a number is out of range")
		}
		n.Value = t.String()
	case bool:
		n.Value, n.Tag = strconv.FormatBool(t), "!!bool"
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

// nested reads the items of a list, or the keys and values of a mapping.
func (p *jsonParser) nested(n *yaml.Node, delim json.Delim, depth int) (*yaml.Node, error) {
	switch delim {
	case '{':
		n.Kind = yaml.MappingNode
	case '[':
		n.Kind = yaml.SequenceNode
	default:
		return nil, nil
	}
	for {
		child, err := p.value(depth + 1)
		if err != nil || child == nil {
			return n, err
		}
		n.Content = append(n.Content, child)
	}
}
