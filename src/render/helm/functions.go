package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// functions returns the replacements for the functions of Helm's engine: the
// same functions, charged to the meter before each call, and the functions that
// instrument inserts.
func functions(m *meter, l *lookup) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")       // not in Helm
	delete(known, "expandenv") // not in Helm
	maps.Copy(known, builtins())
	maps.Copy(known, encoders())
	maps.Copy(known, decoders())
	maps.Copy(known, template.FuncMap{
		"lookup": l.object, "fail": l.failWith, "required": l.required,
		"getHostByName": func(string) string { return "" },
	})
	costs := costs()
	out := template.FuncMap{
		stepFunc: m.step, callFunc: m.call, outFunc: m.out, letFunc: m.let, argFunc: m.arg, textFunc: m.text, tplFunc: m.tpl,
	}
	for name, function := range known {
		price, special := costs[name]
		if !special {
			price = defaultCost
		}
		out[name] = m.counted(name, function, price)
	}
	return out
}

// counted returns a function that charges the meter before each call, and whose
// errors are safe to show to users.
func (m *meter) counted(name string, function any, price cost) any {
	f := reflect.ValueOf(function)
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		m.must(functionCost)
		size := price(m, args)
		m.must(size)
		results := m.guarded(name, call, args)
		m.must(shallowSize(results[0]) - size)
		last := len(results) - 1
		if err, _ := reflect.TypeAssert[error](results[last]); last > 0 && err != nil {
			err = returned(err)
			m.fail(name, err)
			results[last] = reflect.ValueOf(&err).Elem()
		}
		return results
	}).Interface()
}

// guarded calls a function, and replaces the value of its panic with an error
// that is safe to show to users. The template engine returns that error.
func (m *meter) guarded(name string, call func([]reflect.Value) []reflect.Value, args []reflect.Value) []reflect.Value {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if m.err != nil {
			panic(m.err) // lookup has exceeded a limit
		}
		err := recovered(name, args, p)
		m.fail(name, err)
		panic(err)
	}()
	return call(args)
}

// failWith and required are the functions fail and required of Helm's engine.
func (l *lookup) failWith(message string) (string, error) { return "", l.refuse(message) }

func (l *lookup) required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return "", l.refuse(message)
	}
	return value, nil
}

// refuse returns the error of a template that does not accept its values. When the chart
// is linted, it is recorded instead.
func (l *lookup) refuse(message string) error {
	if !l.lint {
		return errors.New(message)
	}
	l.refused = append(l.refused, message)
	return nil
}

// builtins are functions of text/template.
func builtins() template.FuncMap {
	return template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
}

// encoders are functions that Helm's engine adds to Sprig's but does not
// export.
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

// decoders are functions of Helm's engine that parse texts. They return errors as
// values.
func decoders() template.FuncMap {
	object := func(decode func(string, any) error) func(string) map[string]any {
		return func(text string) map[string]any {
			found := map[string]any{}
			if err := decode(text, &found); err != nil {
				found["Error"] = err.Error()
			}
			return found
		}
	}
	array := func(decode func(string, any) error) func(string) []any {
		return func(text string) []any {
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
	}
}

func fromYAML(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }
func fromJSON(text string, into any) error { return json.Unmarshal([]byte(text), into) }
func fromTOML(text string, into any) error { return toml.Unmarshal([]byte(text), into) }
