package cli

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// changePatch is a merge patch of an instance.
type changePatch struct {
	wire.Execution

	strict bool
	fields map[string]any
}

// MarshalJSON implements json.Marshaler.
func (p *changePatch) MarshalJSON() ([]byte, error) {
	out := treeOfDocument(p.Execution)
	maps.Copy(out, p.fields)
	if p.strict {
		out["strict"] = true
	}
	return json.Marshal(out)
}

// visible reports whether the patch changes more than values that the server masks.
func (p *changePatch) visible(before map[string]any) bool {
	return differsVisibly(before, p.fields)
}

// masked is what the server shows in place of a sensitive value.
const masked = "********"

func differsVisibly(before any, change map[string]any) bool {
	present, _ := before.(map[string]any)
	for name, value := range change {
		if inner, ok := value.(map[string]any); ok && present[name] != nil {
			if differsVisibly(present[name], inner) {
				return true
			}
		} else if present[name] != masked {
			return true
		}
	}
	return false
}

// difference returns the merge patch (RFC 7396) from one document to another.
func difference(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range before {
		if after[name] == nil {
			patch[name] = nil
		}
	}
	for name, value := range after {
		inner, isMap := value.(map[string]any)
		there, wasMap := before[name].(map[string]any)
		switch {
		case value == nil, reflect.DeepEqual(before[name], value):
		case isMap && wasMap:
			patch[name] = difference(there, inner)
		default:
			patch[name] = value
		}
	}
	return patch
}

// treeOfDocument returns a document as a tree of maps, with the text of its numbers.
func treeOfDocument(document any) map[string]any {
	out := map[string]any{}
	_ = unmarshal(jsonOf(document), &out) // what was encoded can be decoded
	return out
}

// only returns the named fields of a document that it has.
func only(document map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if value, ok := document[name]; ok {
			out[name] = value
		}
	}
	return out
}
