package native

import (
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// texts returns the strings as JSON values.
func texts(values map[string]string) map[string]any {
	out := make(map[string]any, len(values))
	for name, value := range values {
		out[name] = value
	}
	return out
}

// refuseMask rejects a value that is the mask of a secret. Otherwise a client
// that sends back a response would replace the secret by its mask.
func refuseMask(field string, v any) error {
	switch v := v.(type) {
	case string:
		if v == nf.Masked {
			return invalid(field, "is the mask of a hidden value; omit the field to keep the value")
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			sub := name
			if field != "" {
				sub = field + "." + name
			}
			if err := refuseMask(sub, v[name]); err != nil {
				return err
			}
		}
	case []map[string]any:
		return refuseMask(field, wire.List(v, func(item map[string]any) any { return item }))
	case []any:
		for i, item := range v {
			if err := refuseMask(fmt.Sprintf("%s[%d]", field, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}
