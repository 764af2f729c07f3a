package nf

import "maps"

// MergePatch returns a JSON value after a merge patch of RFC 7396, section 2. It changes
// neither. If the patch is an object, so is the result.
func MergePatch(target, change any) any {
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
		out[name] = MergePatch(out[name], value)
	}
	return out
}
