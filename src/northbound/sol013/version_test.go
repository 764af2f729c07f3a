package sol013_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

func TestNegotiation(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, r *http.Request) error {
		return northbound.Answer(w, http.StatusOK, r.URL.Query().Get("exclude_fields"))
	}
	strict, free := sol013.Formats(sol013.Versioned(ok)), sol013.Formats(sol013.Unversioned(ok))
	const v2, v1 = "/vnflcm/v2/vnf_instances", "/vnflcm/v1/vnf_instances"
	cases := map[string]struct {
		reason  string
		handler http.Handler
		path    string
		header  http.Header
		status  int
	}{
		"V2":            {"the version of the path", strict, v2, http.Header{"Version": {"2.0.0"}}, 200},
		"V1":            {"that of the other path", strict, v1, http.Header{"Version": {"1.3.0"}}, 200},
		"Fault":         {"each API has its own", strict, "/vnffm/v1/alarms", http.Header{"Version": {"1.3.0"}}, 200},
		"Performance":   {"each API has its own", strict, "/vnfpm/v2/pm_jobs", http.Header{"Version": {"2.1.0"}}, 200},
		"Swapped":       {"the version of the other path", strict, v1, http.Header{"Version": {"2.0.0"}}, 406},
		"Newer":         {"a version that the service lacks", strict, v2, http.Header{"Version": {"2.1.0"}}, 406},
		"Vendor":        {"an implementation is ignored", strict, v2, http.Header{"Version": {"2.0.0-impl:vendor:prod:1"}}, 200},
		"Missing":       {"the header is required", strict, v2, nil, 400},
		"Empty":         {"an empty one is missing", strict, v2, http.Header{"Version": {""}}, 400},
		"Twice":         {"one version", strict, v2, http.Header{"Version": {"2.0.0", "1.3.0"}}, 400},
		"Words":         {"a malformed one", strict, v2, http.Header{"Version": {"two"}}, 400},
		"Short":         {"three numbers", strict, v2, http.Header{"Version": {"2.0"}}, 400},
		"Prefix":        {"no other prefix", strict, v2, http.Header{"Version": {"v2.0.0"}}, 400},
		"EmptyVendor":   {"an implementation has a name", strict, v2, http.Header{"Version": {"2.0.0-impl:"}}, 400},
		"NotAccepted":   {"the response is JSON", strict, v2, http.Header{"Version": {"2.0.0"}, "Accept": {"text/html"}}, 406},
		"AcceptAll":     {"which this allows", strict, v2, http.Header{"Version": {"2.0.0"}, "Accept": {"text/html, */*;q=0.1"}}, 200},
		"AcceptNone":    {"and this does not", strict, v2, http.Header{"Version": {"2.0.0"}, "Accept": {"application/json;q=0"}}, 406},
		"Free":          {"a path that needs no version", free, v1, nil, 200},
		"FreeWrong":     {"but it is checked", free, v1, http.Header{"Version": {"9.0.0"}}, 406},
		"FreeMalformed": {"likewise", free, v1, http.Header{"Version": {"x"}}, 400},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil)
			r.Header = tc.header
			if r.Header == nil {
				r.Header = http.Header{}
			}
			w := httptest.NewRecorder()
			tc.handler.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("%s: status %d, want %d: %s", tc.reason, w.Code, tc.status, w.Body)
			}
			if got := w.Header(); got.Get("Version") != sol013.VersionOf(tc.path) || got.Get("Accept-Ranges") != "none" {
				t.Errorf("%s: headers %v", tc.reason, got)
			}
			for _, attribute := range []string{`"status":`, `"title":`, `"detail":`} {
				if tc.status != http.StatusOK && !strings.Contains(w.Body.String(), attribute) {
					t.Errorf("%s: %s has no %s", tc.reason, w.Body, attribute)
				}
			}
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	echo := sol013.Formats(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.RawQuery)) }))
	cases := map[string]struct{ reason, target, want, version string }{
		"Dashed":  {"the spelling of a client", "/vnflcm/v2/x?filter=a&exclude-fields=b%2Cc", "filter=a&exclude_fields=b%2Cc", "2.0.0"},
		"Value":   {"a value is not a name", "/vnflcm/v2/x?filter=exclude-fields", "filter=exclude-fields", "2.0.0"},
		"Package": {"packages have it, too", "/vnfpkgm/v1/x?exclude-fields=b", "exclude_fields=b", ""},
		"Filter":  {"RFC 3986 allows a semicolon", "/vnffm/v1/x?filter=(eq,a,b);(eq,c,d)&fields=e", "filter=(eq,a,b)%3B(eq,c,d)&fields=e", "1.3.0"},
		"Encoded": {"and its code", "/vnflcm/v1/x?filter=(eq,a,b)%3b(eq,c,d)", "filter=(eq,a,b)%3b(eq,c,d)", "1.3.0"},
		"Native":  {"another API refuses it", "/v1/x?filter=a;b", "filter=a;b", ""},
		"Other":   {"another API has not", "/v1/x?exclude-fields=b", "exclude-fields=b", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			echo.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.target, nil))
			if w.Body.String() != tc.want || w.Header().Get("Version") != tc.version {
				t.Errorf("%s: %s, version %q", tc.reason, w.Body, w.Header().Get("Version"))
			}
		})
	}
}

func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"2.0.0", "1.3.0-impl:vendor:prod:1", "", "2", "2.0.0-", "2.0.0-impl:", "٢.0.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, err := sol013.ParseVersion(text)
		switch {
		case err != nil && nf.KindOf(err) != nf.Invalid:
			t.Errorf("%q: %v", text, err)
		case err == nil && (!strings.HasPrefix(text, version) || strings.Count(version, ".") != 2):
			t.Errorf("%q has the version %q", text, version)
		}
	})
}
