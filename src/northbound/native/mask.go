package native

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// mask returns inputs as they may be shown: the values of the sensitive names
// are masked, at whatever depth the name stands.
func mask(in nf.Inputs, sensitive []string) nf.Inputs {
	hide := func(fields map[string]any) map[string]any {
		shown, _ := masked(fields, sensitive).(map[string]any)
		return shown
	}
	out := nf.Inputs{Parameters: hide(in.Parameters), Network: hide(in.Network), Overrides: maskedPaths(in.Overrides, sensitive)}
	for _, fields := range in.OOF {
		out.OOF = append(out.OOF, hide(fields))
	}
	return out
}

// masked returns a copy of a JSON value in which the fields with sensitive
// names are masked.
func masked(v any, sensitive []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			if slices.Contains(sensitive, name) {
				out[name] = nf.Masked
				continue
			}
			out[name] = masked(value, sensitive)
		}
		return out
	case []any:
		return each(v, func(item any) any { return masked(item, sensitive) })
	}
	return v
}

// maskedPaths returns a copy of values by their paths in which those are masked
// whose path, or any name in it, is sensitive: "db.users[0].password".
func maskedPaths(values map[string]string, sensitive []string) map[string]string {
	out := maps.Clone(values)
	for path := range out {
		names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
		if slices.ContainsFunc(append(names, path), func(name string) bool { return slices.Contains(sensitive, name) }) {
			out[path] = nf.Masked
		}
	}
	return out
}

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
