package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The number of bytes quoted of a value or pattern, and of a message from a
// schema.
const (
	maxShown   = 80
	maxMessage = 400
)

// String describes a value of the types: "an integer or a string".
func (t typeSet) String() string {
	var names []string
	for i, name := range []string{"an object", "a list", "a string", "an integer", "a number", "true or false", "a quantity"} {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if t == integer|text {
		return "an integer or a string"
	}
	return strings.Join(names, " or ")
}

// mismatch returns the message for a value of the wrong type.
func (w *walk) mismatch(n *node, v any) string {
	must := "must be " + n.types.String()
	if n.types == boolean {
		must = "must be true or false"
	}
	switch v := v.(type) {
	case map[string]any:
		return must + ", got an object"
	case []any:
		return must + ", got a list"
	case string:
		if w.secret {
			return must + ", got a string"
		}
		return must + ", got string " + show(v)
	case bool:
		if w.secret {
			return must + ", got true or false"
		}
		return must + ", got " + show(v)
	}
	if w.secret {
		return must + ", got a number"
	}
	return must + ", got " + show(v)
}

// got quotes a value, unless it may be secret.
func (w *walk) got(v any) string {
	if w.secret {
		return ""
	}
	return ", got " + show(v)
}

// show formats a value for a message.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(clip(v))
	case float64:
		if isWhole(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// clip cuts a value or pattern to maxShown bytes.
func clip(s string) string { return nf.Clip(s, maxShown) }

// list formats the allowed values.
func list(values []any) string {
	const shown = 20
	var out []string
	for _, v := range values[:min(shown, len(values))] {
		if s, ok := v.(string); ok && s != "" {
			out = append(out, clip(s))
		} else {
			out = append(out, show(v))
		}
	}
	if len(values) > shown {
		out = append(out, fmt.Sprintf("… (%d in all)", len(values)))
	}
	return strings.Join(out, ", ")
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// unknown returns the message for an unknown field, with the most similar known
// field.
func unknown(name string, fields map[string]*node) string {
	message := "unknown field " + strconv.Quote(clip(name))
	if near := nearest(name, slices.Sorted(maps.Keys(fields))); near != "" {
		message += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return message
}

// nearest returns the most similar name, or "" if none is similar enough.
func nearest(name string, names []string) string {
	const longest, most = 64, 200
	if len(name) > longest || len(names) > most {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, candidate := range names {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if len(candidate) > longest {
			continue
		}
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, replacements and swaps
// of adjacent letters that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
