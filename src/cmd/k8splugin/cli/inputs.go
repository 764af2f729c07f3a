package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// values are parameters as they are sent: JSON that was never rounded. A null
// takes the parameter away.
type values map[string]json.RawMessage

// setFlag is --set, --set-string or --unset: each use adds to the same values,
// in the order of the command line.
type setFlag struct {
	into values
	read func(text string) (json.RawMessage, error)
}

func (f setFlag) String() string { return "" }
func (f setFlag) Type() string   { return "name=value" }

func (f setFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want name=value")
	}
	raw, err := f.read(value)
	if err != nil {
		return err
	}
	f.into[name] = raw
	return nil
}

// typed reads a value that says its type: what is JSON is that, what begins with
// a bracket, brace or quote is YAML, and anything else is text. So yes, 3.1.0 and
// 0x1f stay what they look like.
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

// unsetFlag is --unset: it takes parameters away.
type unsetFlag struct{ into values }

func (f unsetFlag) String() string { return "" }
func (f unsetFlag) Type() string   { return "name" }

func (f unsetFlag) Set(name string) error {
	if name == "" || strings.Contains(name, "=") {
		return errors.New("want the name of a parameter")
	}
	f.into[name] = json.RawMessage("null")
	return nil
}

// labelsFlag is --label: k=v sets a label and, where labels can be taken away,
// k- does that.
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
	return errors.New("want key=value")
}

// parameters joins the values of files with those of the command line, which
// win. The file "-" is standard input.
func (s *session) parameters(files []string, set values) (values, error) {
	all := values{}
	for _, name := range files {
		text, err := s.readFile(name)
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
	maps.Copy(all, set)
	return all, nil
}

// answers joins the lists of files, of which each holds one or a single map.
func (s *session) answers(files []string) ([]values, error) {
	var all []values
	for _, name := range files {
		text, err := s.readFile(name)
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		var some []values
		if err := json.Unmarshal(raw, &some); err == nil {
			all = append(all, some...)
			continue
		}
		var single values
		if err := json.Unmarshal(raw, &single); err != nil {
			return nil, fmt.Errorf("cannot read %s: it must be a list of maps of names to values, or one such map", name)
		}
		all = append(all, single)
	}
	return all, nil
}

// readFile reads a file, or standard input for "-".
func (s *session) readFile(name string) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(s.Stdin)
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
