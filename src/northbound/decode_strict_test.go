package northbound_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// decoder answers what decoding says of a document.
func decoder(t *testing.T) http.Handler {
	t.Helper()
	decode := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := northbound.Decode[map[string]any](r)
		return err
	}
	return handler(t, northbound.Config{APIs: []northbound.API{routes{
		"POST /v1/vnf_instances": decode, "PATCH /v1/vnf_instances/{vnf_id}": decode,
		"GET /v1/vnf_instances": func(http.ResponseWriter, *http.Request) error { return nil },
	}}})
}

func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	h := decoder(t)
	in := func(parameters string) string {
		return `{"cloud_region_id": "e", "csar_id": "f", "parameters": ` + parameters + `}`
	}
	deep := strings.Repeat(`{"a":`, 50_000)
	cases := map[string]struct {
		reason string
		method string
		body   string
		want   []wire.Violation // nil: the document is accepted
	}{
		"Twice":        {"which of the two is meant?", "POST", `{"csar_id": "a", "cloud_region_id": "e", "csar_id": "b"}`, []wire.Violation{{Field: "csar_id", Message: "is given twice"}}},
		"TwicePatch":   {"in a patch one may be there to hide the other", "PATCH", `{"labels": null, "labels": {"a": "b"}}`, []wire.Violation{{Field: "labels", Message: "is given twice"}}},
		"TwiceDeep":    {"in lists and objects, too", "POST", in(`{"a": [{}, {"b": {"c": 1, "c": 1}}]}`), []wire.Violation{{Field: "parameters.a[1].b.c", Message: "is given twice"}}},
		"TwiceEscaped": {"a key is its text, however it is written", "POST", in(`{"a": 1, "\u0061": 2}`), []wire.Violation{{Field: "parameters.a", Message: "is given twice"}}},
		"Thrice":       {"more than twice is said once", "POST", in(`{"a": 1, "a": 2, "a": 3, "b": 1, "b": 2}`), []wire.Violation{{Field: "parameters.a", Message: "is given twice"}, {Field: "parameters.b", Message: "is given twice"}}},
		"OtherObjects": {"the same key of another object is another key", "POST", in(`{"a": {"a": [{"a": 1}, {"a": 2}]}}`), nil},
		"Case":         {"so is one in other letters, where keys are free", "POST", in(`{"a": 1, "A": 2}`), nil},
		"CaseKnown":    {"where they are not free it is unknown", "PATCH", `{"labels": {}, "Labels": {}}`, []wire.Violation{{Field: "Labels", Message: "is not a known field"}}},
		"LongKey":      {"a long key is not repeated whole", "POST", in(`{"` + strings.Repeat("k", 1000) + `": {"a": 1, "a": 2}}`), []wire.Violation{{Field: "parameters." + strings.Repeat("k", 128) + "….a", Message: "is given twice"}}},
		"Number":       {"a number must be one that we can hold", "POST", in(`{"a": [1, -1e400]}`), []wire.Violation{{Field: "parameters.a[1]", Message: "is a number out of range"}}},
		"Digits":       {"and is not repeated, however long", "POST", in(`{"a": ` + strings.Repeat("9", 100_000) + `}`), []wire.Violation{{Field: "parameters.a", Message: "is a number out of range"}}},
		"Fraction":     {"many digits behind the point are only exact", "POST", in(`{"a": 0.` + strings.Repeat("9", 1000) + `}`), nil},
		"HalfHigh":     {"half a character would become another one", "POST", in(`{"a": "x\ud83d"}`), []wire.Violation{{Field: "parameters.a", Message: "contains half of a surrogate pair, which is not a character"}}},
		"HalfLow":      {"be it the other half", "POST", in(`{"a": "\ude00x"}`), []wire.Violation{{Field: "parameters.a", Message: "contains half of a surrogate pair, which is not a character"}}},
		"HalfTwice":    {"two first halves are no whole", "POST", in(`{"a": "\ud83d\ud83d\ude00"}`), []wire.Violation{{Field: "parameters.a", Message: "contains half of a surrogate pair, which is not a character"}}},
		"HalfKey":      {"in keys, too", "POST", in(`{"\uD800": 1}`), []wire.Violation{{Field: "parameters", Message: "contains half of a surrogate pair, which is not a character"}}},
		"Whole":        {"two halves are a character", "POST", in(`{"a": "\ud83d\ude00 \\ud83d"}`), nil},
		"Encoding":     {"what is not UTF-8 would be replaced", "POST", in(`{"a": "` + "\xff" + `"}`), []wire.Violation{{Message: "the body is not UTF-8"}}},
		"Mark":         {"a byte order mark is not JSON", "POST", "\ufeff" + in(`{}`), []wire.Violation{{Message: "the body is not JSON: line 1, column 1: '\\ufeff' cannot be here"}}},
		"Deep":         {"a deep document is not even read", "POST", deep, []wire.Violation{{Message: "the document nests deeper than 100 levels"}}},
		"Second":       {"one request has one document", "POST", in(`{}`) + in(`{}`), []wire.Violation{{Message: "the body is not JSON: line 1, column 59: the document has ended before"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target := map[string]string{"POST": "/v1/vnf_instances", "PATCH": "/v1/vnf_instances/x"}[c.method]
			w := serve(h, httptest.NewRequest(c.method, target, strings.NewReader(c.body)))
			if c.want == nil {
				if w.Code != http.StatusOK {
					t.Errorf("%s: it is refused: %s", c.reason, w.Body)
				}
				return
			}
			p := problemOf(t, w)
			if diff := cmp.Diff(c.want, p.Errors); diff != "" || p.Status != http.StatusBadRequest {
				t.Errorf("%s: %d (-want +got):\n%s", c.reason, p.Status, diff)
			}
		})
	}
}

