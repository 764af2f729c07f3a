package helm

import (
	"iter"
	"maps"
	"reflect"
	"slices"
)

// weight is the size of a value when it is formatted. A value that is referred to
// several times counts each time.
type weight struct {
	size   int // bytes
	items  int // number of values in it, including itself
	indent int // sum of the depths of these values
	depth  int // depth of the deepest one
}

func (w weight) plus(inner weight) weight {
	return weight{
		size:   min(w.size+inner.size, tooMuch),
		items:  min(w.items+inner.items, tooMuch),
		indent: min(w.indent+inner.indent+inner.items, tooMuch),
		depth:  max(w.depth, inner.depth+1),
	}
}

// at returns the weight of a value at a depth in another value.
func (w weight) at(depth int) (weight, error) {
	if depth+w.depth > maxDepth {
		return w, errDepth
	}
	return w, nil
}

// weigh returns the weight of a value. Its error is errDepth, also for a value that
// contains itself.
func weigh(v reflect.Value) (weight, error) { return (&scale{}).weigh(v, 0) }

// held identifies a map or list, to which several values can refer.
type held struct {
	at   uintptr
	size int
}

// scale weighs each map and list once.
type scale struct{ known map[held]weight }

// weigh weighs a value, which may be a reflect.Value.
func (s *scale) weigh(value any, depth int) (weight, error) {
	v, ok := value.(reflect.Value)
	if !ok {
		v = reflect.ValueOf(value)
	}
	v = inside(v)
	w := weight{size: 2, items: 1}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		w.size += v.Len()
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		w.size += 4 * v.Len()
	case kind == reflect.Struct:
		return s.sum(v, depth)
	case kind == reflect.Map || kind == reflect.Slice:
		if v.Len() > 0 && depth <= maxDepth {
			return s.container(v, depth)
		}
	default:
		w.size = 8
	}
	return w.at(depth)
}

// container weighs a map or list once.
func (s *scale) container(v reflect.Value, depth int) (weight, error) {
	key := held{v.Pointer(), v.Len()}
	if w, again := s.known[key]; again {
		return w.at(depth)
	}
	if s.known == nil {
		s.known = map[held]weight{}
	}
	s.known[key] = weight{depth: maxDepth} // until it is known: too deep for itself
	w, err := s.sum(v, depth)
	if err == nil {
		s.known[key] = w
	}
	return w, err
}

// sum weighs what a value consists of.
func (s *scale) sum(v reflect.Value, depth int) (weight, error) {
	w := weight{size: 2, items: 1}
	for part := range parts(v) {
		inner, err := s.weigh(part, depth+1)
		if err != nil {
			return w, err
		}
		w = w.plus(inner)
	}
	return w.at(depth)
}

// parts returns the elements of a map, a list or a struct; without reflection for
// the types that templates usually handle.
func parts(v reflect.Value) iter.Seq[any] {
	if v.Kind() == reflect.Struct {
		return flat(v.Fields(), false)
	}
	if v.CanInterface() {
		switch common := v.Interface().(type) {
		case map[string]any:
			return flat(maps.All(common), true)
		case []any:
			return slices.Values(common)
		}
	}
	return flat(v.Seq2(), v.Kind() == reflect.Map)
}

// flat returns the values of pairs, with their keys if wanted.
func flat[K, V any](pairs iter.Seq2[K, V], keys bool) iter.Seq[any] {
	return func(yield func(any) bool) {
		for key, value := range pairs {
			if keys && !yield(key) || !yield(value) {
				return
			}
		}
	}
}

// inside returns what an interface or a pointer holds.
func inside(v reflect.Value) reflect.Value {
	for range maxDepth {
		if v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer {
			break
		}
		v = v.Elem()
	}
	return v
}
