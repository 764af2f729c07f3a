package helm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// What the templates of a chart may do in one rendering.
const (
	maxWork     = 256 << 20 // bytes that are printed, assigned, or made by functions, over and over
	stepCost    = 256       // bytes that a round of a loop counts as
	callCost    = 1 << 10   // bytes that a call of a template counts as
	tplCost     = 8 << 10   // bytes that a call of tpl counts as: all templates are copied for it
	itemCost    = 32        // bytes that an item of a map or list counts as
	maxRendered = 32 << 20  // bytes of all that comes out
	maxFrames   = 20_000    // of the stack, on which templates call each other
	maxDepth    = 500       // of maps and lists in each other
)

// meter counts what templates do. Everything that can be repeated tells it:
// rounds of loops, calls of templates, what is printed or assigned, and
// functions that can make much of little, before they do. So a rendering ends
// soon after its context, and holds no more than a small multiple of maxWork.
// When it has stopped a rendering, err says why.
type meter struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one rendering; a template hands on none
	limit int             // maxWork, but in tests
	used  int
	calls int
	err   error
	tpls  []string // what tpl was given, as it is quoted in errors
}

var (
	errStack = errors.New("the templates call each other too deep")
	errDepth = fmt.Errorf("a value refers to itself, or is nested more than %d deep", maxDepth)
)

// charge takes bytes from what is left.
func (m *meter) charge(bytes int) error {
	if m.err == nil {
		if m.used += min(max(bytes, 0), maxWork+1); m.used > m.limit {
			m.err = fmt.Errorf("the templates make more than %d bytes of text and values", m.limit)
		}
	}
	if m.err == nil {
		m.err = m.ctx.Err()
	}
	return m.err
}

// must is charge for functions that cannot fail in another way; the template
// engine makes errors of panics.
func (m *meter) must(bytes int) {
	if err := m.charge(bytes); err != nil {
		panic(err)
	}
}

func (m *meter) step(size int) (string, error) { return "", m.charge(stepCost + size) }

func (m *meter) call(size int) (string, error) {
	const seldom = 64 // looking at the stack takes as long as it is deep
	var pc [1]uintptr
	if m.calls++; m.calls%seldom == 0 && m.err == nil && runtime.Callers(maxFrames, pc[:]) > 0 {
		m.err = errStack
	}
	return "", m.charge(callCost + size)
}

func (m *meter) out(v reflect.Value) (reflect.Value, error) {
	size, err := m.weigh(v)
	if err == nil {
		err = m.charge(size)
	}
	return v, err
}

// let counts what a variable is made of, not what that refers to.
func (m *meter) let(v reflect.Value) (reflect.Value, error) {
	size := 0
	if inner := inside(v); inner.Kind() == reflect.String {
		size = inner.Len()
	} else if inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
		size = product(itemCost, inner.Len())
	}
	return v, m.charge(size)
}

// maxTpls bounds what is remembered of tpl.
const maxTpls = 100

func (m *meter) tpl(text string) (string, error) {
	if err := m.charge(tplCost + 2*len(text)); err != nil {
		return "", err
	}
	instrumented := instrument(text)
	if len(m.tpls) < maxTpls {
		m.tpls = append(m.tpls, strconv.Quote(instrumented))
	}
	return instrumented, nil
}

// ranged is an error of the template engine that repeats a value.
var ranged = regexp.MustCompile(`(range can't iterate over ).*`)

// clean takes out of an error what the chart has not written.
func (m *meter) clean(message string) string {
	message = ranged.ReplaceAllString(message, "${1}what is no list")
	for _, quoted := range m.tpls {
		message = strings.ReplaceAll(message, quoted, `"…"`)
	}
	return strings.NewReplacer(" | "+outFunc, "", " | "+letFunc, "", tplFunc+" ", "").Replace(message)
}

// weigh returns how large a value is when it is written out, each time that it
// is referred to.
func (m *meter) weigh(v reflect.Value) (int, error) {
	s := scale{known: map[held]weight{}}
	w, err := s.weigh(v, 0)
	if err != nil && m.err == nil {
		m.err = err
	}
	return w.size, err
}

// held is a map or list, which more than one value can refer to.
type held struct {
	at   uintptr
	size int
}

// weight is how large a value is, and how deep.
type weight struct{ size, height int }

func (w weight) plus(inner weight) weight {
	return weight{min(w.size+inner.size+inner.height, maxWork+1), max(w.height, inner.height+1)}
}

type scale struct{ known map[held]weight }

func (s scale) weigh(v reflect.Value, depth int) (weight, error) {
	w := weight{size: 2}
	var err error
	switch v = inside(v); v.Kind() {
	case reflect.String:
		w.size += v.Len()
	case reflect.Map, reflect.Slice:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			w.size += 4 * v.Len()
		} else if v.Len() > 0 {
			w, err = s.container(v, depth)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			var inner weight
			if inner, err = s.weigh(field, depth+1); err != nil {
				break
			}
			w = w.plus(inner)
		}
	default:
		w.size = 8
	}
	if depth+w.height > maxDepth {
		err = errDepth
	}
	return w, err
}

func (s scale) container(v reflect.Value, depth int) (weight, error) {
	key := held{v.Pointer(), v.Len()}
	if w, again := s.known[key]; again {
		return w, nil
	}
	if depth > maxDepth {
		return weight{}, errDepth
	}
	w := weight{size: 2}
	for element := range elements(v) {
		inner, err := s.weigh(element, depth+1)
		if err != nil {
			return w, err
		}
		w = w.plus(inner)
	}
	s.known[key] = w
	return w, nil
}

// elements returns what is in a map or list.
func elements(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for key, value := range v.Seq2() {
			if v.Kind() == reflect.Map && !yield(key) || !yield(value) {
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
