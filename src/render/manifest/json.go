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

	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

func isJSON(file string) bool { return strings.EqualFold(path.Ext(file), ".json") }

// readJSON parses the values of a JSON file, one after the other.
func (rd *reader) readJSON(content []byte) []*node {
	p := jsonParser{reader: rd, content: content, decoder: json.NewDecoder(bytes.NewReader(content)), line: 1}
	p.decoder.UseNumber()
	var documents []*node
	for {
		root, err := p.value(0)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			rd.syntaxFault(p.at(), content, err)
			return nil
		}
		if !rd.begin(root.at, 1) {
			return nil
		}
		if root.kind == scalar && root.value == nil {
			continue
		}
		if !rd.accept(root) {
			return nil
		}
		documents = append(documents, root)
	}
}

// syntaxFault reports why a file is not JSON.
func (rd *reader) syntaxFault(at place, content []byte, err error) {
	message := err.Error()
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		var column int
		at.line, column, message = syntax.JSONStream(content)
		message = fmt.Sprintf("column %d: %s", column, message)
	}
	rd.report.add(at, "", "is not JSON: %s", message)
}

// jsonParser makes nodes of JSON tokens; encoding/json keeps no positions, and
// a YAML parser does not read all of JSON's escapes.
type jsonParser struct {
	*reader

	content []byte
	decoder *json.Decoder
	line    int
	counted int64 // bytes whose lines are in line
}

// at returns the place of the end of the last token.
func (p *jsonParser) at() place {
	end := min(p.decoder.InputOffset(), int64(len(p.content)))
	p.line += bytes.Count(p.content[p.counted:end], []byte("\n"))
	p.counted = end
	return place{p.file, p.line}
}

// value returns the next value, or nil at the end of a list or mapping. The
// error is io.EOF only where the file may end.
func (p *jsonParser) value(depth int) (*node, error) {
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
	at := p.at()
	switch t := token.(type) {
	case json.Delim:
		switch t {
		case '{':
			return p.mapping(at, depth)
		case '[':
			return p.list(at, depth)
		}
		return nil, nil
	case string:
		if halfPair(p.content[from:p.decoder.InputOffset()]) {
			return nil, errors.New("a text has half of a surrogate pair, which is no character")
		}
		return p.newText(at, inJSON, t, t), nil
	case json.Number:
		value, err := jsonNumber(t)
		return newScalar(at, t.String(), value), err
	default:
		return newScalar(at, textOf(t), t), nil
	}
}

// halfPair reports whether a JSON text has an escape, such as \ud800, that is
// half of a character and has no other half beside it. The decoder puts another
// character in its place.
func halfPair(text []byte) bool {
	high := false // whether the escape before this one waits for its other half
	for i := 0; i < len(text); i++ {
		code := uint64(0)
		if text[i] == '\\' {
			if text[i+1] == 'u' {
				code, _ = strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
				i += 4
			}
			i++
		}
		low := code >= 0xdc00 && code < 0xe000
		if low != high {
			return true
		}
		high = code >= 0xd800 && code < 0xdc00
	}
	return high
}

func jsonNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errors.New("a number is out of range")
	}
	return number(f)
}

func (p *jsonParser) mapping(at place, depth int) (*node, error) {
	n := &node{kind: mapping, at: at}
	defer n.measure()
	seen := map[string]*node{}
	for {
		key, err := p.value(depth + 1)
		if err != nil || key == nil {
			return n, err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		key.style = quoted
		p.add(n, seen, field{key, value})
	}
}

func (p *jsonParser) list(at place, depth int) (*node, error) {
	n := &node{kind: list, at: at}
	defer n.measure()
	for {
		item, err := p.value(depth + 1)
		if err != nil || item == nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
}
