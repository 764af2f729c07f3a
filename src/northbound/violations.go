package northbound

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxViolations limits the number of violations in a response.
const maxViolations = 50

// violations converts the errors of the OpenAPI library to readable violations,
// without duplicates and at most maxViolations.
func violations(err error) nf.Violations {
	var wrong nf.Violations
	seen := map[string]bool{}
	walk("", err, func(v nf.Violation) bool {
		if text := v.String(); !seen[text] {
			seen[text] = true
			wrong = append(wrong, v)
		}
		return len(wrong) < maxViolations
	})
	return wrong
}

// walk yields a violation for each leaf of the tree of errors, until yield
// returns false. Field is the name of the affected parameter, or "".
func walk(field string, err error, yield func(nf.Violation) bool) bool {
	switch e := err.(type) { //nolint:errorlint // the tree is walked node by node; errors.As would jump
	case nil:
		return true
	case openapi3.MultiError:
		for _, sub := range e {
			if !walk(field, sub, yield) {
				return false
			}
		}
		return true
	case *openapi3filter.RequestError:
		return walkParameter(e, yield)
	case *openapi3.SchemaError:
		return walkSchema(field, e, yield)
	}
	return yield(nf.Violation{Field: field, Message: parameterFault(err)})
}

// parameterFault describes the error of a parameter that has no value.
func parameterFault(err error) string {
	switch {
	case errors.Is(err, openapi3filter.ErrInvalidRequired):
		return "is missing"
	case errors.Is(err, openapi3filter.ErrInvalidEmptyValue):
		return "must not be empty"
	}
	return "cannot be read"
}

func walkParameter(e *openapi3filter.RequestError, yield func(nf.Violation) bool) bool {
	var field string
	var schema *openapi3.Schema
	if p := e.Parameter; p != nil {
		field = p.Name
		if p.Schema != nil {
			schema = p.Schema.Value
		}
	}
	switch cause := e.Err.(type) { //nolint:errorlint // as in walk
	case nil:
		return yield(nf.Violation{Field: field, Message: parameterFault(nil)})
	case *openapi3filter.ParseError:
		return yield(nf.Violation{Field: field, Message: "must be " + typeName(schema)})
	default:
		return walk(field, cause, yield)
	}
}

func walkSchema(field string, e *openapi3.SchemaError, yield func(nf.Violation) bool) bool {
	path := e.JSONPointer()
	if field != "" {
		path = append([]string{field}, path...)
	}
	// The library reports "properties" for the object, once for each unknown
	// field.
	if given, ok := e.Value.(map[string]any); ok && e.SchemaField == "properties" {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if _, known := e.Schema.Properties[name]; known {
				continue
			}
			if !yield(nf.Violation{Field: join(append(slices.Clone(path), name)), Message: "is not a known field"}) {
				return false
			}
		}
		return true
	}
	if inner, ok := errors.AsType[*openapi3.SchemaError](e.Origin); ok && e.SchemaField == "allOf" {
		e, path = inner, append(path, inner.JSONPointer()...)
	}
	return yield(nf.Violation{Field: join(path), Message: violationMessage(e)})
}

// violationMessage describes a schema error without the value, which may be a secret.
func violationMessage(e *openapi3.SchemaError) string {
	switch e.SchemaField {
	case "required":
		return "is missing"
	case "nullable":
		return "must not be null"
	case "type":
		return "must be " + typeName(e.Schema) + ", not " + jsonType(e.Value)
	case "enum":
		return "must be one of " + enumeration(e.Schema.Enum)
	case "minLength":
		return "must not be empty"
	case "maxLength":
		return fmt.Sprintf("must not be longer than %d characters", *e.Schema.MaxLength)
	case "minItems":
		return fmt.Sprintf("must not have fewer than %d items", e.Schema.MinItems)
	case "maxItems":
		return fmt.Sprintf("must not have more than %d items", *e.Schema.MaxItems)
	case "minimum":
		return fmt.Sprintf("must be at least %v", *e.Schema.Min)
	case "maximum":
		return fmt.Sprintf("must be at most %v", *e.Schema.Max)
	}
	if must, ok := e.Schema.Extensions["x-must"].(string); ok {
		return "must " + must
	}
	return "does not match the OpenAPI document"
}

// typeName returns the type that a schema requires, with its article.
func typeName(schema *openapi3.Schema) string {
	switch {
	case schema == nil || schema.Type == nil:
		return "of another type"
	case schema.Type.Includes(openapi3.TypeInteger):
		return "an integer"
	case schema.Type.Includes(openapi3.TypeObject):
		return "an object"
	case schema.Type.Includes(openapi3.TypeArray):
		return "an array"
	}
	return "a " + strings.Join(schema.Type.Slice(), " or a ")
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	return "a number"
}

func enumeration(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}

// maxSegment limits the length of a name in a response. Otherwise a very long
// name would be repeated for each violation below it.
const maxSegment = 128

// join formats a path, for example oof_parameters[0].site.
func join(path []string) string {
	var b strings.Builder
	for i, segment := range path {
		segment = nf.Clip(segment, maxSegment)
		switch {
		case segment != "" && strings.Trim(segment, "0123456789") == "":
			b.WriteString("[" + segment + "]")
		case i > 0:
			b.WriteString("." + segment)
		default:
			b.WriteString(segment)
		}
	}
	return b.String()
}
