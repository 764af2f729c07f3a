package northbound

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// strict returns what is wrong with a JSON document that encoding/json reads
// all the same, so that two readers of the document could see two requests: a
// key that is written twice, of which the last one wins, and half a surrogate
// pair, which is replaced. A number that fits nowhere is named, too: the
// library would quote it, however long it is.
func strict(document []byte) nf.Violations {
	s := &strictReader{document: document, decoder: json.NewDecoder(bytes.NewReader(document))}
	s.decoder.UseNumber()
	s.value()
	return s.wrong
}

// strictReader walks a document that is JSON and does not nest too deep.
type strictReader struct {
	document []byte
	decoder  *json.Decoder
	path     []string
	wrong    nf.Violations
}

func (s *strictReader) complain(message string) {
	if len(s.wrong) < maxComplaints {
		s.wrong = append(s.wrong, nf.Violation{Field: join(s.path), Message: message})
	}
}

// token returns the next token, or nil when there is none.
func (s *strictReader) token() json.Token {
	from := s.decoder.InputOffset()
	token, err := s.decoder.Token()
	if err != nil {
		return nil
	}
	if _, isText := token.(string); isText && halfPair(s.document[from:s.decoder.InputOffset()]) {
		s.complain("holds half of a surrogate pair, which is no character")
	}
	return token
}

func (s *strictReader) value() {
	switch t := s.token().(type) {
	case json.Delim:
		if t == '{' {
			s.object()
		} else {
			s.list()
		}
		s.token() // the closing one
	case json.Number:
		if _, err := t.Float64(); err != nil {
			s.complain("is a number out of range")
		}
	}
}

func (s *strictReader) object() {
	seen := map[string]int{}
	for s.decoder.More() {
		key, _ := s.token().(string)
		s.path = append(s.path, key)
		if seen[key]++; seen[key] == 2 {
			s.complain("is written twice")
		}
		s.value()
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *strictReader) list() {
	for i := 0; s.decoder.More(); i++ {
		s.path = append(s.path, strconv.Itoa(i))
		s.value()
		s.path = s.path[:len(s.path)-1]
	}
}

// halfPair reports whether a JSON text has an escape, such as \ud800, that is
// half of a character and has no other half beside it.
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
