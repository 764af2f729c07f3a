package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// patch is a JSON merge patch (RFC 7396) of an object.
type patch map[string]any

// apply returns a document with the patch applied. It does not modify the given
// document.
func apply[T any](p patch, document T) (T, error) {
	var out T
	raw, err := json.Marshal(document)
	if err != nil {
		return out, fmt.Errorf("cannot encode the object before the patch: %w", err)
	}
	var present map[string]any
	if err := json.Unmarshal(raw, &present); err != nil {
		return out, fmt.Errorf("cannot decode the object before the patch: %w", err)
	}
	if raw, err = json.Marshal(merge(present, map[string]any(p))); err != nil {
		return out, fmt.Errorf("cannot encode the patched object: %w", err)
	}
	err = json.Unmarshal(raw, &out)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return out, invalid(e.Field, "has the wrong type")
	}
	if err != nil {
		return out, fmt.Errorf("cannot decode the patched object: %w", err)
	}
	return out, nil
}

// merge implements MergePatch of RFC 7396, section 2.
func merge(target, change any) any {
	fields, ok := change.(map[string]any)
	if !ok {
		return change
	}
	out := map[string]any{}
	if present, ok := target.(map[string]any); ok {
		maps.Copy(out, present)
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = merge(out[name], value)
	}
	return out
}
