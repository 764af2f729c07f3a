package helm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits of one rendering. The largest public charts use about a tenth of each.
const (
	maxWork     = 96 << 20         // bytes charged for text and values that templates create
	maxTime     = 30 * time.Second // including lookups in the region
	maxRendered = 16 << 20         // bytes of all output
	maxFrames   = 20_000           // stack frames, for templates that call each other
	maxDepth    = 500              // nesting of maps and lists

	tooMuch = 1 << 40 // bytes; exceeds every limit
)

// Charges, in bytes of memory or of work that takes as long.
const (
	stepCost     = 256      // one iteration of a loop
	callCost     = 1 << 10  // one call of a template
	tplCost      = 8 << 10  // one call of tpl, which copies all templates
	itemCost     = 32       // one item of a map or list
	functionCost = 64       // one call of a function
	lookupCost   = 64 << 10 // one request to the region
)

// meter bounds the time and memory of one rendering. Templates charge it before
// each iteration, each template call and each function call, and for each value
// that they print or assign. A charge fails if the context has ended or the
// limit is exceeded; err then holds the reason.
type meter struct {
	ctx       context.Context //nolint:containedctx // it lives as long as one rendering; templates pass none
	caller    context.Context //nolint:containedctx // ctx without its deadline
	deadline  time.Time
	cancel    context.CancelFunc // of ctx
	limit     int                // maxWork, except in tests
	timeout   *limitError        // the error of the context's own deadline
	templates int                // number of templates, all of which tpl copies
	used      int
	calls     int
	err       *limitError
	stack     []uintptr // buffer for runtime.Callers
	failed    failure
	tpls      []string // the latest arguments of tpl, which its errors quote
}

// newMeter returns the meter of a rendering that starts now. The caller must
// call close.
func newMeter(caller context.Context, work int, limit time.Duration) *meter {
	m := &meter{caller: caller, limit: work, timeout: errTime(limit), deadline: time.Now().Add(limit)}
	m.ctx, m.cancel = context.WithDeadlineCause(caller, m.deadline, m.timeout)
	return m
}

func (m *meter) close() { m.cancel() }

// extend moves the deadline by the time that the rendering has waited for
// others.
func (m *meter) extend(by time.Duration) {
	m.cancel()
	m.deadline = m.deadline.Add(by)
	m.ctx, m.cancel = context.WithDeadlineCause(m.caller, m.deadline, m.timeout)
}

// limitError says which limit stopped a rendering.
type limitError struct {
	kind  nf.Kind
	cause error
}

func (e *limitError) Error() string { return e.cause.Error() }

func (e *limitError) Unwrap() error { return e.cause }

// at returns the error of a rendering that was stopped in a template.
func (e *limitError) at(p place) error {
	return nf.E(e.kind, "render", "package", &limitViolation{
		nf.Violations{{File: p.file, Line: p.line, Message: e.Error()}}, e,
	})
}

// limitViolation is the violation for an exceeded limit, with its cause.
type limitViolation struct {
	found nf.Violations
	cause error
}

func (e *limitViolation) Error() string { return e.found.Error() }

func (e *limitViolation) Unwrap() []error { return []error{e.found, e.cause} }

var (
	errStack = &limitError{nf.Invalid, errors.New("the templates call each other too deep")}
	errDepth = &limitError{nf.Invalid, fmt.Errorf("a value refers to itself, or is nested more than %d deep", maxDepth)}

	errRendered = &limitError{nf.TooLarge, fmt.Errorf("the templates generate more than %d bytes of objects", maxRendered)}
)

func errWork(limit int) *limitError {
	return &limitError{nf.TooLarge, fmt.Errorf("the templates generate more than %d bytes of text and values", limit)}
}

// errTime returns the cause of a context whose rendering has exceeded its time.
func errTime(limit time.Duration) *limitError {
	return &limitError{nf.Timeout, fmt.Errorf("the rendering takes more than %s", limit)}
}

// ended returns the reason why a context has ended.
func ended(ctx context.Context) *limitError {
	cause := context.Cause(ctx)
	if known, ok := errors.AsType[*limitError](cause); ok {
		return known
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &limitError{nf.Timeout, cause}
	}
	return &limitError{nf.Cancelled, cause}
}

