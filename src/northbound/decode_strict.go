package northbound

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// strict returns violations for JSON that encoding/json accepts but that two
// parsers could understand differently. Of a duplicate key the last one wins,
// and half of a surrogate pair is replaced. It also reports numbers that are
// out of range, because the OpenAPI library would quote them at full length.
func strict(document []byte) nf.Violations {
	s := &strictReader{document: document, decoder: json.NewDecoder(bytes.NewReader(document))}
	s.decoder.UseNumber()
	s.value()
	return s.wrong
}

// strictReader walks a valid JSON document whose depth has been checked.
type strictReader struct {
	document []byte
	decoder  *json.Decoder
	path     []string
	wrong    nf.Violations
}

func (s *strictReader) addViolation(message string) {
	if len(s.wrong) < maxViolations {
		s.wrong = append(s.wrong, nf.Violation{Field: join(s.path), Message: message})
	}
}

// token returns the next token, or nil at the end.
func (s *strictReader) token() json.Token {
	from := s.decoder.InputOffset()
	token, err := s.decoder.Token()
	if err != nil {
		return nil
	}
	if _, isText := token.(string); isText && syntax.HalfPair(s.document[from:s.decoder.InputOffset()]) {
		s.addViolation("contains half of a surrogate pair, which is not a character")
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
			s.addViolation("is a number out of range")
		}
	}
}

func (s *strictReader) object() {
	seen := map[string]int{}
	for s.decoder.More() {
		key, _ := s.token().(string)
		s.path = append(s.path, key)
		if seen[key]++; seen[key] == 2 {
			s.addViolation("is given twice")
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
