package native

import (
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// texts returns the texts as JSON values.
func texts(values map[string]string) map[string]any {
	out := make(map[string]any, len(values))
	for name, value := range values {
		out[name] = value
	}
	return out
}

// refuseMask refuses a value that is the mask of a secret: a client that sends
// back what it was shown would otherwise replace the secret by its mask.
func refuseMask(field string, v any) error {
	switch v := v.(type) {
	case string:
		if v == nf.Masked {
			return invalid(field, "is the mask of a hidden value; leave the field out to keep the value")
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
		return refuseMask(field, each(v, func(item map[string]any) any { return item }))
	case []any:
		for i, item := range v {
			if err := refuseMask(fmt.Sprintf("%s[%d]", field, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}
