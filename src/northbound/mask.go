package northbound

import (
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Mask returns a copy of a value of JSON in which a mask replaces secrets, at any depth.
// Secrets are the values of attributes whose names contain words such as "password". The
// value of helm_info is one unless it is an object: Tacker's clients also send it as a text
// with the password of a host.
func Mask(value any, mask string) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			if out[name] = Mask(inner, mask); isSecret(name, inner) {
				out[name] = mask
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = Mask(inner, mask)
		}
		return out
	}
	return value
}

// MaskFields does the same for an object. It returns nil if there is none.
func MaskFields(object map[string]any, mask string) map[string]any {
	if object == nil {
		return nil
	}
	out, _ := Mask(object, mask).(map[string]any)
	return out
}

// CheckMasks returns a violation for each secret in a value that is the mask: a client has
// sent back what it was shown.
func CheckMasks(field string, value any, mask string) nf.Violations {
	var wrong nf.Violations
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := field + "." + nf.Clip(name, maxSegment)
			if value[name] == mask && isSecret(name, mask) {
				wrong = append(wrong, nf.Violation{Field: at, Message: "is the mask of a hidden value; send the value"})
			}
			wrong = append(wrong, CheckMasks(at, value[name], mask)...)
		}
	case []any:
		for i, inner := range value {
			wrong = append(wrong, CheckMasks(fmt.Sprintf("%s[%d]", field, i), inner, mask)...)
		}
	}
	return wrong[:min(len(wrong), maxViolations)]
}

// isSecret reports whether the value of an attribute is a secret.
func isSecret(name string, value any) bool {
	if _, isObject := value.(map[string]any); name == "helm_info" {
		return !isObject
	}
	return nf.SoundsSecret(name)
}
