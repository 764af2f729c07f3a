package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// kubectl returns what Kubernetes' own tools make of a YAML document.
func kubectl(text string) (any, error) {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	var v any
	err = json.Unmarshal(asJSON, &v)
	return v, err
}

// ours returns what we make of it.
func ours(text string) (any, error) {
	r := &report{}
	rd := &reader{report: r, uses: map[string]place{}}
	documents := rd.read("x.yaml", []byte(text))
	if err := r.err(); err != nil || len(documents) == 0 {
		return nil, err
	}
	return literal(documents[0]), nil
}

// TestScalarsLikeKubectl compares with Kubernetes' own reading of scalars, made
// of what makes scalars strange.
func TestScalarsLikeKubectl(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"y", "Y", "yes", "Yes", "YES", "yEs", "n", "N", "no", "NO", "on", "On", "off", "OFF", "true", "True", "tRUE", "false",
		"null", "~", "Null", ".inf", ".NaN", "nan", "0644", "0o17", "0x1f", "0b11", "-0b11", "1_000", "_1", "08", "1e3", "1E+3", "1.", ".5",
		"-.5", "+1", "-0", "-0.0", "1.0", "12e03", "0.1", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "18446744073709551616", "1e400", "190:20:30", "2001-12-14", "2001-12-14t21:59:43.10-05:00",
		"!!str 1", "!!int 1", "!!float 1", "!!bool yes", "!!null null", `"1"`, `'yes'`, `"\u0041"`, "<<", "=", "1 2", "a b",
	})
	made := rapid.StringMatching(`[-+]?(0[xob]?)?[0-9_]{1,4}(\.[0-9]{0,2})?([eE][-+]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		text := "a: " + rapid.OneOf(words, made).Draw(t, "scalar")
		want, wantErr := kubectl(text)
		got, err := ours(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: our error %v, kubectl's %v", text, err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q (-kubectl +ours):\n%s", text, diff)
		}
	})
}

// TestStructuresLikeKubectl compares whole documents.
func TestStructuresLikeKubectl(t *testing.T) {
	cases := map[string]string{
		"keys":       "{1: a, 0x10: b, yes: c, 1.5: d, 2001-12-14: e, 'x': f, ? n : g}",
		"merge":      "a: &a {x: 1, w: 2}\nb: &b {w: 3, z: 4}\nc: {<<: [*a, *b], z: 5}\nd: {<<: *a, w: 6}\ne: {<<: {<<: *b, x: 7}}",
		"aliases":    "a: &a [1, &b {c: d}]\ne: *a\nf: *b\n*g : h\ni: &g j",
		"key alias":  "a: &g j\nb: {*g : h}",
		"redefined":  "a: &a 1\nb: *a\nc: &a 2\nd: *a",
		"blocks":     "a: |\n  x\n  y\nb: >\n  x\n  y\nc: |-\n  x\nd: >2+\n   x\n\n",
		"null value": "a:\nb: []\nc: {}\nd: ''",
		"list":       "- a\n- - b\n  - c\n- {d: e}",
		"quoted":     "\"a\\tb\": 'it''s'\nc: \"\\x41\\u00e9\\U0001F600\\\n  d\"",
		"comments":   "# a\na: b # c\n# d\n---\n",
		"directive":  "%YAML 1.1\n---\na: yes",
		"mark":       "\ufeffa: b",
		"windows":    "a: b\r\nc:\r\n- d\r\n",
		"tabs":       "a: b\t# c\nd: {\te:\tf }",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			want, wantErr := kubectl(text)
			got, err := ours(text)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("our error %v, kubectl's %v", err, wantErr)
			}
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Errorf("(-kubectl +ours):\n%s", diff)
			}
		})
	}
}

// TestDollarsInKeys checks that keys follow the same rules as values.
func TestDollarsInKeys(t *testing.T) {
	cases := map[string]struct{ reason, key, want string }{
		"reference":  {"a variable is replaced", "a-$name", "a-web"},
		"escaped":    {"$$ is a dollar sign next to a reference", "$$a-$name", "$a-web"},
		"alone":      {"and without one", "$$a", "$a"},
		"kubernetes": {"other dollars stay", "$(A)$1", "$(A)$1"},
	}
	in := render.Input{Inputs: nf.Inputs{Parameters: map[string]any{"name": "web"}}}
	for name, tc := range cases {
		for file, format := range map[string]string{
			"m.yaml": head + "data: {%q: b}", "alias.yaml": head + "a: &k %q\ndata: {*k : b}",
			"m.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {%q: "b"}}`,
		} {
			t.Run(name+"/"+file, func(t *testing.T) {
				in.Files = pkg(fmt.Sprintf(format, tc.key), file)
				out, err := Renderer{}.Render(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				data, _ := out.Groups[0].Objects[0].Object["data"].(map[string]any)
				if data[tc.want] != "b" {
					t.Errorf("%s: %q becomes %v, want the key %q", tc.reason, tc.key, data, tc.want)
				}
			})
		}
	}
}

// TestFaultyKeys checks that a fault of a key is one error.
func TestFaultyKeys(t *testing.T) {
	cases := map[string]struct{ reason, data, want string }{
		"lists": {"a list is not an empty text too", "{[a]: b,\n [c]: d}", "m.yaml:4: a key must be a text; m.yaml:5: a key must be a text"},
		"nulls": {"nor is null", "{~: b,\n ~: d}", "m.yaml:4: a key must be a text; m.yaml:5: a key must be a text"},
		"tags":  {"a tag is at fault, not the text", "{!!x a: b,\n !!x c: d}", `m.yaml:4: tag "!!x" is not supported; m.yaml:5: tag "!!x" is not supported`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Renderer{}.Check(t.Context(), pkg(head+"data: "+tc.data))
			if diff := cmp.Diff(tc.want, nf.ViolationsOf(err).Error()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSyntaxErrorLine breaks a long file at every line, in ways that parsers
// notice at once.
func TestSyntaxErrorLine(t *testing.T) {
	const lines = 30
	for i := range lines {
		for _, wrong := range []string{"\tx: y", "a: b: c", "- x", "}", "? *x", "%x", "a: 'b' c", "@x", "a: 'b", "a: [b", "a: {b"} {
			if wrong == "- x" && i == 0 {
				continue // it is the rest that is wrong then
			}
			text := make([]string, lines)
			for j := range text {
				text[j] = fmt.Sprintf("k%d: [v, w]", j)
			}
			text[i] = wrong
			rd := &reader{report: &report{}}
			rd.read("x.yaml", []byte(strings.Join(text, "\n")+"\n"))
			if found := rd.report.found; len(found) != 1 || found[0].Line != i+1 {
				t.Errorf("line %d is %q, found %v", i+1, wrong, found)
			}
		}
	}
}
