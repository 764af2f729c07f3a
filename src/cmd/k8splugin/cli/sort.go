package cli

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/client-go/util/jsonpath"
)

// pathFlag is a flag for a JSONPath.
type pathFlag struct {
	text string
	path *jsonpath.JSONPath // nil: not given
}

// String, Set and Type implement pflag.Value.
func (f *pathFlag) String() string { return f.text }
func (f *pathFlag) Type() string   { return "path" }

func (f *pathFlag) Set(text string) (err error) {
	f.text = text
	f.path, err = parsePath(text)
	return err
}

// sortBy sorts the items of a collection by the value that a path selects in each.
// Items without the value come first.
func (p *page) sortBy(path *jsonpath.JSONPath) error {
	type item struct {
		raw   json.RawMessage
		value any
	}
	items := make([]item, len(p.items))
	for i, raw := range p.items {
		tree, err := decodeTree(raw)
		if err != nil {
			return err
		}
		items[i].raw = raw
		found, err := path.FindResults(tree)
		if err != nil {
			return usagef("--sort-by: %w", err)
		}
		if len(found) > 0 && len(found[0]) > 0 {
			items[i].value = found[0][0].Interface()
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return compareValues(a.value, b.value) })
	for i := range items {
		p.items[i] = items[i].raw
	}
	p.changed = true
	return nil
}

// compareValues compares two values of documents: numbers by value, texts by their
// bytes, and values of different types by type.
func compareValues(a, b any) int {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case !x.IsValid() || !y.IsValid():
		return cmp.Compare(rankOf(x.IsValid()), rankOf(y.IsValid()))
	case isNumber(x) && isNumber(y):
		return cmp.Compare(number(x), number(y))
	case x.Kind() == reflect.String && y.Kind() == reflect.String:
		return cmp.Compare(x.String(), y.String())
	case x.Kind() == reflect.Bool && y.Kind() == reflect.Bool:
		return cmp.Compare(rankOf(x.Bool()), rankOf(y.Bool()))
	}
	return cmp.Compare(x.Kind(), y.Kind())
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func isNumber(v reflect.Value) bool { return v.CanInt() || v.CanFloat() }

func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}
