package render

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ReadProfile reads a compute profile that a package or a request has in JSON's types.
// The fields of the violations are relative to the profile.
func ReadProfile(value any) (nf.ComputeProfile, nf.Violations) {
	var r profileReader
	var p nf.ComputeProfile
	fields, is := value.(map[string]any)
	if !is {
		return p, nf.Violations{{Message: "must be an object"}}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name]; name {
		case "requests":
			p.Requests = r.quantities(name, v, computeResources...)
		case "limits":
			p.Limits = r.quantities(name, v, computeResources...)
		case "hugepages":
			p.HugePages = r.quantities(name, v, "1Gi", "2Mi")
			r.pages(p.HugePages)
		case "devices":
			p.Devices = r.devices(v)
		case "node":
			p.Node = r.labels(v)
		case "flavor":
			if p.Flavor = r.text(name, v); p.Flavor != "" && !strings.HasPrefix(p.Flavor, nf.FlavorPrefix) {
				r.fail(name, "%q is not a flavor of the region: its name begins with %s", nf.Clip(p.Flavor, 64), nf.FlavorPrefix)
			}
		case "spread":
			if p.Spread = nf.ComputeSpread(r.text(name, v)); p.Spread != "" && p.Spread != nf.SpreadNodes && p.Spread != nf.SpreadZones {
				r.fail(name, "must be %s or %s", nf.SpreadNodes, nf.SpreadZones)
			}
		case "tolerations":
			p.Tolerations = r.tolerations(v)
		default:
			r.fail(nf.Clip(name, 64), "unknown key; allowed: requests, limits, hugepages, devices, node, flavor, spread, tolerations")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		if limit, has := p.Limits[name]; has && above(p.Requests[name], limit) {
			r.fail("requests."+name, "%s is above the limit %s", p.Requests[name], limit)
		}
	}
	return p, r.wrong
}

// computeResources are the resources that a profile can request, besides huge pages and
// devices.
var computeResources = []string{"cpu", "ephemeral-storage", "memory"}

// mostProfileEntries limits each list of a profile.
const mostProfileEntries = 64

// profileReader reads the fields of a profile.
type profileReader struct{ wrong nf.Violations }

func (r *profileReader) fail(field, format string, args ...any) {
	r.wrong = append(r.wrong, nf.Violation{Field: field, Message: fmt.Sprintf(format, args...)})
}

// entries returns the entries of an object, in the order of their names. Null is an empty
// object.
func (r *profileReader) entries(field string, value any) (names []string, entries map[string]any) {
	entries, is := value.(map[string]any)
	switch {
	case value != nil && !is:
		r.fail(field, "must be an object")
	case len(entries) > mostProfileEntries:
		r.fail(field, "has %d entries; at most %d are allowed", len(entries), mostProfileEntries)
		return nil, nil
	}
	return slices.Sorted(maps.Keys(entries)), entries
}

// text returns a text. Null counts as empty.
func (r *profileReader) text(field string, value any) string {
	text, is := value.(string)
	if value != nil && !is {
		r.fail(field, "must be a text")
	}
	return text
}

// scalar returns the text of a text, a number or a boolean; "" if the value is none.
func scalar(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool, int, int64:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (r *profileReader) quantities(field string, value any, allowed ...string) map[string]string {
	names, entries := r.entries(field, value)
	var out map[string]string
	for _, name := range names {
		text := scalar(entries[name])
		q, err := resource.ParseQuantity(text)
		switch {
		case !slices.Contains(allowed, name):
			r.fail(field+"."+nf.Clip(name, 64), "unknown key; allowed: %s", strings.Join(allowed, ", "))
		case err != nil:
			r.fail(field+"."+name, "%q is not a quantity, such as 500m or 2Gi", nf.Clip(text, 64))
		case q.Sign() <= 0:
			r.fail(field+"."+name, "must be positive")
		default:
			out = with(out, name, text)
		}
	}
	return out
}

// with adds an entry to a map, which may be nil.
func with[V any](m map[string]V, name string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = v
	return m
}

// pages checks that huge pages are whole.
func (r *profileReader) pages(sizes map[string]string) {
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		q, page := resource.MustParse(sizes[size]), resource.MustParse(size)
		if q.Value()%page.Value() != 0 {
			r.fail("hugepages."+size, "%s is not a multiple of the size of the pages", sizes[size])
		}
	}
}

