package northbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const (
	// maxDepth is how deep a document may nest. What prints it later may need
	// memory that grows with the square of it.
	maxDepth = 100

	// allComplaints is the size of a document up to which everything that is
	// wrong with it is collected; of a larger one only the first thing, because
	// the list can be a hundred times larger than the document.
	allComplaints = 64 << 10
)

// Decode reads the JSON document in a request's body, holds it against the
// contract, and returns it. Its errors are nf.Invalid with a violation for each
// field that is wrong, and nf.TooLarge.
func Decode[T any](r *http.Request) (T, error) {
	document, err := io.ReadAll(r.Body)
	if err != nil {
		var none T
		return none, err
	}
	return DecodeDocument[T](r, document)
}

// DecodeDocument does the same with a document that stands for the body, as one
// that was made from a form.
func DecodeDocument[T any](r *http.Request, document []byte) (T, error) {
	var out T
	value, err := parse(document)
	if err != nil {
		return out, faulty(err)
	}
	schema := documentSchema(r)
	if schema == nil {
		return out, fmt.Errorf("cannot decode the body of %s: the contract describes none", r.URL.Path)
	}
	options := []openapi3.SchemaValidationOption{openapi3.VisitAsRequest()}
	if len(document) <= allComplaints {
		options = append(options, openapi3.MultiErrors())
	}
	if wrong := complaints(schema.VisitJSON(value, options...)); len(wrong) > 0 {
		return out, unreadable(wrong)
	}
	err = json.Unmarshal(document, &out)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return out, unreadable(nf.Violations{{Field: e.Field, Message: "is out of range"}})
	}
	if err != nil {
		return out, fmt.Errorf("cannot decode a document that the contract allows: %w", err)
	}
	return out, nil
}

// CheckDocument holds a JSON document that is only a part of the body against
// what Decode asks of every document, whatever its fields: nf.Invalid.
func CheckDocument(document []byte) error {
	if _, err := parse(document); err != nil {
		return faulty(err)
	}
	return nil
}

func faulty(err error) error {
	if wrong := nf.ViolationsOf(err); wrong != nil {
		return unreadable(wrong)
	}
	return unreadable(nf.Violations{{Message: err.Error()}})
}

// documentSchema returns what the contract says of the request's JSON document.
// All JSON types that an operation takes have the same schema.
func documentSchema(r *http.Request) *openapi3.Schema {
	op := callOf(r.Context()).operation
	if op == nil || op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content["application/json"]
	if media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// parse reads a document. Its error is nf.Violations where the faults have
// names.
func parse(document []byte) (any, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil, errors.New("the body is empty")
	}
	if deeper(document, maxDepth) {
		return nil, fmt.Errorf("the document nests deeper than %d levels", maxDepth)
	}
	if !utf8.Valid(document) {
		return nil, errors.New("the body is not UTF-8")
	}
	var value any
	err := json.Unmarshal(document, &value)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column, message := syntax.JSON(document)
		return nil, fmt.Errorf("the body is not JSON: line %d, column %d: %s", line, column, message)
	}
	if wrong := strict(document); wrong != nil {
		return nil, wrong
	}
	return value, err
}

// deeper reports whether a JSON document nests deeper than the limit. Of what
// is not JSON it may say anything.
func deeper(document []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
