package helm

import (
	"iter"
	"maps"
	"reflect"
	"slices"
)

// weight is the size of a value when it is formatted. A value that is
// referenced several times counts each time.
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
func weigh(v reflect.Value) (weight, error) { return (&weigher{}).weigh(v, 0) }

// reference identifies a map or list that several values can refer to.
type reference struct {
	at   uintptr
	size int
}

// weigher computes weights, and weighs each map and list only once.
type weigher struct{ known map[reference]weight }

// weigh weighs a value, which may be a reflect.Value.
func (s *weigher) weigh(value any, depth int) (weight, error) {
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
func (s *weigher) container(v reflect.Value, depth int) (weight, error) {
	key := reference{v.Pointer(), v.Len()}
	if w, again := s.known[key]; again {
		return w.at(depth)
	}
	if s.known == nil {
		s.known = map[reference]weight{}
	}
	s.known[key] = weight{depth: maxDepth} // until it is known; a value that contains itself is too deep
	w, err := s.sum(v, depth)
	if err == nil {
		s.known[key] = w
	}
	return w, err
}

// sum returns the weight of the elements of a value.
func (s *weigher) sum(v reflect.Value, depth int) (weight, error) {
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

// parts returns the elements of a map, a list or a struct. It avoids reflection
// for the types that templates usually handle.
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

// inside returns the value in an interface or behind a pointer.
func inside(v reflect.Value) reflect.Value {
	for range maxDepth {
		if v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer {
			break
		}
		v = v.Elem()
	}
	return v
}
