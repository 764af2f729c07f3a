package multus

import (
	"maps"
	"slices"
	"strings"
)

// field is one field of an object.
type field struct {
	value    value
	required bool
	filled   any // it replaces a missing value
	implied  any // the same as a missing value
}

// required returns a field that must be there.
func required(v value) field { return field{value: v, required: true} }

// optional returns a field that may be missing.
func optional(v value) field { return field{value: v} }

// filled returns a field whose default is written.
func filled(v value, def any) field { return field{value: v, filled: def} }

// implied returns a field whose default is not written.
func implied(v value, def any) field { return field{value: v, implied: def} }

// shape is the form of an object: its fields, and the relations between them.
type shape struct {
	fields map[string]field

	oneOf     []string    // exactly one of them must be there
	someOf    []string    // at least one of them must be there
	apart     [][2]string // at most one of the two may be there
	together  [][2]string // both or neither
	needs     [][2]string // the first one has an effect only with the second one
	ascending [][2]string // the first number must not exceed the second one
}

// object returns a value of the shape.
func object(s shape) value {
	return func(c *checker, path string, v any) any {
		given, ok := v.(map[string]any)
		if !ok {
			c.fault(path, "must be an object, got %s", typeOf(v))
			return nil
		}
		return s.check(c, path, given)
	}
}

// check returns the object in its canonical form: with defaults, and without the
// fields that say the same as a missing field.
func (s shape) check(c *checker, path string, given map[string]any) map[string]any {
	for _, name := range sortedKeys(given) {
		if _, known := s.fields[name]; !known {
			c.fault(member(path, name), "unknown field; known: %s", strings.Join(sortedKeys(s.fields), ", "))
		}
	}
	out := make(map[string]any, len(given))
	for _, name := range sortedKeys(s.fields) {
		if v := s.fields[name].check(c, member(path, name), given[name]); v != nil {
			out[name] = v
		}
	}
	s.relate(c, path, given, out)
	return out
}

func (f field) check(c *checker, path string, v any) any {
	switch {
	case v == nil && f.required:
		c.fault(path, "is required")
		return nil
	case v == nil:
		return f.filled
	}
	switch out := f.value(c, path, v).(type) {
	case []any:
		return f.unlessEmpty(c, path, out, len(out))
	case map[string]any:
		return f.unlessEmpty(c, path, out, len(out))
	case nil:
		return nil
	default:
		if out == f.implied {
			return nil
		}
		return out
	}
}

// unlessEmpty returns v, or nil if its length is 0: an empty list or object says
// the same as a missing one.
func (f field) unlessEmpty(c *checker, path string, v any, length int) any {
	if length > 0 {
		return v
	}
	if f.required {
		c.fault(path, "must not be empty")
	}
	return nil
}

// relate checks the relations between the fields of an object.
func (s shape) relate(c *checker, path string, given, out map[string]any) {
	s.count(c, path, given)
	for _, two := range s.apart {
		if out[two[0]] != nil && out[two[1]] != nil {
			c.fault(member(path, two[0]), "cannot be used with %s", two[1])
		}
	}
	for _, two := range s.together {
		if (given[two[0]] == nil) != (given[two[1]] == nil) {
			c.fault(path, "needs both of %s and %s, or neither", two[0], two[1])
		}
	}
	for _, two := range s.needs {
		if out[two[0]] != nil && given[two[1]] == nil {
			c.fault(member(path, two[0]), "has no effect without %s", two[1])
		}
	}
	for _, two := range s.ascending {
		low, ok := out[two[0]].(int64)
		high, too := out[two[1]].(int64)
		if ok && too && low > high {
			c.fault(member(path, two[0]), "exceeds %s", two[1])
		}
	}
}

// count checks the fields of which some must be there.
func (s shape) count(c *checker, path string, given map[string]any) {
	there := func(names []string) (n int) {
		for _, name := range names {
			if l, isList := given[name].([]any); given[name] != nil && (!isList || len(l) > 0) {
				n++
			}
		}
		return n
	}
	if n := there(s.oneOf); s.oneOf != nil && n != 1 {
		c.fault(path, "needs exactly one of %s, got %d", strings.Join(s.oneOf, ", "), n)
	}
	if s.someOf != nil && there(s.someOf) == 0 {
		c.fault(member(path, s.someOf[0]), "is required, or %s", strings.Join(s.someOf[1:], ", "))
	}
}

// variant returns the value of an object whose field type selects its shape.
func variant[T any](kinds map[string]T, shapeOf func(T) shape) value {
	return func(c *checker, path string, v any) any {
		given, ok := v.(map[string]any)
		if !ok {
			c.fault(path, "must be an object, got %s", typeOf(v))
			return nil
		}
		kind, _ := word(sortedKeys(kinds)...)(c, member(path, "type"), given["type"]).(string)
		if kind == "" {
			return nil
		}
		rest := maps.Clone(given)
		delete(rest, "type")
		out := shapeOf(kinds[kind]).check(c, path, rest)
		out["type"] = kind
		return out
	}
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
