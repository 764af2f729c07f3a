package nf_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMergePatch is the table of RFC 7396, appendix A, and what the RFC leaves to
// the reader.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
	} {
		var target, before, change, want any
		for i, v := range []*any{&target, &change, &want} {
			if err := json.Unmarshal([]byte(c[i]), v); err != nil {
				t.Fatal(err)
			}
		}
		if err := json.Unmarshal([]byte(c[0]), &before); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, nf.MergePatch(target, change)); diff != "" {
			t.Errorf("%s patched with %s (-want +got):\n%s", c[0], c[1], diff)
		}
		if diff := cmp.Diff(before, target); diff != "" {
			t.Errorf("%s patched with %s changed in place:\n%s", c[0], c[1], diff)
		}
	}
}
