package onap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// shown returns an instance's request with its secrets masked. A client may send the
// overrides as labels, too, so the same names are secret in both.
func (v vnf) shown() instanceRequest {
	q := v.request
	q.Labels, q.Overrides = q.Labels.mask(v.Sensitive), q.Overrides.mask(v.Sensitive)
	return q
}

// mask returns a copy with the values of the names masked.
func (t texts) mask(names []string) texts { return nf.Inputs{Overrides: t}.Mask(names).Overrides }

// maskValues returns the values of a configuration with the secrets masked.
// Without secrets, it returns them unchanged.
func maskValues(values json.RawMessage, names []string) json.RawMessage {
	written, err := readValues(values)
	if err != nil || written == nil {
		return values
	}
	shown := nf.MaskFields(written, names)
	if reflect.DeepEqual(written, shown) {
		return values
	}
	out, err := json.Marshal(shown)
	if err != nil {
		return nil
	}
	return out
}

// readValues decodes values and keeps the notation of numbers.
func readValues(values json.RawMessage) (out any, err error) {
	if len(values) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(values))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}

// unmask returns a copy in which masks are replaced by the present values, so that
// a client may send back the masked values it received.
func (t texts) unmask(present texts) texts {
	out := maps.Clone(t)
	for path, value := range out {
		if kept, there := present[path]; there && value == nf.Masked {
			out[path] = kept
		}
	}
	return out
}

// checkMasks rejects overrides and labels that are masks, because a new instance has
// no present values.
func (q instanceRequest) checkMasks() error {
	if err := q.Overrides.checkMasks("override-values"); err != nil {
		return err
	}
	return q.Labels.checkMasks("labels")
}

func (t texts) checkMasks(field string) error {
	for path, value := range t {
		if value == nf.Masked {
			return refuseMask(field + ": " + strconv.Quote(path))
		}
	}
	return nil
}

func refuseMask(path string) error {
	return refuse(http.StatusUnprocessableEntity, path+" is the mask of a hidden value; send the value, or leave it out")
}

// unmask replaces masks in the values of a configuration and rejects the
// remaining ones. A new or deleted configuration has no present values.
func (c configured) unmask(r *http.Request, values json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(values, []byte(nf.Masked)) {
		return values, nil
	}
	wanted, err := readValues(values)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, jsonText("values", values, err))
	}
	var kept any
	if c.known && !c.stored.Deleted {
		present, err := c.version(r, c.stored.Version)
		if err == nil {
			kept, err = readValues(present.Values)
		}
		if err != nil {
			return nil, fail("Get Current Config Version", err)
		}
	}
	wanted = unmasked(wanted, kept)
	if path := maskIn("values", wanted); path != "" {
		return nil, refuseMask(path)
	}
	out, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("cannot write the values: %w", err)
	}
	return out, nil
}

// unmasked replaces each mask in a value by the value at the same place in
// present.
func unmasked(value, present any) any {
	switch v := value.(type) {
	case string:
		if v == nf.Masked && present != nil {
			return present
		}
	case map[string]any:
		former, _ := present.(map[string]any)
		for name := range v {
			v[name] = unmasked(v[name], former[name])
		}
	case []any:
		former, _ := present.([]any)
		for i := range min(len(v), len(former)) {
			v[i] = unmasked(v[i], former[i])
		}
	}
	return value
}

// maskIn returns the path of the first mask in a value, or "".
func maskIn(path string, value any) string {
	switch v := value.(type) {
	case string:
		if v == nf.Masked {
			return path
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found := maskIn(path+"."+name, v[name]); found != "" {
				return found
			}
		}
	case []any:
		for i, inner := range v {
			if found := maskIn(fmt.Sprintf("%s[%d]", path, i), inner); found != "" {
				return found
			}
		}
	}
	return ""
}
