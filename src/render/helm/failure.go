package helm

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// failure is the function call whose error stopped a rendering.
type failure struct {
	function string
	err      error
}

// fail records the first failure.
func (m *meter) fail(function string, err error) {
	if m.failed.err == nil {
		m.failed = failure{function, err}
	}
}

var (
	errZero      = errors.New("division by zero")
	errNil       = errors.New("an argument is nil")
	errArgument  = errors.New("an argument has the wrong type")
	errArguments = errors.New("the arguments are out of range")
	errPattern   = errors.New("the pattern is not a regular expression")
	errNumber    = errors.New("a number is out of range")
)

// recovered returns the error to show for a function that has panicked, as many
// functions of Sprig do. It must be called by the recovering function. Panics
// raised by Sprig itself explain the mistake to the chart's author. Panics of
// the libraries below it and of the runtime describe Go code, and are replaced.
func recovered(function string, args []reflect.Value, p any) error {
	switch function {
	case "div", "mod", "divf":
		return errZero
	}
	switch p := p.(type) {
	case *runtime.TypeAssertionError, *reflect.ValueError:
		return errArgument
	case runtime.Error:
		if slices.ContainsFunc(args, func(arg reflect.Value) bool { return arg.Kind() == reflect.Interface && arg.IsNil() }) {
			return errNil
		}
	default:
		if panickedIn("github.com/Masterminds/sprig/") {
			return fmt.Errorf("%v", p)
		}
		if strings.HasPrefix(function, "regex") {
			return errPattern
		}
	}
	return errArguments
}

// panickedIn reports whether the function that raised the current panic is in a
// package with the prefix.
func panickedIn(prefix string) bool {
	const deepest = 32 // frames between the panic and this function
	var stack [deepest]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(0, stack[:])])
	for {
		frame, more := frames.Next()
		if frame.Function == "runtime.gopanic" {
			frame, _ = frames.Next()
			return strings.HasPrefix(frame.Function, prefix)
		}
		if !more {
			return false
		}
	}
}

// returned returns the error to show for an error that a function has returned.
func returned(err error) error {
	if _, ok := errors.AsType[*strconv.NumError](err); ok {
		return errNumber
	}
	return err
}

var errTemplate = errors.New("the text cannot be read as a template")

// unread returns the error of a text that cannot be instrumented. It is nil for
// a text that is not a template: the engine then reports the reason.
func (in instrumented) unread() error {
	if in.fault != "" {
		return fmt.Errorf("the text %s", in.fault)
	}
	tree := parse.New("tpl")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(in.text, "", "", map[string]*parse.Tree{}); err != nil {
		return nil //nolint:nilerr // the engine reports it
	}
	return errTemplate
}

var (
	// ranged matches the error of the template engine that quotes a value.
	ranged = regexp.MustCompile(`(range can't iterate over ).*`)

	// These match errors of the template engine that name Go types.
	nilValue  = regexp.MustCompile(`nil pointer evaluating [^\n]*\.(\w+)`)
	noField   = regexp.MustCompile(`can't evaluate field (\w+) in type ([^\n]*)`)
	wrongType = regexp.MustCompile(`wrong type for value; expected ([^;\n]*); got ([^\n]*)`)

	// wrappedPath matches a path that instrument has wrapped.
	wrappedPath = regexp.MustCompile(`\((?:` + argFunc + `|` + textFunc + `|` + tplFunc + `) ([^\s()]+)\)|\(([^\s()]+) \| ` + letFunc + `\)`)
)

// typeName returns a Go type in the terms of a chart's author.
func typeName(of string) string {
	of = strings.TrimPrefix(of, "*")
	switch {
	case of == "string":
		return "a text"
	case of == "bool":
		return "a boolean"
	case strings.HasPrefix(of, "int"), strings.HasPrefix(of, "uint"), strings.HasPrefix(of, "float"):
		return "a number"
	case strings.HasPrefix(of, "[]"):
		return "a list"
	case strings.HasPrefix(of, "map["), of == "common.Values":
		return "an object"
	}
	return "another value"
}

// withoutTypes rewords errors of the template engine that name Go types.
func withoutTypes(message string) string {
	message = nilValue.ReplaceAllString(message, "cannot read .$1: the value before it is null or missing")
	if found := noField.FindStringSubmatch(message); found != nil {
		message = strings.ReplaceAll(message, found[0], fmt.Sprintf("%s has no field %s", typeName(found[2]), found[1]))
	}
	if found := wrongType.FindStringSubmatch(message); found != nil {
		message = strings.ReplaceAll(message, found[0], fmt.Sprintf("%s is needed, not %s", typeName(found[1]), typeName(found[2])))
	}
	return message
}

// clean removes values and instrumentation from an error of the template engine.
func (m *meter) clean(message string) string {
	message = withoutTypes(ranged.ReplaceAllString(message, "${1}a value that is not a list"))
	for _, text := range m.tpls {
		message = strings.ReplaceAll(message, strconv.Quote(text), `"…"`)
	}
	message = wrappedPath.ReplaceAllString(message, "$1$2")
	return strings.NewReplacer(
		" | "+outFunc, "", " | "+letFunc, "", tplFunc+" ", "", argFunc+" ", "", textFunc+" | ", "", textFunc+" ", "",
	).Replace(message)
}

// templateError is a failed execution of a chart's templates.
type templateError struct {
	s     source
	names []string // of all templates
	m     *meter
	l     *lookup
	err   error // the engine's; may be nil
}

// first returns the template that the engine was executing, and the line. The
// engine's errors begin with that place, and no value can precede it.
func (f templateError) first() place {
	if f.err != nil {
		line, _, _ := strings.Cut(f.m.clean(f.err.Error()), "\n")
		line = enginePrefix.ReplaceAllString(line, "")
		if name, number, _ := cutPlace(f.names, line); name != "" {
			return place{name, number}
		}
	}
	return f.s.at(chartFile)
}

// limited returns the place at which a limit was exceeded.
func (f templateError) limited() place {
	if f.err == nil || f.l.read {
		return f.first()
	}
	at, _ := templateFault(f.names, f.m.clean(f.err.Error()))
	if at.file == "" {
		return f.s.at(chartFile)
	}
	return at
}

// report reports the failure. Once templates have read objects of the region, the
// engine's message may contain their values, and is withheld.
func (f templateError) report(r *report) {
	failed := f.m.failed
	switch {
	case f.l.read && failed.function != "":
		r.add(f.first(), "", "%s failed; its message is withheld, because the templates have read objects of the region", failed.function)
	case f.l.read:
		r.add(f.first(), "", "the template failed; the reason is withheld, because the templates have read objects of the region")
	case failed.function == "fail" || failed.function == "required":
		r.add(f.first(), "", "%s", cmp.Or(failed.err.Error(), failed.function+" failed without a message"))
	default:
		reportTemplate(f.names, f.m.clean(f.err.Error()), r)
	}
}
