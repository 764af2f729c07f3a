package native

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswerPage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		path   string
		want   string
		link   string
	}{
		"Last":  {"a page without a next one has no marker", "/v1/things", `{"things":["<a>","b&b","c"]}` + "\n", ""},
		"First": {"the items come before the marker, and neither is escaped for HTML", "/v1/things?limit=2&label=x", `{"things":["<a>","b&b"],"next":"b&b"}` + "\n", `</v1/things?label=x&limit=2&marker=b%26b>; rel="next"`},
		"Next":  {"a marker continues after its item", "/v1/things?limit=2&marker=b%26b", `{"things":["c"]}` + "\n", ""},
		"Empty": {"no items are an empty list", "/v1/things?marker=x", `{"things":[]}` + "\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := func(s string) string { return s }
			r, w := httptest.NewRequestWithContext(t.Context(), "GET", tc.path, nil), httptest.NewRecorder()
			page := paginate(r, []string{"<a>", "b&b", "c"}, text, func(string) bool { return true })
			if err := answerPage(w, "things", page, text); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff([]string{tc.want, tc.link}, []string{w.Body.String(), w.Header().Get("Link")}); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
