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
	// maxDepth limits the nesting of a document. Printing a document later may
	// need memory quadratic in its depth.
	maxDepth = 100

	// allComplaints is the largest document of which all violations are
	// collected. For a larger one only the first is reported, because the list
	// can be a hundred times larger than the document.
	allComplaints = 64 << 10
)

// Decode reads the JSON document in a request's body, validates it against the
// contract, and returns it. It returns nf.Invalid with a violation for each
// wrong field, or nf.TooLarge.
func Decode[T any](r *http.Request) (T, error) {
	document, err := io.ReadAll(r.Body)
	if err != nil {
		var none T
		return none, err
	}
	return DecodeDocument[T](r, document)
}

// DecodeDocument does the same with a document that replaces the body, for
// example one that was made from a form.
func DecodeDocument[T any](r *http.Request, document []byte) (T, error) {
	var out T
	value, err := parse(document)
	if err != nil {
		return out, faulty(err)
	}
	schema := documentSchema(r)
	if schema == nil {
		return out, fmt.Errorf("cannot decode the body of %s: the OpenAPI document describes none", r.URL.Path)
	}
	options := []openapi3.SchemaValidationOption{openapi3.VisitAsRequest()}
	if len(document) <= allComplaints {
		options = append(options, openapi3.MultiErrors())
	}
	if wrong := violations(schema.VisitJSON(value, options...)); len(wrong) > 0 {
		return out, unreadable(wrong)
	}
	err = json.Unmarshal(document, &out)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return out, unreadable(nf.Violations{{Field: e.Field, Message: "is out of range"}})
	}
	if err != nil {
		return out, fmt.Errorf("cannot decode a document that the OpenAPI document allows: %w", err)
	}
	return out, nil
}

// CheckDocument checks a JSON document that is only a part of the body. It
// applies the checks that Decode applies to every document, but no schema. It
// returns nf.Invalid.
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

// documentSchema returns the contract's schema of the request's JSON document.
// All JSON media types of an operation have the same schema.
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

// parse parses a document. Its error is nf.Violations if the faults belong to
// fields.
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

// deeper reports whether a JSON document nests deeper than the limit. For
// invalid JSON the result is undefined.
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
