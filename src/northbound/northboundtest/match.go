package northboundtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// rest matches any further content: as a field of an object, as the last item
// of an array, or as a line of a text.
const rest = "..."

// blank is a placeholder in an expected text. <<>> matches anything; <<name>>
// matches anything and captures it as ${name}.
var blank = regexp.MustCompile(`<<([A-Za-z_][A-Za-z0-9_]*)?>>`)

// matcher compares expected and actual content, and stores captured values in
// vars.
type matcher struct{ vars map[string]string }

// document compares two JSON documents.
func (m matcher) document(want string, got []byte) error {
	wanted, err := parse([]byte(want))
	if err != nil {
		return fmt.Errorf("the expected body: %w", err)
	}
	value, err := parse(got)
	if err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return m.value("", wanted, value)
}

func parse(text []byte) (any, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w: %s", err, text)
	}
	return v, nil
}

func (m matcher) value(path string, want, got any) error {
	switch want := want.(type) {
	case string:
		return m.scalar(path, want, got)
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return m.object(path, want, got)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return m.array(path, want, got)
		}
	}
	if !reflect.DeepEqual(want, got) {
		return differs(path, want, got)
	}
	return nil
}

func (m matcher) scalar(path, want string, got any) error {
	text, ok := got.(string)
	if !ok && blank.FindString(want) == want && want != "" {
		text = fmt.Sprint(got)
	} else if !ok {
		return differs(path, want, got)
	}
	if err := m.text(want, text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (m matcher) object(path string, want, got map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name == rest {
			continue
		}
		value, ok := got[name]
		if !ok {
			return fmt.Errorf("%s.%s: it is missing", path, name)
		}
		if err := m.value(path+"."+name, want[name], value); err != nil {
			return err
		}
	}
	if _, more := want[rest]; more {
		return nil
	}
	for name, value := range got {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s.%s: it is there: %v", path, name, value)
		}
	}
	return nil
}

func (m matcher) array(path string, want, got []any) error {
	more := len(want) > 0 && want[len(want)-1] == rest
	if more {
		want = want[:len(want)-1]
	}
	if len(got) < len(want) || !more && len(got) > len(want) {
		return fmt.Errorf("%s: it has %d items, want %d", path, len(got), len(want))
	}
	for i := range want {
		if err := m.value(fmt.Sprintf("%s[%d]", path, i), want[i], got[i]); err != nil {
			return err
		}
	}
	return nil
}

// text compares two texts and stores the captured values.
func (m matcher) text(want, got string) error {
	pattern, names := compile(want)
	found := pattern.FindStringSubmatch(got)
	if found == nil {
		return fmt.Errorf("it is %q, want %q", got, want)
	}
	for i, name := range names {
		if name != "" {
			m.vars[name] = found[i+1]
		}
	}
	return nil
}

// compile returns the regular expression of an expected text, and the name of
// each of its groups.
func compile(want string) (*regexp.Regexp, []string) {
	var pattern strings.Builder
	var names []string
	pattern.WriteString(`\A`)
	for line := range strings.SplitAfterSeq(want, "\n") {
		if strings.TrimSuffix(line, "\n") == rest {
			pattern.WriteString(`(?s:.*?)`)
			continue
		}
		at := 0
		for _, hit := range blank.FindAllStringSubmatchIndex(line, -1) {
			pattern.WriteString(regexp.QuoteMeta(line[at:hit[0]]) + `([^\n]*?)`)
			names = append(names, blank.FindStringSubmatch(line[hit[0]:hit[1]])[1])
			at = hit[1]
		}
		pattern.WriteString(regexp.QuoteMeta(line[at:]))
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()), names
}

func differs(path string, want, got any) error {
	return fmt.Errorf("%s: it is %v (%T), want %v (%T)", path, got, got, want, want)
}

// Match compares a JSON document with an expected one in the language of
// transcripts: "<<>>" matches any value, and "..." any further content of an
// object or array.
func Match(want string, got []byte) error {
	return matcher{vars: map[string]string{}}.document(want, got)
}
