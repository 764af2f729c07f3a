package schema

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// allow reports whether a value has one of the types. A number without a
// fraction is an integer, whatever its notation.
func (t typeSet) allow(v any) bool {
	if t == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		return t&object != 0
	case []any:
		return t&array != 0
	case string:
		return t&(text|quantity) != 0
	case bool:
		return t&boolean != 0
	case int64:
		return t&(integer|number|quantity) != 0
	case float64:
		return t&(number|quantity) != 0 || t&integer != 0 && isWhole(v)
	}
	return true // not a JSON value: encoding it will fail
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

func isWhole(f float64) bool { return f == math.Trunc(f) && !math.IsInf(f, 0) }

func (w *walk) text(n *node, s string) {
	if n.types&quantity != 0 {
		if _, err := resource.ParseQuantity(s); err != nil {
			w.report("must be a quantity such as 500m, 2 or 1Gi" + w.got(s))
		}
		return
	}
	if w.loose && !n.native {
		return
	}
	check := badFormat
	if n.native {
		check = badNativeFormat
	}
	if problem := check(n.format, s); problem != "" {
		w.report(problem + w.got(s))
	}
	if n.limits == nil || w.loose {
		return
	}
	l := n.limits
	w.count(l.minLength, l.maxLength, utf8.RuneCountInString(s), "character")
	if l.pattern != nil && w.budget.spend(len(s)*l.patternCost/16) && !l.pattern.MatchString(s) {
		w.wrong(func() string { return "must match " + clip(l.pattern.String()) + w.got(s) })
	}
}

// formats are the formats that every API server checks in custom resources,
// without dashes. Newer formats are omitted, as older servers ignore them.
const formats = " bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13" +
	" creditcard ssn hexcolor rgbcolor byte password date duration datetime "

// badNativeFormat is badFormat for fields of Go types.
func badNativeFormat(format, s string) string {
	var err error
	switch format {
	case "date-time":
		_, err = time.Parse(time.RFC3339, s)
	case "byte":
		_, err = base64.StdEncoding.DecodeString(s)
	}
	if err == nil {
		return ""
	}
	return formatNames[strings.ReplaceAll(format, "-", "")]
}

// formatNames are the messages for formats.
var formatNames = map[string]string{
	"datetime": "must be a date and time such as 2006-01-02T15:04:05Z",
	"byte":     "must be base64",
}

// badFormat returns the message for a string that does not have the format, or
// "" if it does.
func badFormat(format, s string) string {
	name := strings.ReplaceAll(format, "-", "")
	if name == "" || !strings.Contains(formats, " "+name+" ") || strfmt.Default.Validates(name, s) {
		return ""
	}
	return cmp.Or(formatNames[name], "must be a valid "+format)
}

func (w *walk) number(n *node, v any) {
	l := n.limits
	if l == nil || w.loose || n.types&quantity != 0 {
		return
	}
	x := float(v)
	if i, ok := v.(int64); ok && n.native && n.format == "int32" && x != float64(int32(i)) {
		// An API server keeps only the low 32 bits, which may be within bounds.
		if x = float64(int32(i)); l.min != nil && x < *l.min || l.max != nil && x > *l.max {
			w.report("must be at most 2147483647" + w.got(v))
		}
		return
	}
	bound := func(must string, b float64) {
		w.wrong(func() string { return must + show(b) + w.got(v) })
	}
	switch {
	case l.min != nil && l.aboveMin && x <= *l.min:
		bound("must be greater than ", *l.min)
	case l.min != nil && x < *l.min:
		bound("must be at least ", *l.min)
	case l.max != nil && l.belowMax && x >= *l.max:
		bound("must be less than ", *l.max)
	case l.max != nil && x > *l.max:
		bound("must be at most ", *l.max)
	}
	if l.multipleOf != nil && !multiple(v, *l.multipleOf) {
		bound("must be a multiple of ", *l.multipleOf)
	}
}