// charge adds bytes to the work done. Its error is the meter's.
func (m *meter) charge(bytes int) error {
	if m.err == nil && m.ctx.Err() != nil {
		m.err = ended(m.ctx)
	}
	if m.err == nil {
		if m.used += min(max(bytes, 0), tooMuch); m.used > m.limit {
			m.err = errWork(m.limit)
		}
	}
	if m.err == nil {
		return nil // not a nil *limitError
	}
	return m.err
}

// must is charge for code that cannot return an error. The template engine turns
// the panic into one.
func (m *meter) must(bytes int) {
	if err := m.charge(bytes); err != nil {
		panic(err)
	}
}

// stop stops the rendering.
func (m *meter) stop(err *limitError) {
	if m.err == nil {
		m.err = err
	}
	panic(m.err)
}

// weigh returns the weight of a value. It stops the rendering if the value has
// none.
func (m *meter) weigh(v reflect.Value) weight {
	w, err := weigh(v)
	if err != nil {
		m.stop(errDepth)
	}
	return w
}

func (m *meter) step(size int) (string, error) { return "", m.charge(stepCost + size) }

func (m *meter) call(size int) (string, error) {
	const seldom = 64 // the deeper the stack, the longer it takes to read
	if m.calls++; m.calls%seldom == 0 {
		m.depth()
	}
	return "", m.charge(callCost + size)
}

// depth returns the number of frames on the stack. It stops the rendering if
// there are too many.
func (m *meter) depth() int {
	if m.stack == nil {
		m.stack = make([]uintptr, maxFrames)
	}
	frames := runtime.Callers(0, m.stack)
	if frames == maxFrames {
		m.stop(errStack)
	}
	return frames
}

func (m *meter) out(v reflect.Value) (reflect.Value, error) {
	return v, m.charge(m.weigh(v).size)
}

// let charges for a variable or the result of a method, but not for the values
// that it refers to.
func (m *meter) let(v reflect.Value) (reflect.Value, error) {
	if inside(v).Kind() == reflect.Struct {
		return v, m.charge(m.weigh(v).size) // methods return new structs
	}
	return v, m.charge(shallowSize(v))
}

// arg charges for an argument of a function that cannot be replaced.
func (m *meter) arg(v reflect.Value) (reflect.Value, error) {
	size := functionCost
	if inner := inside(v); inner.Kind() == reflect.String {
		size += inner.Len()
	}
	return v, m.charge(size)
}

const (
	shortText  = 128 // bytes of an argument of a method
	globFactor = 128 // see text
)

// text charges for an argument of a method, which may be the pattern of Files.Glob:
// compiling it takes memory that grows with the square of its length.
func (m *meter) text(v reflect.Value) (reflect.Value, error) {
	v, err := m.let(v)
	if inner := inside(v); err == nil && inner.Kind() == reflect.String {
		beyond := inner.Len() - shortText
		err = m.charge(functionCost + product(globFactor, product(beyond, beyond)))
	}
	return v, err
}

// shallowSize returns the size of a value, without the values that it refers to.
func shallowSize(v reflect.Value) int {
	v = inside(v)
	if v.Kind() == reflect.String {
		return v.Len()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return product(itemCost, v.Len())
	}
	return 0
}

const keptTpls = 16

// tpl instruments the text that the function tpl executes.
func (m *meter) tpl(text string) (string, error) {
	in := instrument(text)
	if in.fault != "" || in.broken {
		m.must(product(len(text), wordCost))
		return text, in.unread()
	}
	// tpl copies all templates, and keeps the copy until the call returns: nested
	// calls cost more, since they hold all copies at once.
	copies := tplCost + product(m.templates, templateCost)
	if err := m.charge(in.size() + product(1+m.depth()/framesATpl, copies)); err != nil {
		return "", err
	}
	if len(m.tpls) == keptTpls {
		m.tpls = m.tpls[1:]
	}
	m.tpls = append(m.tpls, in.text)
	return in.text, nil
}

const (
	framesATpl   = 128 // stack frames, each time after which tpl costs as much again
	templateCost = 20  // each template that tpl copies
	actionCost   = 512 // each action of a parsed template
	wordCost     = 128 // each operand of its actions
)

// size estimates the memory of a parsed template.
func (in instrumented) size() int {
	return 2*len(in.text) + product(in.actions, actionCost) + product(in.words, wordCost)
}
