package northboundtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		want, got string
		fails     bool
	}{
		"Same":         {"equal documents match", `{"a": [1, null, true]}`, `{"a":[1,null,true]}`, false},
		"Number":       {"another number does not", `{"a": 1}`, `{"a": 2}`, true},
		"Type":         {"nor another type", `{"a": "1"}`, `{"a": 1}`, true},
		"Missing":      {"nor a field too few", `{"a": 1, "b": 1}`, `{"a": 1}`, true},
		"Extra":        {"nor a field too many", `{"a": 1}`, `{"a": 1, "b": 1}`, true},
		"Open":         {"unless others may be there", `{"a": 1, "...": ""}`, `{"a": 1, "b": 1}`, false},
		"OpenMissing":  {"but what is named must be there", `{"a": 1, "...": ""}`, `{"b": 1}`, true},
		"Short":        {"an item too few", `[1, 2]`, `[1]`, true},
		"Long":         {"an item too many", `[1]`, `[1, 2]`, true},
		"OpenArray":    {"items may follow", `[1, "..."]`, `[1, 2, 3]`, false},
		"OpenNone":     {"or none", `[1, "..."]`, `[1]`, false},
		"OpenShort":    {"but not be missing", `[1, 2, "..."]`, `[1]`, true},
		"Anything":     {"a blank is any value", `["<<>>", "<<>>", "<<>>"]`, `["x", 1, {"a": 1}]`, false},
		"Inside":       {"a blank is any text in a text", `"v<<>>.0"`, `"v1.2.0"`, false},
		"InsideOther":  {"and the rest is as it is", `"v<<>>.0"`, `"v1.2.1"`, true},
		"InsideNumber": {"only a lone blank is a number", `"v<<>>"`, `1`, true},
		"ObjectScalar": {"an object is no number", `{}`, `1`, true},
		"ArrayScalar":  {"nor is an array", `[]`, `{}`, true},
		"BadWant":      {"what is expected must be JSON", `{`, `{}`, true},
		"BadGot":       {"and so must the answer", `{}`, `<html>`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := Match(c.want, []byte(c.got)); (err != nil) != c.fails {
				t.Errorf("%s: %s against %s: %v", c.reason, c.got, c.want, err)
			}
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		want, got string
		vars      map[string]string // nil: they do not match
	}{
		"Same":     {"equal texts match", "a\nb", "a\nb", map[string]string{}},
		"Other":    {"others do not", "a\nb", "a\nc", nil},
		"Capture":  {"a name captures", "id <<id>> of <<n>>.", "id 7 of 9.", map[string]string{"id": "7", "n": "9"}},
		"OneLine":  {"a blank stays in its line", "<<x>>", "a\nb", nil},
		"Rest":     {"three dots are any lines", "a\n...\nz", "a\nb\nc\nz", map[string]string{}},
		"RestEnd":  {"at the end too", "a\n...", "a\nb\nc", map[string]string{}},
		"RestNone": {"or no line", "a\n...\nz", "a\nz", map[string]string{}},
		"Literal":  {"what looks like a pattern is none", "a.c", "abc", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := matcher{vars: map[string]string{}}
			err := m.text(c.want, c.got)
			if (err == nil) != (c.vars != nil) {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.vars, m.vars); err == nil && diff != "" {
				t.Errorf("%s: the captures differ (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
