package native

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

func TestApply(t *testing.T) {
	t.Parallel()
	type document struct {
		Name   string            `json:"name,omitempty"`
		Number int               `json:"number,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		Free   map[string]any    `json:"free,omitempty"`
	}
	present := document{Name: "a", Number: 1, Labels: map[string]string{"x": "1", "y": "2"}, Free: map[string]any{"deep": map[string]any{"kept": true, "gone": 1.0}}}
	cases := map[string]struct {
		reason string
		patch  string
		want   document
		field  string // of the violation
	}{
		"Nothing": {"an empty patch changes nothing", `{}`, present, ""},
		"Null":    {"null takes away, at any depth", `{"number": null, "labels": {"x": null, "z": null}, "free": {"deep": {"gone": null}}}`, document{Name: "a", Labels: map[string]string{"y": "2"}, Free: map[string]any{"deep": map[string]any{"kept": true}}}, ""},
		"Replace": {"what is no object replaces all", `{"free": {"deep": [null]}}`, document{Name: "a", Number: 1, Labels: present.Labels, Free: map[string]any{"deep": []any{nil}}}, ""},
		"Type":    {"a wrong type is refused with its field", `{"labels": {"x": {"a": "b"}}}`, document{}, "labels"},
		"Object":  {"an object where there was none", `{"name": {"a": "b"}}`, document{}, "name"},
		"Range":   {"a number out of range is refused", `{"number": 1e300}`, document{}, "number"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p patch
			if err := json.Unmarshal([]byte(c.patch), &p); err != nil {
				t.Fatal(err)
			}
			got, err := apply(p, present)
			if c.field != "" {
				if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || !strings.HasPrefix(v[0].Field, c.field) {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", c.reason, err, diff)
			}
		})
	}
}

// TestApplyMemory patches a large document by a large patch.
func TestApplyMemory(t *testing.T) {
	values := func(prefix string) map[string]any {
		out := map[string]any{}
		for i := range 10_000 {
			out[prefix+strconv.Itoa(i)] = map[string]any{"a": 1.0}
		}
		return out
	}
	present, p := map[string]any{"a": values("x")}, patch{"a": values("y")}
	text, err := json.Marshal([]any{present, p})
	if err != nil {
		t.Fatal(err)
	}
	if used := rendertest.Allocated(func() { _, err = apply(p, present) }); err != nil || used > 128*uint64(len(text)) {
		t.Errorf("%d KiB take %d KiB: %v", len(text)>>10, used>>10, err)
	}
}

// FuzzMerge holds RFC 7396 in the words of a reader: what is named is so
// afterwards, what is null is gone, and what is not named is as it was.
func FuzzMerge(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":"b","c":{"d":"e","f":"g"}}`, `{"a":"z","c":{"f":null}}`}, {`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`}, {`["a","b"]`, `["c","d"]`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1,null]}`}, {`{"e":null}`, `{"a":1}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`}, {`{"a":"foo"}`, `null`}, {`1`, `{"":{"":null}}`},
		{`{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}`,
			`{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, present, change string) {
		var target, before, p, again any
		for i, v := range []*any{&target, &before, &p, &again} {
			if json.Unmarshal([]byte([]string{present, change}[i/2]), v) != nil {
				return
			}
		}
		got := nf.MergePatch(target, p)
		if diff := cmp.Diff(before, target) + cmp.Diff(again, p); diff != "" {
			t.Errorf("%s patched with %s changed what it was given:\n%s", present, change, diff)
		}
		checkMerged(t, before, p, got)
		if diff := cmp.Diff(got, nf.MergePatch(got, p)); diff != "" {
			t.Errorf("%s patched with %s twice is something else (-once +twice):\n%s", present, change, diff)
		}
		fields, isObject := before.(map[string]any)
		named, isPatch := p.(map[string]any)
		if !isObject || !isPatch {
			return
		}
		applied, err := apply(patch(named), fields)
		if diff := cmp.Diff(got, any(applied)); diff != "" || err != nil {
			t.Errorf("%s patched with %s: %v (-merged +applied):\n%s", present, change, err, diff)
		}
	})
}

func checkMerged(t *testing.T, before, change, after any) {
	t.Helper()
	named, isObject := change.(map[string]any)
	if !isObject {
		if diff := cmp.Diff(change, after); diff != "" {
			t.Errorf("what is no object replaces all (-want +got):\n%s", diff)
		}
		return
	}
	old, _ := before.(map[string]any)
	fields, isObject := after.(map[string]any)
	if !isObject {
		t.Fatalf("an object was patched into %v", after)
	}
	for name, value := range named {
		now, there := fields[name]
		if there == (value == nil) {
			t.Errorf("%q is %v in the patch, and there afterwards is %v", name, value, there)
		}
		if value != nil {
			checkMerged(t, old[name], value, now)
		}
	}
	for name, value := range old {
		if _, is := named[name]; is {
			continue
		}
		if diff := cmp.Diff(value, fields[name]); diff != "" {
			t.Errorf("%q is not named and has changed:\n%s", name, diff)
		}
	}
	for name := range fields {
		_, was := old[name]
		if _, is := named[name]; !is && !was {
			t.Errorf("%q came from nowhere", name)
		}
	}
}