func TestCheckDocument(t *testing.T) {
	t.Parallel()
	if err := northbound.CheckDocument([]byte(`{"a": [1, {"b": null}]}`)); err != nil {
		t.Errorf("a document like others is refused: %v", err)
	}
	for document, want := range map[string]nf.Violation{
		`{"a": {"b": 1, "b": 2}}`: {Field: "a.b", Message: "is given twice"},
		`{"a": `:                  {Message: "the body is not JSON: line 1, column 6: it ends too early"},
	} {
		err := northbound.CheckDocument([]byte(document))
		if diff := cmp.Diff(nf.Violations{want}, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid {
			t.Errorf("%s: %v (-want +got):\n%s", document, nf.KindOf(err), diff)
		}
	}
}

// TestDocumentMemory fills the largest document that is read with what takes
// the most memory.
func TestDocumentMemory(t *testing.T) {
	const most = 256 * northbound.MaxDocument
	h := decoder(t)
	var keys strings.Builder
	for i := 0; keys.Len() < northbound.MaxDocument-100; i++ {
		fmt.Fprintf(&keys, `"%x":{},`, i)
	}
	fill := func(unit string) string {
		return strings.TrimSuffix(strings.Repeat(unit, (northbound.MaxDocument-100)/len(unit)), ",")
	}
	cases := map[string]struct{ reason, value string }{
		"Lists":   {"empty lists", "[" + fill("[],") + "]"},
		"Objects": {"small objects", "[" + fill(`{"":0},`) + "]"},
		"Numbers": {"numbers", "[" + fill("0,") + "]"},
		"Keys":    {"different keys", "{" + strings.TrimSuffix(keys.String(), ",") + "}"},
		"Twice":   {"the same key", "{" + fill(`"":0,`) + "}"},
		"Long":    {"violations below a long key", `{"` + strings.Repeat("k", northbound.MaxDocument/2) + `":{` + strings.TrimSuffix(keys.String()[:1<<16], ",") + "}}"},
		"Halves":  {"halves of characters", "[" + fill(`"\ud800",`) + "]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := `{"cloud_region_id":"e","csar_id":"f","parameters":{"a":` + c.value + "}}"
			if len(body) > northbound.MaxDocument {
				t.Fatalf("the document of %d bytes would not be read", len(body))
			}
			var w *httptest.ResponseRecorder
			used := rendertest.Allocated(func() {
				w = serve(h, httptest.NewRequest(http.MethodPost, "/v1/vnf_instances", strings.NewReader(body)))
			})
			if used > most || w.Body.Len() > 32<<10 {
				t.Errorf("%s take %d KiB and are answered with %d bytes", c.reason, used>>10, w.Body.Len())
			}
		})
	}
}

func TestQueryIsGivenOnce(t *testing.T) {
	t.Parallel()
	h := decoder(t)
	cases := map[string]struct {
		reason string
		query  string
		want   []wire.Violation // nil: the query is accepted
	}{
		"Once":   {"a filter may be given", "csar_id=a&state=ready", nil},
		"Twice":  {"the second one would have no effect", "csar_id=a&csar_id=b", []wire.Violation{{Field: "csar_id", Message: "is given twice"}}},
		"Same":   {"even if it is the same", "limit=5&state=ready&limit=5", []wire.Violation{{Field: "limit", Message: "is given twice"}}},
		"Array":  {"unless the contract says that it is a list", "label=a%3Db&label=c%3Dd", nil},
		"Escape": {"however it is written", "limit=5&%6cimit=6", []wire.Violation{{Field: "limit", Message: "is given twice"}}},
		"Both":   {"all that is wrong is said", "nosuch=1&limit=1&limit=2", []wire.Violation{{Field: "limit", Message: "is given twice"}, {Field: "nosuch", Message: "is not a known query parameter"}}},
		"Long":   {"a long name is not repeated whole", strings.Repeat("k", 1000) + "=1", []wire.Violation{{Field: strings.Repeat("k", 128) + "…", Message: "is not a known query parameter"}}},
		"Broken": {"half an escape is no query", "limit=%zz", []wire.Violation{{Field: "query", Message: "is not a query string"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := get("/v1/vnf_instances")
			r.URL = &url.URL{Path: r.URL.Path, RawQuery: c.query}
			w := serve(h, r)
			if c.want == nil {
				if w.Code != http.StatusOK {
					t.Errorf("%s: it is refused: %s", c.reason, w.Body)
				}
				return
			}
			if diff := cmp.Diff(c.want, problemOf(t, w).Errors); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
