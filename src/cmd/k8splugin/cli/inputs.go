package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// values holds parameters as JSON, so that numbers are not rounded. A null
// deletes the parameter.
type values map[string]json.RawMessage

// fields returns the values as the fields of a document.
func (v values) fields() map[string]any {
	out := make(map[string]any, len(v))
	for name, value := range v {
		out[name] = value
	}
	return out
}

// settings holds the values of --set and similar flags.
type settings struct {
	names values             // by parameter name
	paths *[]setting         // inside parameters, in command line order
	texts map[string]*string // of a chart, by a path with an index, which Helm parses; nil deletes
}

// setting is a value at a path inside a parameter.
type setting struct {
	path  []string
	value json.RawMessage
}

func newSettings() settings {
	return settings{names: values{}, paths: &[]setting{}, texts: map[string]*string{}}
}

// put adds a value by its name or path.
func (s settings) put(name string, value json.RawMessage) error {
	path := segments(name)
	if slices.Contains(path, "") {
		return fmt.Errorf("%q is not a path: it contains an empty name", name)
	}
	if len(path) == 1 {
		s.names[path[0]] = value
		return nil
	}
	*s.paths = append(*s.paths, setting{path, value})
	return nil
}

// segments splits a path at dots that have no backslash before them.
func segments(path string) []string {
	const dot = "\x00" // cannot occur in an argument
	names := strings.Split(strings.ReplaceAll(path, `\.`, dot), ".")
	for i := range names {
		names[i] = strings.ReplaceAll(names[i], dot, ".")
	}
	return names
}

// indexed reports whether a path has a list index.
func indexed(path string) bool { return strings.Contains(path, "[") }

// into overlays the settings on parameters.
func (s settings) into(all values) error {
	maps.Copy(all, s.names)
	if s.paths == nil {
		return nil
	}
	for _, one := range *s.paths {
		if err := all.put(one.path, one.value); err != nil {
			return fmt.Errorf("cannot set %s: %w", strings.Join(one.path, "."), err)
		}
	}
	return nil
}

// put sets a value inside a parameter, and creates missing parents.
func (v values) put(path []string, value json.RawMessage) error {
	if len(path) == 1 {
		v[path[0]] = value
		return nil
	}
	var inner values
	if there, ok := v[path[0]]; ok && json.Unmarshal(there, &inner) != nil {
		return fmt.Errorf("%s is not a map of names to values", path[0])
	}
	if inner == nil {
		inner = values{}
	}
	if err := inner.put(path[1:], value); err != nil {
		return err
	}
	raw, err := json.Marshal(inner)
	v[path[0]] = raw
	return err
}

// setFlag is --set or --set-string. Each use adds to the same settings, in
// command line order.
type setFlag struct {
	into settings
	read func(text string) (json.RawMessage, error)
}

func (f setFlag) String() string { return "" }
func (f setFlag) Type() string   { return "name=value" }

func (f setFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("must be name=value")
	}
	if indexed(name) {
		f.into.texts[name] = &value
		return nil
	}
	raw, err := f.read(value)
	if err != nil {
		return err
	}
	return f.into.put(name, raw)
}

// typed parses a value: valid JSON as JSON, text that starts with a bracket,
// brace or quote as YAML, and other text as a string. So yes, 3.1.0 and 0x1f
// stay strings.
func typed(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if !strings.ContainsAny(text[:min(len(text), 1)], "[{'\"") {
		return textJSON(text)
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%q is not a YAML value; quote it or use --set-string", text)
	}
	return raw, nil
}

func textJSON(text string) (json.RawMessage, error) { return json.Marshal(text) }

// unsetFlag is --unset. It deletes parameters.
type unsetFlag struct{ into settings }

func (f unsetFlag) String() string { return "" }
func (f unsetFlag) Type() string   { return "name" }

func (f unsetFlag) Set(name string) error {
	if name == "" || strings.Contains(name, "=") {
		return errors.New("must be the name of a parameter")
	}
	if indexed(name) {
		f.into.texts[name] = nil
		return nil
	}
	return f.into.put(name, json.RawMessage("null"))
}

// labelsFlag is --label. k=v sets a label. Where labels can be deleted, k-
// deletes one.
type labelsFlag struct {
	labels    map[string]*string
	removable bool
}

func (f *labelsFlag) String() string { return "" }

func (f *labelsFlag) Type() string { return "key=value" }

func (f *labelsFlag) Set(text string) error {
	if f.labels == nil {
		f.labels = map[string]*string{}
	}
	key, value, ok := strings.Cut(text, "=")
	if ok && key != "" {
		f.labels[key] = &value
		return nil
	}
	if key, gone := strings.CutSuffix(text, "-"); gone && f.removable && key != "" {
		f.labels[key] = nil
		return nil
	}
	return errors.New("must be key=value")
}

// present returns the labels or values that are set.
func present(all map[string]*string) map[string]string {
	out := map[string]string{}
	for name, value := range all {
		if value != nil {
			out[name] = *value
		}
	}
	return out
}

// input reads files and standard input.
type input struct{ stdin io.Reader }

// parameters merges the values of files with those of the command line, which
// take precedence. The file "-" is standard input.
func (in input) parameters(files []string, set settings) (map[string]any, error) {
	all := values{}
	for _, name := range files {
		text, err := in.readFile(name)
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		var some values
		if err := json.Unmarshal(raw, &some); err != nil {
			return nil, fmt.Errorf("cannot read %s: it must be a map of names to values", name)
		}
		maps.Copy(all, some)
	}
	if err := set.into(all); err != nil {
		return nil, Usage(err)
	}
	return all.fields(), nil
}

// answers joins the lists of files. Each file holds a list of maps or one map.
func (in input) answers(files []string) ([]map[string]any, error) {
	var all []map[string]any
	for _, name := range files {
		text, err := in.readFile(name)
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		var some []map[string]any
		if err := unmarshal(raw, &some); err == nil {
			all = append(all, some...)
			continue
		}
		var single map[string]any
		if err := unmarshal(raw, &single); err != nil {
			return nil, fmt.Errorf("cannot read %s: it must be a list of maps of names to values, or one such map", name)
		}
		all = append(all, single)
	}
	return all, nil
}

// readFile reads a file, or standard input for "-".
func (in input) readFile(name string) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(in.stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	return text, nil
}
