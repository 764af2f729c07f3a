package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
)

func TestCSARAuthorities(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason, file string
		wrong        bool
	}{
		"None":    {"signatures are optional", "", false},
		"Absent":  {"a file that does not exist must not make them optional", garbage + ".absent", true},
		"Garbage": {"nor a file without a certificate", garbage, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if roots, err := (Config{CSARAuthorities: tc.file}).csarAuthorities(); roots != nil || (err != nil) != tc.wrong {
				t.Errorf("%s: %v, %v", tc.reason, roots, err)
			}
		})
	}
}

// TestUploadFromURI fetches CSARs from a server.
func TestUploadFromURI(t *testing.T) {
	t.Parallel()
	from := sourceOf(t, archive(csartest.Files(map[string]string{"Files/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})))
	s := startBareService(t, func(c *Config) { c.ChartSources, c.ChartSourcesPlain = from.host, from.host })
	one := "/vnfpkgm/v1/vnf_packages/" + s.want(http.StatusCreated, s.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{})).text(t, "id")
	if !regexp.MustCompile(`/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(one) {
		t.Errorf("the id in %s is no UUID of version 4", one)
	}
	cases := []struct {
		reason, address, user, password string
		status                          int
	}{
		{"a host that is not allowed", "http://203.0.113.1/a.zip", "", "", http.StatusForbidden},
		{"a redirect to one", "http://" + from.host + "/elsewhere.zip", "", "", http.StatusForbidden},
		{"a file of this machine", "file:///etc/passwd", "", "", http.StatusBadRequest},
		{"without credentials", from.url, "", "", http.StatusBadGateway},
		{"with wrong ones", from.url, "ann", "wr0ng", http.StatusBadGateway},
		{"with the right ones", from.url, "ann", "s3cret", http.StatusAccepted},
	}
	for _, tc := range cases {
		request := map[string]string{"addressInformation": tc.address}
		if tc.user != "" {
			request["userName"], request["password"] = tc.user, tc.password
		}
		got := s.do("POST", one+"/package_content/upload_from_uri", request)
		if got.status != tc.status {
			t.Fatalf("%s: status %d, want %d: %s", tc.reason, got.status, tc.status, got.body)
		}
		shown := s.want(http.StatusOK, s.do("GET", one, nil))
		if tc.status == http.StatusAccepted {
			continue
		}
		failed := fmt.Sprint(shown.field(t, "onboardingFailureDetails.status"))
		if failed != fmt.Sprint(tc.status) || shown.text(t, "onboardingState") != "CREATED" || strings.Contains(string(shown.body), "wr0ng") {
			t.Errorf("%s: the package is %s", tc.reason, shown.body)
		}
	}
	if got := s.do("GET", one, nil); got.text(t, "onboardingState") != "ONBOARDED" {
		t.Errorf("the package is %s", got.body)
	}
	for key, value := range s.records() {
		if strings.Contains(value, "s3cret") || strings.Contains(value, "wr0ng") {
			t.Errorf("the record %s has a password", key)
		}
	}
}

// source is a server that offers a CSAR to the user ann, and redirects to another host.
type source struct{ url, host string }

func sourceOf(t *testing.T, content []byte) source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere.zip" {
			http.Redirect(w, r, "http://203.0.113.1/a.zip", http.StatusFound)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			http.Error(w, "credentials are required", http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return source{server.URL + "/sample.zip", at.Host}
}
