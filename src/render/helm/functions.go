package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// deep are the functions that go through all of a value that they are given.
// A value can hold another any number of times, and even itself.
var deep = []string{
	"print", "printf", "println", "html", "js", "urlquery",
	"quote", "squote", "cat", "toString", "toStrings", "join", "sortAlpha",
	"toJson", "mustToJson", "toPrettyJson", "mustToPrettyJson", "toRawJson", "mustToRawJson",
	"toYaml", "mustToYaml", "toYamlPretty", "toToml", "mustToToml",
	"deepCopy", "mustDeepCopy", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite",
}

// functions returns what is laid over the functions of Helm's engine: what
// instrument puts into templates, lookup, and the functions that make much of
// little, which do the same but are counted.
func functions(m *meter, l *lookup) template.FuncMap {
	known := sprig.TxtFuncMap()
	maps.Copy(known, encoders())
	maps.Copy(known, m.printers())
	out := template.FuncMap{
		stepFunc: m.step, callFunc: m.call, outFunc: m.out, letFunc: m.let, tplFunc: m.tpl,
		"lookup": l.object,
	}
	for _, name := range deep {
		out[name] = m.weighed(known[name])
	}
	maps.Copy(out, m.amplifiers(known))
	maps.Copy(out, m.decoders())
	return out
}

// printers are functions of text/template itself.
func (m *meter) printers() template.FuncMap {
	return template.FuncMap{
		"print": fmt.Sprint, "println": fmt.Sprintln,
		"printf": func(format string, args ...any) string {
			m.must(widths(format))
			return fmt.Sprintf(format, args...)
		},
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
}

// widths returns how much the verbs of a format may be widened to.
func widths(format string) int {
	const widest = 1e6 // of one verb: fmt ignores what is more
	sum, number := 0, 0
	for _, c := range format {
		switch {
		case '0' <= c && c <= '9':
			number = min(10*number+int(c-'0'), widest)
			continue
		case c == '*':
			number = widest
		}
		sum = min(sum+number, maxWork+1)
		number = 0
	}
	return sum + number
}

// encoders are functions that Helm's engine adds to sprig's, and does not share.
func encoders() template.FuncMap {
	lenient := func(encode func(any) (string, error)) func(any) string {
		return func(v any) string {
			text, err := encode(v)
			if err != nil {
				return ""
			}
			return text
		}
	}
	return template.FuncMap{
		"toYaml": lenient(toYAML), "mustToYaml": toYAML, "toYamlPretty": lenient(toYAMLPretty),
		"toJson": lenient(toJSON), "mustToJson": toJSON,
		"toToml": func(v any) string {
			text, err := toTOML(v)
			if err != nil {
				return err.Error()
			}
			return text
		},
		"mustToToml": toTOML,
	}
}

func toYAML(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

func toYAMLPretty(v any) (string, error) {
	var b bytes.Buffer
	e := goyaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func toTOML(v any) (string, error) {
	var b strings.Builder
	err := toml.NewEncoder(&b).Encode(v)
	return b.String(), err
}

// weighed returns a function that weighs its arguments first.
func (m *meter) weighed(function any) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		for _, arg := range args {
			size, err := m.weigh(arg)
			if err != nil {
				panic(err)
			}
			m.must(size)
		}
		if f.Type().IsVariadic() {
			return f.CallSlice(args)
		}
		return f.Call(args)
	}).Interface()
}

// amplifiers returns functions whose result can be larger than what they are
// given by any factor.
func (m *meter) amplifiers(known template.FuncMap) template.FuncMap {
	out := template.FuncMap{
		"repeat": func(count int, text string) string {
			m.must(product(count, len(text)))
			return strings.Repeat(text, count)
		},
		"replace": func(old, with, text string) string {
			m.must(len(text) + product(strings.Count(text, old), len(with)))
			return strings.ReplaceAll(text, old, with)
		},
		"indent":    m.indented(known["indent"]),
		"nindent":   m.indented(known["nindent"]),
		"until":     m.counted(known["until"], func(args []int) (int, int, int) { return 0, last(args), 1 }),
		"untilStep": m.counted(known["untilStep"], func(args []int) (int, int, int) { return args[0], args[1], args[2] }),
		"seq":       m.counted(known["seq"], sequence),
		"wrapWith":  m.wrapped(known["wrapWith"]),
	}
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes"} {
		out[name] = m.counted(known[name], func(args []int) (int, int, int) { return 0, last(args), 1 })
	}
	for _, name := range []string{"regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral"} {
		out[name] = m.replaced(known[name])
	}
	return out
}