func float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// multiple reports whether v is a multiple of the given number, with a
// tolerance for fractions that floating-point numbers cannot represent.
func multiple(v any, of float64) bool {
	if of <= 0 {
		return true
	}
	if i, ok := v.(int64); ok && isWhole(of) {
		return i%int64(of) == 0
	}
	q := float(v) / of
	return math.Abs(q-math.Round(q)) <= 1e-9*math.Max(1, math.Abs(q))
}

// count reports a length outside its bounds. Findings for a lower bound are
// open, because a merge may add items; those for strings are not.
func (w *walk) count(least, most *int64, n int, unit string) {
	message := func(must string, bound int64) func() string {
		return func() string { return fmt.Sprintf("must have %s %s, has %d", must, plural(bound, unit), n) }
	}
	switch {
	case least != nil && int64(n) < *least:
		w.open = unit != "character"
		w.wrong(message("at least", *least))
		w.open = false
	case most != nil && int64(n) > *most:
		w.wrong(message("at most", *most))
	}
}

func (w *walk) enum(n *node, v any) {
	if n.enum == nil || n.native && v == "" {
		return
	}
	if !w.budget.spend(len(n.enum) / 16) {
		return
	}
	for _, e := range n.enum {
		if equal(e, v) || cutEqual(e, v) {
			return
		}
	}
	w.wrong(func() string { return "must be one of " + list(n.enum) + w.got(v) })
}

// equal compares JSON values; 1 and 1.0 are equal.
func equal(a, b any) bool {
	if isNumber(a) && isNumber(b) {
		return float(a) == float(b)
	}
	return reflect.DeepEqual(a, b)
}

// cutEqual reports whether v is a listed whole number once its fraction is cut off: an
// API server accepts 0.5 where 0 is listed.
func cutEqual(listed, v any) bool {
	f, fraction := v.(float64)
	return fraction && isNumber(listed) && isWhole(float(listed)) && math.Trunc(f) == float(listed)
}

// identity returns a string that is the same for equal values.
func identity(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		if isWhole(v) {
			return strconv.FormatInt(int64(v), 10)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// combinations checks allOf, anyOf, oneOf and not. All findings except those of
// allOf are open, because a merge or a webhook may make another alternative
// match.
func (w *walk) combinations(n *node, v any) {
	for _, sub := range n.all {
		w.visit(sub, v)
	}
	w.open = true
	if n.some != nil && w.holding(n.some, v) == 0 {
		w.wrong(func() string { return "one of these must be met: " + w.problems(n.some, v) })
	}
	if n.one != nil {
		switch holding := w.holding(n.one, v); {
		case holding == 0:
			w.wrong(func() string { return "one of these must be met: " + w.problems(n.one, v) })
		case holding > 1:
			w.wrong(func() string {
				return fmt.Sprintf("must match exactly one of the %d forms that the schema allows, matches %d", len(n.one), holding)
			})
		}
	}
	if n.not != nil && w.holding([]*node{n.not}, v) > 0 {
		w.wrong(func() string { return "has a form that the schema excludes" })
	}
	w.open = false
}

// holding returns how many of the nodes a value matches.
func (w *walk) holding(subs []*node, v any) (n int) {
	for _, sub := range subs {
		trial := walk{budget: w.budget, quiet: true}
		if trial.visit(sub, v); !trial.failed {
			n++
		}
	}
	return n
}

// problems returns why a value matches none of the first few nodes.
func (w *walk) problems(subs []*node, v any) string {
	const shown = 4
	var texts []string
	for _, sub := range subs[:min(shown, len(subs))] {
		trial := walk{budget: w.budget, secret: w.secret}
		if trial.visit(sub, v); trial.failed {
			f := trial.findings[0]
			texts = append(texts, strings.TrimSpace(f.field+" "+f.message))
		}
	}
	if len(subs) > shown {
		texts = append(texts, "…")
	}
	return strings.Join(texts, "; or ")
}
