// Package syntax says in plain words why a text is not the JSON or YAML that it
// should be. The libraries that read the text say it for programmers: their
// errors name functions, types and byte offsets.
package syntax

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON returns what is wrong with a text that should be one JSON document, and
// the line and column where that is. Both begin with 1. The message is empty when
// nothing is wrong.
func JSON(text []byte) (line, column int, message string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	err := next(decoder)
	if errors.Is(err, io.EOF) {
		return 1, 1, "it is empty"
	}
	if err != nil {
		return fault(text, err)
	}
	if rest := bytes.TrimLeft(text[decoder.InputOffset():], space); len(rest) > 0 {
		line, column = position(text[:len(text)-len(rest)])
		return line, column, "the document has ended before"
	}
	return 0, 0, ""
}

// JSONStream does the same with a text that should be any number of documents.
func JSONStream(text []byte) (line, column int, message string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		err := next(decoder)
		if errors.Is(err, io.EOF) {
			return 0, 0, ""
		}
		if err != nil {
			return fault(text, err)
		}
	}
}

const space = " \t\r\n"

func next(decoder *json.Decoder) error {
	var document json.RawMessage
	return decoder.Decode(&document)
}

// fault says what a decoder has found wrong with a text.
func fault(text []byte, err error) (line, column int, message string) {
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(wrong.Offset-1, 0), int64(len(text)))
		character, _ := utf8.DecodeRune(text[at:])
		line, column = position(text[:at])
		return line, column, fmt.Sprintf("%q cannot be here", character)
	}
	line, column = position(bytes.TrimRight(text, space))
	return line, column, "it ends too early"
}

// position returns where the text after what was read begins.
func position(read []byte) (line, column int) {
	return bytes.Count(read, []byte("\n")) + 1, len(read) - bytes.LastIndexByte(read, '\n')
}

// Mismatch returns the path of the field in which a value has another JSON type
// than it must have, and says so: "a string is needed, not a number". The path
// has no names of maps, nor numbers of lists, and is empty for the document
// itself. It reports false for an error of another kind.
func Mismatch(err error) (field, message string, ok bool) {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "", "", false
	}
	must := typeName(wrong.Type)
	if _, isNumber := strings.CutPrefix(wrong.Value, "number "); isNumber && (must == anInteger || must == aNumber) {
		return wrong.Field, must + " within the range is needed", true
	}
	kind, _, _ := strings.Cut(wrong.Value, " ")
	return wrong.Field, must + " is needed, not " + jsonType(kind), true
}

const (
	aNumber   = "a number"
	anInteger = "an integer"
)

// typeName returns what JSON calls the type of a field.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Float32, reflect.Float64:
		return aNumber
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return anInteger
	}
}

func jsonType(kind string) string {
	switch kind {
	case "bool":
		return "a boolean"
	case "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// yamlFault finds the line and the reason in an error of a YAML reader, which
// has no other place for them.
var yamlFault = regexp.MustCompile(`yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?([^\n]+)`)

// YAML returns what is wrong with a text that a YAML reader has refused, and the
// line, 0 when that is not known. The reader is one that makes JSON of YAML.
func YAML(err error) (line int, message string) {
	if field, message, ok := Mismatch(err); ok {
		return 0, strings.TrimPrefix(field+": "+message, ": ")
	}
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return 0, "a number is not one that JSON knows"
	}
	found := yamlFault.FindStringSubmatch(err.Error())
	if found == nil {
		return 0, "it cannot be read"
	}
	line, _ = strconv.Atoi(found[1]) // 0 when the reader names none
	switch message = found[2]; {
	case strings.HasPrefix(message, "invalid map key"): // and the key, in Go
		return line, "a key is neither a text nor a number"
	case strings.HasPrefix(message, "cannot decode"), strings.HasPrefix(message, "cannot unmarshal"): // and the value, which may be a secret
		return line, "a value is not of the type that its tag says"
	}
	return line, message
}