// product multiplies sizes without overflow.
func product(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > maxWork/b {
		return maxWork + 1
	}
	return a * b
}

func last(args []int) int { return args[len(args)-1] }

func (m *meter) indented(function any) any {
	indent, _ := function.(func(int, string) string)
	return func(spaces int, text string) string {
		m.must(len(text) + product(spaces, strings.Count(text, "\n")+1))
		return indent(spaces, text)
	}
}

// counted returns a function that counts from one number to another: whatever it
// makes of that, there are so many.
func (m *meter) counted(function any, bounds func([]int) (from, to, step int)) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		var numbers []int
		for _, arg := range args {
			if more, ok := reflect.TypeAssert[[]int](arg); ok {
				numbers = append(numbers, more...)
			} else {
				numbers = append(numbers, int(arg.Int()))
			}
		}
		if len(numbers) > 0 {
			from, to, step := bounds(numbers)
			m.must(product(16, length(from, to, step)))
		}
		if f.Type().IsVariadic() {
			return f.CallSlice(args)
		}
		return f.Call(args)
	}).Interface()
}

// sequence is how seq takes its arguments: to, from and to, or from, step and to.
func sequence(args []int) (from, to, step int) {
	switch len(args) {
	case 1:
		return 1, args[0], 1
	case 3:
		return args[0], args[2], args[1]
	}
	return args[0], last(args), 1
}

// length returns how many numbers lie between two, at most; the difference of
// two integers may itself be none.
func length(from, to, step int) int {
	if step == 0 {
		return 0 // they make nothing of it
	}
	distance := (float64(to) - float64(from)) / float64(step)
	return int(min(max(distance, -distance)+2, maxWork))
}

func (m *meter) wrapped(function any) any {
	wrap, _ := function.(func(int, string, string) string)
	return func(width int, separator, text string) string {
		pieces := len(text)/max(width, 1) + strings.Count(text, " ") + 1
		m.must(len(text) + product(pieces, len(separator)))
		return wrap(width, separator, text)
	}
}

// replaced counts what a replacement makes: itself for each match, and for each
// of its references at most the whole text.
func (m *meter) replaced(function any) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		text, with := args[1].String(), args[2].String()
		matches := 0
		if pattern, err := regexp.Compile(args[0].String()); err == nil {
			matches = len(pattern.FindAllStringIndex(text, -1))
		}
		m.must(len(text) + product(matches, len(with)) + product(len(text), strings.Count(with, "$")))
		return f.Call(args)
	}).Interface()
}

// decoders return functions that parse texts. What they make takes many times
// the size of the text. Errors are values, as Helm has them.
func (m *meter) decoders() template.FuncMap {
	const factor = 16
	object := func(decode func(string, any) error) func(string) map[string]any {
		return func(text string) map[string]any {
			m.must(product(factor, len(text)))
			found := map[string]any{}
			if err := decode(text, &found); err != nil {
				found["Error"] = err.Error()
			}
			return found
		}
	}
	array := func(decode func(string, any) error) func(string) []any {
		return func(text string) []any {
			m.must(product(factor, len(text)))
			found := []any{}
			if err := decode(text, &found); err != nil {
				found = []any{err.Error()}
			}
			return found
		}
	}
	return template.FuncMap{
		"fromYaml": object(fromYAML), "fromYamlArray": array(fromYAML),
		"fromJson": object(fromJSON), "fromJsonArray": array(fromJSON),
		"fromToml": object(fromTOML),
		"mustFromJson": func(text string) (any, error) {
			m.must(product(factor, len(text)))
			var found any
			err := fromJSON(text, &found)
			return found, err
		},
	}
}

func fromYAML(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }
func fromJSON(text string, into any) error { return json.Unmarshal([]byte(text), into) }
func fromTOML(text string, into any) error { return toml.Unmarshal([]byte(text), into) }
