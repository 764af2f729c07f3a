package northbound_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestManyMistakes holds that the answer to a hostile document stays small.
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
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		value, err := northbound.Parse(document)
		if err != nil {
			return
		}
		if !json.Valid(document) {
			t.Errorf("%q is not JSON, but was read as %v", document, value)
		}
		if d := depth(value); d > 100 {
			t.Errorf("%q nests %d levels", document, d)
		}
	})
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
