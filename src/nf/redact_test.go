package nf_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestInputsMask(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason   string
		in, want nf.Inputs
	}{
		"nothing":   {"nothing stays nothing", nf.Inputs{}, nf.Inputs{}},
		"name":      {"a value, whatever it is", nf.Inputs{Parameters: object{"pin": object{"a": 1.0}, "port": 1.0}}, nf.Inputs{Parameters: object{"pin": nf.Masked, "port": 1.0}}},
		"deep":      {"at any depth", nf.Inputs{Parameters: object{"list": []any{object{"pin": 1.0}}}}, nf.Inputs{Parameters: object{"list": []any{object{"pin": nf.Masked}}}}},
		"sources":   {"in every source", nf.Inputs{OOF: []object{{"pin": "a"}, {"b": "c"}}, Network: object{"pin": "a"}}, nf.Inputs{OOF: []object{{"pin": nf.Masked}, {"b": "c"}}, Network: object{"pin": nf.Masked}}},
		"overrides": {"at every step of a path, and as a path", nf.Inputs{Overrides: map[string]string{"pin": "a", "b.pin": "a", "pin[0].c": "a", "c.pins": "a", "the.path": "a"}}, nf.Inputs{Overrides: map[string]string{"pin": nf.Masked, "b.pin": nf.Masked, "pin[0].c": nf.Masked, "c.pins": "a", "the.path": nf.Masked}}},
		"others":    {"the others stay", nf.Inputs{KubeVersion: "v1", ObjectLabels: map[string]string{"pin": "a"}}, nf.Inputs{KubeVersion: "v1", ObjectLabels: map[string]string{"pin": "a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.Mask([]string{"pin", "the.path"})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	in := nf.Inputs{Parameters: object{"list": []any{object{"pin": "a"}}}, Overrides: map[string]string{"pin": "a"}}
	in.Mask([]string{"pin"})
	if diff := cmp.Diff(nf.Inputs{Parameters: object{"list": []any{object{"pin": "a"}}}, Overrides: map[string]string{"pin": "a"}}, in); diff != "" {
		t.Errorf("masking has changed the inputs themselves (-want +got):\n%s", diff)
	}
}

func TestInputsSecrets(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason string
		in     nf.Inputs
		want   []string
	}{
		"nothing":  {"what has another name is no secret", nf.Inputs{Parameters: object{"a": "b"}, Overrides: map[string]string{"a": "b"}}, nil},
		"values":   {"all that is inside a value, but no truths", nf.Inputs{Parameters: object{"pin": object{"a": []any{"x", 1.0, int64(2), true, nil}}}}, []string{"1", "2", "x"}},
		"deep":     {"at any depth, from every source", nf.Inputs{Parameters: object{"a": []any{object{"pin": "p"}}}, OOF: []object{{"pin": "o"}}, Network: object{"pin": "n"}}, []string{"n", "o", "p"}},
		"override": {"an override, as it is written and as it is meant", nf.Inputs{Overrides: map[string]string{"a.pin": `x\,y`}}, []string{`x,y`, `x\,y`}},
		"list":     {"a list of them", nf.Inputs{Overrides: map[string]string{"pin": `{x,y\,z}`}}, []string{"x", "y,z", "{x,y,z}", `{x,y\,z}`}},
		"assigned": {"what is assigned behind a comma", nf.Inputs{Overrides: map[string]string{"pin": "x,b=y=z"}}, []string{"x", "x,b=y=z", "y=z"}},
		"equals":   {"which is no part of a value without one", nf.Inputs{Overrides: map[string]string{"pin": "x=1"}}, []string{"x=1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, slices.Compact(slices.Sorted(slices.Values(tc.in.Secrets([]string{"pin"}))))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRedactor(t *testing.T) {
	r := nf.NewRedactor([]string{"pass", "passphrase", "12", "", `say "hi"`, "pass"})
	cases := map[string]struct {
		reason     string
		from, want any
	}{
		"text":    {"a value in a text", "a pass b", nf.Masked},
		"whole":   {"a short one where it stands alone", "12", nf.Masked},
		"short":   {"and only there", "a 12 b", "a 12 b"},
		"number":  {"a number is printed", 12.0, nf.Masked},
		"integer": {"whatever its type", int64(12), nf.Masked},
		"others":  {"what is no secret stays", 13.5, 13.5},
		"truth":   {"a truth is none", true, true},
		"null":    {"nothing is none", nil, nil},
		"tree":    {"in values and in keys", map[string]any{"a pass": []any{"x", "pass"}}, map[string]any{"a " + nf.Masked: []any{"x", nf.Masked}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, r.Value(tc.from)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	texts := map[string]string{
		"a passphrase": "a " + nf.Masked, "pass, pass": nf.Masked + ", " + nf.Masked, `{"a": "say \"hi\""}`: `{"a": "` + nf.Masked + `"}`, "12": "12",
	}
	for from, want := range texts {
		if got := r.Text(from); got != want {
			t.Errorf("%q becomes %q, want %q", from, got, want)
		}
	}
	within := nf.NewRedactor([]string{`a\"b\"c\"`, `a"b"c"d`})
	if got := within.Text(`a\"b\"c\"d`); got != nf.Masked {
		t.Errorf("a quoted value that begins with another value becomes %q, want it masked whole", got)
	}
	if got := (nf.Redactor{}).Text("a"); got != "a" {
		t.Errorf("the zero value makes %q of a text", got)
	}
}
