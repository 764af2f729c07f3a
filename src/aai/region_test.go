package aai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// put creates an object in the simulator.
func put(t *testing.T, s *simulator.Simulator, path, body string) {
	t.Helper()
	if w := s.Do(t.Context(), "test", http.MethodPut, path, body); w.Code != http.StatusCreated {
		t.Fatalf("PUT %s: %d: %s", path, w.Code, w.Body)
	}
}

func clientOf(t *testing.T, h http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := complete()
	cfg.URL = server.URL
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCloudRegion(t *testing.T) {
	t.Parallel()
	s, err := simulator.New(simulator.Config{Users: map[string]string{"u": "p"}})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r%201"
	put(t, s, path, `{"cloud-type":"k8s","cloud-extra-info":"{}"}`)
	put(t, s, "/cloud-infrastructure/cloud-regions/cloud-region/other/r2", `{}`)
	put(t, s, path+"/esr-system-info-list/esr-system-info/b", `{"user-name":"","password":"","system-type":"","service-url":"https://b"}`)
	put(t, s, path+"/esr-system-info-list/esr-system-info/a",
		`{"user-name":"u","password":"p","system-type":"VIM","type":"t","system-status":"normal","ssl-cacert":"c","ssl-insecure":true,"default-tenant":"n","remote-path":"r"}`)
	c := clientOf(t, s)
	got, err := c.CloudRegion(t.Context(), "k8s", "r 1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Systems {
		if got.Systems[i].Version == "" {
			t.Error("a system has no resource-version")
		}
		got.Systems[i].Version = ""
	}
	if got.Version == "" {
		t.Error("the cloud region has no resource-version")
	}
	got.Version = ""
	want := CloudRegion{Owner: "k8s", ID: "r 1", Type: "k8s", Extra: nf.Secret("{}"), Systems: []System{
		{ID: "a", Type: "t", SystemType: "VIM", Status: "normal", User: "u", Password: nf.Secret("p"), CA: "c", Insecure: true, Namespace: "n", RemotePath: "r"},
		{ID: "b", URL: "https://b", Password: nf.Secret("")},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := c.CloudRegion(t.Context(), "k8s", "none"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("a cloud region that A&AI does not have: %v", err)
	}
	if got, err := c.CloudRegion(t.Context(), "other", "r2"); err != nil || len(got.Systems) != 0 {
		t.Errorf("a cloud region without systems: %v, %v", got.Systems, err)
	}
	for id, n := range map[string]int{"": 2, "r2": 1, "none": 0} {
		if got, err := c.CloudRegions(t.Context(), id); err != nil || len(got) != n {
			t.Errorf("cloud regions with id %q: %d, %v, want %d", id, len(got), err, n)
		}
	}
	if v := s.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestHostileRegion has A&AI, or a server in its place, respond with more or with
// something else than was asked for.
func TestHostileRegion(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	large := strings.Repeat("x", maxResponse)
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
	}{
		"redirect": {"a redirect to a metadata address is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}},
		"oversized": {"the response has more bytes than the limit", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"cloud-extra-info":"` + secret + large + `"}`))
		}},
		"another": {"the response is another cloud region", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"cloud-owner": "k8s", "cloud-region-id": "r2", "cloud-extra-info": secret})
		}},
		"a list":  {"the response is not an object", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`["` + secret + `"]`)) }},
		"no JSON": {"the response is not JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(secret)) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clientOf(t, tc.answer).CloudRegion(t.Context(), "k8s", "r1")
			if nf.KindOf(err) != nf.Unreachable {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error contains a secret", tc.reason)
			}
		})
	}
}
