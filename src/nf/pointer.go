package nf

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// At returns the value at a JSON pointer (RFC 6901) in an object; found is false if
// there is none.
func At(object any, pointer string) (value any, found bool) {
	value = object
	for _, key := range PointerKeys(pointer) {
		switch inner := value.(type) {
		case map[string]any:
			if value, found = inner[key]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(inner) {
				return nil, false
			}
			value = inner[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// SetAt sets the value at a JSON pointer in an object, and creates the objects on the
// way to it. A nil value removes the field. It returns false, and may have changed
// the object, if the pointer leads through a value that has no such field.
func SetAt(object map[string]any, pointer string, value any) bool {
	keys := PointerKeys(pointer)
	var at any = object
	for i, key := range keys {
		last := i == len(keys)-1
		switch inner := at.(type) {
		case map[string]any:
			switch {
			case last && value == nil:
				delete(inner, key)
			case last:
				inner[key] = value
			case inner[key] == nil:
				inner[key] = map[string]any{}
			}
			at = inner[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(inner) {
				return false
			}
			if last {
				inner[n] = value
			}
			at = inner[n]
		default:
			return false
		}
	}
	return true
}

// PointerKeys returns the keys of a JSON pointer.
func PointerKeys(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, key := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
	}
	return keys
}

// Pointer is the inverse of PointerKeys.
func Pointer(keys []string) string {
	var out strings.Builder
	for _, key := range keys {
		out.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"))
	}
	return out.String()
}

// FieldPath returns a JSON pointer in the form of Field: "spec.replicas".
func FieldPath(pointer string) string {
	var out string
	for _, key := range PointerKeys(pointer) {
		switch _, err := strconv.Atoi(key); {
		case err == nil || strings.ContainsAny(key, "./[]"):
			out += "[" + key + "]"
		case out == "":
			out = key
		default:
			out += "." + key
		}
	}
	return out
}

// ValueOf decodes the value of a Setting. Integers are int64, as in the objects of
// Kubernetes; an absent value is nil.
func ValueOf(raw json.RawMessage) any {
	var out any
	if len(raw) == 0 || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	if n, ok := out.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return out
}

// RawOf encodes a value for a Setting; nil is absent.
func RawOf(value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the value of a field: %w", err)
	}
	return raw, nil
}
