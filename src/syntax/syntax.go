// Package syntax explains in plain words why a text is not valid JSON or YAML.
// The errors of the parsing libraries are written for programmers: they name
// functions, types and byte offsets. The package also finds strings that
// encoding/json would change silently.
//
// It only explains errors: it does not decode documents into values or check
// their schema.
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

// JSON returns the first error in a text that should be one JSON document, with
// its line and column. Both count from 1. The message is empty if the text is
// valid.
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

// JSONStream is like JSON for a text with any number of documents.
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

// fault describes a decoder's error in a text.
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

// position returns the line and column at which the text after read begins.
func position(read []byte) (line, column int) {
	return bytes.Count(read, []byte("\n")) + 1, len(read) - bytes.LastIndexByte(read, '\n')
}

// HalfPair reports whether a valid JSON string, with its quotes, contains an
// escape, such as \ud800, that is half of a surrogate pair without the other
// half next to it. encoding/json would replace it with another character.
func HalfPair(text []byte) bool {
	high := false // whether the previous escape is a high surrogate
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

// Mismatch returns the path of a field whose value has the wrong JSON type, and
// a message such as "a string is needed, not a number". The path contains no
// map keys or list indexes, and is empty for the document itself. It returns
// false for any other error.
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

// typeName returns the JSON name of a field's type.
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

// yamlFault finds the line and the reason in the text of a YAML parser's error,
// which has no fields for them.
var yamlFault = regexp.MustCompile(`yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?([^\n]+)`)

// YAML returns the line and the reason of an error of a YAML parser that
// converts YAML to JSON. The line is 0 if it is unknown.
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
	line, _ = strconv.Atoi(found[1]) // 0 if the parser names none
	switch message = found[2]; {
	case strings.HasPrefix(message, "invalid map key"): // followed by the key in Go syntax
		return line, "a key is neither a text nor a number"
	case strings.HasPrefix(message, "cannot decode"), strings.HasPrefix(message, "cannot unmarshal"): // followed by the value, which may be a secret
		return line, "a value is not of the type that its tag says"
	}
	return line, message
}
