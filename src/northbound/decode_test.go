package northbound_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestManyMistakes checks that the answer to a hostile document stays small.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	h := handler(t, northbound.Config{APIs: []northbound.API{routes{
		"POST /v1/vnf_instances": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := northbound.Decode[struct{}](r)
			return err
		},
	}}})
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"f%d":0,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	for name, c := range map[string]struct {
		reason string
		body   string
		most   int
	}{
		"Fields":     {"some of many unknown fields are named", fields(1000), 50},
		"ManyFields": {"a large document is not read to its end", fields(80_000), 50},
		"ManyItems":  {"nor is a large list", `{"oof_parameters":[` + strings.TrimSuffix(strings.Repeat("1,", 400_000), ",") + `]}`, 1},
		"FewItems":   {"all of a few are named", `{"cloud_region_id":"e","csar_id":"f","oof_parameters":[1,2,3]}`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(h, httptest.NewRequest(http.MethodPost, "/v1/vnf_instances", strings.NewReader(c.body)))
			p := problemOf(t, w)
			if p.Status != 400 || len(p.Errors) == 0 || len(p.Errors) > c.most || w.Body.Len() > 16<<10 {
				t.Errorf("%s: %d errors in %d bytes, want at most %d", c.reason, len(p.Errors), w.Body.Len(), c.most)
			}
		})
	}
}

// TestUndescribed has a handler that decodes what the contract does not know.
func TestUndescribed(t *testing.T) {
	t.Parallel()
	h := handler(t, northbound.Config{APIs: []northbound.API{routes{
		"POST /secret": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := northbound.Decode[struct{}](r)
			return err
		},
	}}})
	if w := serve(h, httptest.NewRequest(http.MethodPost, "/secret", strings.NewReader("{}"))); w.Code != 500 {
		t.Errorf("a document that nothing describes was decoded: %d %s", w.Code, w.Body)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, "x", null, {"b": true}]}`, ``, ` `, `{`, `"\"[[[["`, `[1e999]`, `{"a":1,"a":2}`, "\xff", `"\ud800"`,
		strings.Repeat("[", 101) + strings.Repeat("]", 101), strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99),
		`{"a": 1, "\u0061": 2}`, `["\ud83d\ude00", "\ude00\ud83d", "\\ud800"]`, `{"cloud_region_id": "e", "csar_id": "f", "parameters": {"a": ":"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		value, err := northbound.Parse(document)
		if err != nil {
			if len(err.Error()) > 16<<10 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			return
		}
		if !json.Valid(document) || !utf8.Valid(document) {
			t.Errorf("%q is not JSON, but was read as %v", document, value)
		}
		if d := depth(value); d > 100 {
			t.Errorf("%q nests %d levels", document, d)
		}
		// Outside of texts, a colon follows each key and nothing else.
		bare := regexp.MustCompile(`"([^"\\]|\\.)*"`).ReplaceAll(document, nil)
		if written, read := bytes.Count(bare, []byte(":")), keys(value); written != read {
			t.Errorf("%q has %d keys, but %d were read", document, written, read)
		}
		// What was read is what was written: a second reader sees no other texts.
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		second, err := northbound.Parse(again)
		if diff := cmp.Diff(value, second); diff != "" || err != nil {
			t.Errorf("%q comes back as something else: %v\n%s", document, err, diff)
		}
		if !bytes.Contains(document, []byte("\ufffd")) && !bytes.Contains(bytes.ToLower(document), []byte(`\ufffd`)) && bytes.Contains(again, []byte("\ufffd")) {
			t.Errorf("%q was repaired without a word", document)
		}
	})
}

// keys counts the keys of every object in a value.
func keys(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, sub := range v {
			n += keys(sub)
		}
	case []any:
		for _, sub := range v {
			n += keys(sub)
		}
	}
	return n
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, sub := range v {
			deepest = max(deepest, depth(sub))
		}
	case []any:
		for _, sub := range v {
			deepest = max(deepest, depth(sub))
		}
	default:
		return 0
	}
	return deepest + 1
}
