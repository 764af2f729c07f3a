package syntax_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, one, stream string }{
		"One":         {"JSON is JSON", ` {"a": [1, "b", null]} `, "", ""},
		"Nothing":     {"nothing is no document, and may be none of many", " ", "1:1 it is empty", ""},
		"Several":     {"there may be one, or any number", "{} \n []\n5", "2:2 the document has ended before", ""},
		"Tail":        {"what follows a document is a document, or nothing", "{}\nx", "2:1 the document has ended before", "2:1 'x' cannot be here"},
		"End":         {"a text can be cut off", "{\n\"a\": \n\n", "2:5 it ends too early", "2:5 it ends too early"},
		"Text":        {"in a string", `["a`, "1:4 it ends too early", "1:4 it ends too early"},
		"Word":        {"in a word", "nul", "1:4 it ends too early", "1:4 it ends too early"},
		"Number":      {"in a number", "-", "1:2 it ends too early", "1:2 it ends too early"},
		"Character":   {"the character is quoted, not the text", "{\n  \"secret\" 1}", "2:12 '1' cannot be here", "2:12 '1' cannot be here"},
		"Comma":       {"likewise", `[1,]`, "1:4 ']' cannot be here", "1:4 ']' cannot be here"},
		"Control":     {"what cannot be seen is escaped", "\"a\nb\"", `1:3 '\n' cannot be here`, `1:3 '\n' cannot be here`},
		"Escape":      {"an escape is known", `"\x"`, "1:3 'x' cannot be here", "1:3 'x' cannot be here"},
		"Mark":        {"a byte order mark is one character", "\ufeff{}", `1:1 '\ufeff' cannot be here`, `1:1 '\ufeff' cannot be here`},
		"Not UTF-8":   {"bytes need not be characters", "\xff", `1:1 '�' cannot be here`, `1:1 '�' cannot be here`},
		"Second line": {"columns begin anew", "[\n\n  }", "3:3 '}' cannot be here", "3:3 '}' cannot be here"},
		"Third":       {"also in later documents", "1\n[2]\n{3}", "2:1 the document has ended before", "3:2 '3' cannot be here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, got := range map[string]struct{ got, want string }{
				"JSON":       {told(syntax.JSON([]byte(tc.text))), tc.one},
				"JSONStream": {told(syntax.JSONStream([]byte(tc.text))), tc.stream},
			} {
				if got.got != got.want {
					t.Errorf("%s: %s(%q) = %q, want %q", tc.reason, what, tc.text, got.got, got.want)
				}
			}
		})
	}
}

func told(line, column int, message string) string {
	if message == "" {
		return ""
	}
	return fmt.Sprintf("%d:%d %s", line, column, message)
}

// document has a field of each type.
type document struct {
	Text    string            `json:"text"`
	Truth   *bool             `json:"truth"`
	Small   int8              `json:"small"`
	Ratio   float32           `json:"ratio"`
	Labels  map[string]string `json:"labels"`
	Entries []struct {
		Number json.Number `json:"number"`
	} `json:"entries"`
}

func TestHalfPair(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, text string
		want         bool
	}{
		"Plain":    {"a string without escapes has no halves", `"a"`, false},
		"Other":    {"other escapes are characters", `"\u0061\n\ue000"`, false},
		"Pair":     {"two halves are a character", `"\ud83d\ude00"`, false},
		"Pairs":    {"pairs may follow one another", `"\uD83D\uDE00\ud83d\ude00"`, false},
		"Escaped":  {"an escaped backslash starts no escape", `"\\ud83d"`, false},
		"High":     {"a first half needs a second one", `"\ud83d"`, true},
		"Low":      {"a second half needs a first one", `"\ude00"`, true},
		"Reversed": {"the first half comes first", `"\ude00\ud83d"`, true},
		"Twice":    {"two first halves are no pair", `"\ud83d\ud83d\ude00"`, true},
		"Apart":    {"the halves are next to each other", `"\ud83da\ude00"`, true},
		"Between":  {"separators before the string do not count", ` : "\ud83d"`, true},
	} {
		if got := syntax.HalfPair([]byte(tc.text)); got != tc.want {
			t.Errorf("%s: %s: %s: %v", name, tc.reason, tc.text, got)
		}
	}
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, want string }{
		"None":      {"another error is none", `{`, ""},
		"Document":  {"the document has no name", `[]`, ": an object is needed, not an array"},
		"Text":      {"types have JSON's names", `{"text": 5}`, "text: a string is needed, not a number"},
		"Truth":     {"also behind a pointer", `{"truth": "yes"}`, "truth: a boolean is needed, not a string"},
		"Integer":   {"a fraction is no integer", `{"small": 1.5}`, "small: an integer within the range is needed"},
		"Large":     {"a number may be too large", `{"small": 128}`, "small: an integer within the range is needed"},
		"Huge":      {"of each type", `{"ratio": 1e300}`, "ratio: a number within the range is needed"},
		"Not small": {"what is no number is out of no range", `{"small": true}`, "small: an integer is needed, not a boolean"},
		"Map":       {"the name in a map is not told", `{"labels": {"a": 1}}`, "labels: a string is needed, not a number"},
		"Object":    {"an object is an object", `{"labels": "x"}`, "labels: an object is needed, not a string"},
		"List":      {"a list is an array", `{"entries": {}}`, "entries: an array is needed, not an object"},
		"Item":      {"and leads into lists", `{"entries": [{"number": []}]}`, "entries.number: a string is needed, not an array"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if field, message, ok := syntax.Mismatch(json.Unmarshal([]byte(tc.text), new(document))); ok {
				got = field + ": " + message
			}
			if got != tc.want {
				t.Errorf("%s: Mismatch of %s = %q, want %q", tc.reason, tc.text, got, tc.want)
			}
		})
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Line":      {"the reader's line is kept", "a: 1\n\t- x", "2: found a tab character that violates indentation"},
		"No line":   {"it may have none", "a: *b", "0: unknown anchor 'b' referenced"},
		"Self":      {"likewise", "a: &a [*a]", "0: anchor 'a' value contains itself"},
		"First":     {"or none for the first line", "a: b: c", "0: mapping values are not allowed in this context"},
		"Type":      {"a wrong type is told as in JSON", "text: [1]", "0: text: a string is needed, not an array"},
		"Document":  {"also of the document", "5", "0: an object is needed, not a number"},
		"Number":    {"YAML has more numbers than JSON", "ratio: .nan", "0: a number is not one that JSON knows"},
		"Key":       {"and more keys, which are not quoted", "? [secret]\n: y\n", "0: a key is neither a text nor a number"},
		"Tag":       {"a value that is quoted may be a secret", "a: !!int secret", "0: a value is not of the type that its tag says"},
		"Bytes":     {"not everything is text", "\xff", "0: invalid leading UTF-8 octet"},
		"Duplicate": {"a list of faults has a first one", "a: 1\na: 2", `2: key "a" already set in map`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := yaml.UnmarshalStrict([]byte(tc.text), new(document))
			if err == nil {
				t.Fatalf("%s: %q is read", tc.reason, tc.text)
			}
			line, message := syntax.YAML(err)
			if got := fmt.Sprintf("%d: %s", line, message); got != tc.want {
				t.Errorf("%s: YAML of %q = %q, want %q; the library says: %v", tc.reason, tc.text, got, tc.want, err)
			}
		})
	}
}
