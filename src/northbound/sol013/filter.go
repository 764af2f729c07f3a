package sol013

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Filter is an attribute-based filter: conditions that must all be met.
type Filter []condition

// condition compares an attribute with values.
type condition struct {
	op     string
	path   []string
	values []string
}

const (
	maxFilter     = 4096 // bytes
	maxConditions = 20
)

var (
	singleOps = []string{"eq", "neq", "gt", "gte", "lt", "lte"}
	listOps   = []string{"in", "nin", "cont", "ncont"}
)

// ParseFilter reads a filter such as "(eq,vnfProvider,Example);(in,vnfdVersion,1.0,2.0)".
// A value with special characters is in single quotes, in which two stand for one. The
// filter is nil if the text is empty. ParseFilter returns nf.Invalid.
func ParseFilter(text string) (Filter, error) {
	if len(text) > maxFilter {
		return nil, invalid("filter", "is longer than "+strconv.Itoa(maxFilter)+" bytes")
	}
	var out Filter
	for rest := text; rest != ""; {
		c, after, wrong := parseCondition(rest)
		if wrong != "" {
			return nil, invalid("filter", wrong)
		}
		if out = append(out, c); len(out) > maxConditions {
			return nil, invalid("filter", "has more than "+strconv.Itoa(maxConditions)+" conditions")
		}
		if after == "" {
			break
		}
		if rest = strings.TrimPrefix(after, ";"); rest == after || rest == "" {
			return nil, invalid("filter", "must have the form (op,attribute,value), and a semicolon between conditions")
		}
	}
	return out, nil
}

// parseCondition reads the condition at the beginning of a text, and returns the rest.
func parseCondition(text string) (c condition, rest, wrong string) {
	const form = "must have conditions of the form (op,attribute,value)"
	parts, rest, ok := tokens(text)
	switch {
	case !ok || len(parts) < 3:
		return c, "", form
	case slices.Contains(singleOps, parts[0]) && len(parts) != 3:
		return c, "", "has an operator " + parts[0] + " with other than one value"
	case !slices.Contains(singleOps, parts[0]) && !slices.Contains(listOps, parts[0]):
		return c, "", "has an unknown operator; allowed: " + strings.Join(slices.Concat(singleOps, listOps), ", ")
	case parts[1] == "":
		return c, "", form
	}
	return condition{parts[0], segments(parts[1]), parts[2:]}, rest, ""
}

// segments splits the path of an attribute, in whose names "~" begins an escape.
func segments(path string) []string {
	out := strings.Split(path, "/")
	for i, name := range out {
		out[i] = unescape(name)
	}
	return out
}

// unescape replaces the escapes of an attribute's name.
func unescape(name string) string {
	if name == keys {
		return name
	}
	// A name that begins with "@" is not the one that selects keys.
	return strings.NewReplacer("~0", "~", "~1", "/", "~a", ",", "~b", "@").Replace(name)
}

// keys is the last segment of a path that selects the keys of a map, not the values.
const keys = "@key"

// tokens splits "(a,b,'c')rest".
func tokens(text string) (parts []string, rest string, ok bool) {
	if !strings.HasPrefix(text, "(") {
		return nil, "", false
	}
	var now strings.Builder
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' && quoted && i+1 < len(text) && text[i+1] == '\'':
			now.WriteByte('\'')
			i++
		case c == '\'':
			quoted = !quoted
		case quoted:
			now.WriteByte(c)
		case c == ',' || c == ')':
			parts = append(parts, now.String())
			now.Reset()
			if c == ')' {
				return parts, text[i+1:], true
			}
		default:
			now.WriteByte(c)
		}
	}
	return nil, "", false
}

// indexed returns the attributes of an index that every match has.
func (f Filter) indexed(by map[string]func(value string) nf.Attribute) (out []nf.Attribute) {
	for _, c := range f {
		attribute := by[c.path[0]]
		if attribute != nil && len(c.path) == 1 && (c.op == "eq" || c.op == "in") && len(c.values) == 1 {
			out = append(out, attribute(c.values[0]))
		}
	}
	return out
}

// Matches reports whether a document, whose numbers are json.Number, meets all conditions.
func (f Filter) Matches(document map[string]any) bool {
	for _, c := range f {
		if !c.matches(document) {
			return false
		}
	}
	return true
}

// matches reports whether a document meets the condition. An attribute with several
// values meets it if one of them does, and a negated one if none meets its opposite. An
// absent attribute meets negated conditions only.
func (c condition) matches(document map[string]any) bool {
	positive, negated := map[string]string{"neq": "eq", "nin": "in", "ncont": "cont"}[c.op]
	if !negated {
		positive = c.op
	}
	found := slices.ContainsFunc(valuesAt(document, c.path), func(value string) bool {
		return slices.ContainsFunc(c.values, func(wanted string) bool { return meets(positive, value, wanted) })
	})
	return found != negated
}

// meets compares a value. Numbers are compared as such if both are numbers.
func meets(op, value, wanted string) bool {
	switch op {
	case "eq", "in":
		return value == wanted
	case "cont":
		return strings.Contains(value, wanted)
	}
	order := strings.Compare(value, wanted)
	a, errA := strconv.ParseFloat(value, 64)
	if b, errB := strconv.ParseFloat(wanted, 64); errA == nil && errB == nil {
		switch {
		case a < b:
			order = -1
		case a > b:
			order = 1
		default:
			order = 0
		}
	}
	switch op {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	}
	return order <= 0
}

// valuesAt returns the texts at a path of a document. A list has those of all its items.
func valuesAt(document any, path []string) []string {
	switch d := document.(type) {
	case map[string]any:
		switch {
		case len(path) == 0:
		case len(path) == 1 && path[0] == keys:
			return slices.Collect(maps.Keys(d))
		default:
			return valuesAt(d[path[0]], path[1:])
		}
	case []any:
		var out []string
		for _, item := range d {
			out = append(out, valuesAt(item, path)...)
		}
		return out
	case string:
		if len(path) == 0 {
			return []string{d}
		}
	case bool:
		if len(path) == 0 {
			return []string{strconv.FormatBool(d)}
		}
	case json.Number:
		if len(path) == 0 {
			return []string{d.String()}
		}
	}
	return nil
}
