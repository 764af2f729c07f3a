package schema

import (
	"maps"
	"slices"
	"strings"
)

// Field is one field of an object.
type Field struct {
	value    Value
	required bool
	filled   any // it replaces a missing value
	implied  any // the same as a missing value
}

// Required returns a field that must be there.
func Required(v Value) Field { return Field{value: v, required: true} }

// Optional returns a field that may be missing.
func Optional(v Value) Field { return Field{value: v} }

// Filled returns a field whose default is written.
func Filled(v Value, def any) Field { return Field{value: v, filled: def} }

// Implied returns a field whose default is not written.
func Implied(v Value, def any) Field { return Field{value: v, implied: def} }

// Shape is the form of an object: its fields, and the relations between them.
type Shape struct {
	Fields map[string]Field

	OneOf     []string    // exactly one of them must be there
	SomeOf    []string    // at least one of them must be there
	Apart     [][2]string // at most one of the two may be there
	Together  [][2]string // both or neither
	Needs     [][2]string // the first one has an effect only with the second one
	Ascending [][2]string // the first number must not exceed the second one
}

// Object returns a value of the shape.
func Object(s Shape) Value {
	return func(c *Checker, path string, v any) any {
		given, ok := v.(map[string]any)
		if !ok {
			c.Fault(path, "must be an object, got %s", TypeOf(v))
			return nil
		}
		return s.Check(c, path, given)
	}
}

// Check returns the object in its canonical form: with defaults, and without the
// Fields that say the same as a missing field.
func (s Shape) Check(c *Checker, path string, given map[string]any) map[string]any {
	for _, name := range SortedKeys(given) {
		if _, known := s.Fields[name]; !known {
			c.Fault(Member(path, name), "unknown field; known: %s", strings.Join(SortedKeys(s.Fields), ", "))
		}
	}
	out := make(map[string]any, len(given))
	for _, name := range SortedKeys(s.Fields) {
		if v := s.Fields[name].check(c, Member(path, name), given[name]); v != nil {
			out[name] = v
		}
	}
	s.relate(c, path, given, out)
	return out
}

func (f Field) check(c *Checker, path string, v any) any {
	switch {
	case v == nil && f.required:
		c.Fault(path, "is required")
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
func (f Field) unlessEmpty(c *Checker, path string, v any, length int) any {
	if length > 0 {
		return v
	}
	if f.required {
		c.Fault(path, "must not be empty")
	}
	return nil
}

// relate checks the relations between the fields of an object.
func (s Shape) relate(c *Checker, path string, given, out map[string]any) {
	s.count(c, path, given)
	for _, two := range s.Apart {
		if out[two[0]] != nil && out[two[1]] != nil {
			c.Fault(Member(path, two[0]), "cannot be used with %s", two[1])
		}
	}
	for _, two := range s.Together {
		if (given[two[0]] == nil) != (given[two[1]] == nil) {
			c.Fault(path, "needs both of %s and %s, or neither", two[0], two[1])
		}
	}
	for _, two := range s.Needs {
		said := s.Fields[two[1]].implied != nil && out[two[1]] == nil && !c.Reports(Member(path, two[1])) // it says the same as a missing one
		if out[two[0]] != nil && (given[two[1]] == nil || said) {
			c.Fault(Member(path, two[0]), "has no effect without %s", two[1])
		}
	}
	for _, two := range s.Ascending {
		low, ok := out[two[0]].(int64)
		high, too := out[two[1]].(int64)
		if ok && too && low > high {
			c.Fault(Member(path, two[0]), "exceeds %s", two[1])
		}
	}
}

// count checks the fields of which some must be there.
func (s Shape) count(c *Checker, path string, given map[string]any) {
	there := func(names []string) (n int) {
		for _, name := range names {
			if l, isList := given[name].([]any); given[name] != nil && (!isList || len(l) > 0) {
				n++
			}
		}
		return n
	}
	if n := there(s.OneOf); s.OneOf != nil && n != 1 {
		c.Fault(path, "needs exactly one of %s, got %d", strings.Join(s.OneOf, ", "), n)
	}
	if s.SomeOf != nil && there(s.SomeOf) == 0 {
		c.Fault(Member(path, s.SomeOf[0]), "is required, or %s", strings.Join(s.SomeOf[1:], ", "))
	}
}

// Variant returns the value of an object whose field type selects its shape.
func Variant[T any](kinds map[string]T, shapeOf func(T) Shape) Value {
	return func(c *Checker, path string, v any) any {
		given, ok := v.(map[string]any)
		if !ok {
			c.Fault(path, "must be an object, got %s", TypeOf(v))
			return nil
		}
		kind, _ := Word(SortedKeys(kinds)...)(c, Member(path, "type"), given["type"]).(string)
		if kind == "" {
			return nil
		}
		rest := maps.Clone(given)
		delete(rest, "type")
		out := shapeOf(kinds[kind]).Check(c, path, rest)
		out["type"] = kind
		return out
	}
}

// SortedKeys returns the keys of a map in their order.
func SortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