// devicePattern is the form of the name of an extended resource.
var devicePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

func (r *profileReader) devices(value any) map[string]int64 {
	names, entries := r.entries("devices", value)
	var out map[string]int64
	for _, name := range names {
		domain, _, _ := strings.Cut(name, "/")
		count, whole := WholeNumber(entries[name])
		switch {
		case !devicePattern.MatchString(name) || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
			r.fail("devices."+nf.Clip(name, 64), "is not the name of an extended resource, such as nvidia.com/gpu")
		case !whole || count < 1 || count > math.MaxInt32:
			r.fail("devices."+name, "must be a whole number of devices, at least 1")
		default:
			out = with(out, name, count)
		}
	}
	return out
}

// WholeNumber returns a number of JSON or YAML that has no fraction, and is no larger than 32
// bits if it was decoded as a float64.
func WholeNumber(value any) (int64, bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32
	}
	return 0, false
}

func (r *profileReader) labels(value any) map[string]string {
	names, entries := r.entries("node", value)
	var out map[string]string
	for _, name := range names {
		text := scalar(entries[name])
		label := text
		if text == nf.AnyValue {
			label = ""
		}
		wrong := nf.CheckLabels("node", map[string]string{name: label})
		if text == "" && wrong == nil {
			wrong = nf.Violations{{Field: "node." + name, Message: fmt.Sprintf("must be a value, or %q for any", nf.AnyValue)}}
		}
		if r.wrong = append(r.wrong, wrong...); wrong == nil {
			out = with(out, name, text)
		}
	}
	return out
}

func (r *profileReader) tolerations(value any) (out []nf.Toleration) {
	list, is := value.([]any)
	if value != nil && !is || len(list) > mostProfileEntries {
		r.fail("tolerations", "must be a list of at most %d tolerations", mostProfileEntries)
		return nil
	}
	for i, item := range list {
		field := fmt.Sprintf("tolerations[%d]", i)
		names, entries := r.entries(field, item)
		var t nf.Toleration
		for _, name := range names {
			at := map[string]*string{"key": &t.Key, "operator": &t.Operator, "value": &t.Value, "effect": &t.Effect}[name]
			if at == nil {
				r.fail(field+"."+nf.Clip(name, 64), "unknown key; allowed: key, operator, value, effect")
				continue
			}
			*at = scalar(entries[name])
		}
		r.toleration(field, t)
		out = append(out, t)
	}
	return out
}

// toleration checks a toleration as Kubernetes does.
func (r *profileReader) toleration(field string, t nf.Toleration) {
	exists := t.Operator == "Exists"
	switch {
	case !exists && t.Operator != "" && t.Operator != "Equal":
		r.fail(field+".operator", "must be Equal or Exists")
	case t.Key == "" && !exists:
		r.fail(field+".key", "is required, unless the operator is Exists")
	case exists && t.Value != "":
		r.fail(field+".value", "must be empty if the operator is Exists")
	}
	if t.Key != "" {
		for _, v := range nf.CheckLabels(field, map[string]string{t.Key: ""}) {
			r.fail(field+".key", "%s", v.Message)
		}
	}
	for _, v := range nf.CheckLabels(field, map[string]string{"value": t.Value}) {
		r.fail(field+".value", "%s", v.Message)
	}
	if !slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
		r.fail(field+".effect", "must be NoSchedule, PreferNoSchedule or NoExecute")
	}
}

// above reports whether a quantity is above another one. Texts that are not quantities are
// not compared.
func above(a, b any) bool {
	one, err := resource.ParseQuantity(fmt.Sprint(a))
	other, wrong := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && wrong == nil && one.Cmp(other) > 0
}
