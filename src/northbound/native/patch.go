package native

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
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
	if raw, err = json.Marshal(nf.MergePatch(present, map[string]any(p))); err != nil {
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
