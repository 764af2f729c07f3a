package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/keystone"
)

// keystoneRules give roles of Keystone roles of the service, in the project of the token.
const keystoneRules = `grants:
- {subjects: ["group:keystone:admin"], role: admin, projects: ["*"], regions: ["*"]}
- {subjects: ["group:keystone:member"], role: operator, projects: ["@token"], regions: ["*"]}
- {subjects: ["group:keystone:reader"], role: viewer, projects: ["@token"], regions: ["*"]}
`

// startKeystone starts a simulated Keystone, and returns it, its URL, and a change of the
// configuration that uses it.
func startKeystone(t *testing.T, endpoint func() string) (*keystone.Simulator, string, func(*Config)) {
	t.Helper()
	s := keystone.New(keystone.Config{Users: []keystone.User{
		{Name: "k8splugin", Password: "s3cret-service", Roles: map[string][]string{"service": {"admin"}}},
		{Name: "root", Password: "s3cret-root", Roles: map[string][]string{"admin": {"admin"}}},
		{Name: "ann", Password: "s3cret-ann", Roles: map[string][]string{"blue": {"member"}, "green": {"reader"}}},
	}, Endpoint: "http://service.invalid"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rewriting := &endpointWriter{ResponseWriter: w, endpoint: endpoint}
		s.ServeHTTP(rewriting, r)
	}))
	t.Cleanup(server.Close)
	files := map[string]string{"user": configFileOf(t, "k8splugin"), "password": configFileOf(t, "s3cret-service"), "access": configFileOf(t, keystoneRules)}
	return s, server.URL + "/v3", func(c *Config) {
		c.AccessFile = files["access"]
		c.Keystone = keystoneSettings{URL: server.URL + "/v3", Project: "service", Domain: "Default", Names: "Default"}
		c.Keystone.Files.User, c.Keystone.Files.Password = files["user"], files["password"]
	}
}

// endpointWriter names the service in the catalog: its port is known only after it has
// been started with the URL of Keystone.
type endpointWriter struct {
	http.ResponseWriter

	endpoint func() string
}

// Write implements http.ResponseWriter.
func (w *endpointWriter) Write(b []byte) (int, error) {
	_, err := w.ResponseWriter.Write([]byte(strings.ReplaceAll(string(b), "http://service.invalid", w.endpoint())))
	return len(b), err
}

// TestKeystone has callers of two projects whose roles are Keystone's.
func TestKeystone(t *testing.T) {
	t.Parallel()
	sim, _, use := startKeystone(t, func() string { return "" })
	s := startBareService(t, use)
	const packages = "/vnfpkgm/v1/vnf_packages"
	as := func(token, method, path string, body any) answer {
		t.Helper()
		return s.send(t.Context(), method, path, body, "X-Auth-Token", token)
	}
	member, reader, root := sim.Issue("ann", "blue"), sim.Issue("ann", "green"), sim.Issue("root", "admin")
	made := s.want(http.StatusCreated, as(member, "POST", packages, map[string]any{})).text(t, "id")
	if got := s.want(http.StatusOK, as(root, "GET", "/v1/packages/"+made, nil)).text(t, "project"); got != "blue" {
		t.Errorf("the package is in the project %s, want that of the token", got)
	}
	for reason, tc := range map[string]struct {
		token, method, path string
		body                any
		status              int
	}{
		"its own":                {member, "GET", packages + "/" + made, nil, http.StatusOK},
		"of another project":     {reader, "GET", packages + "/" + made, nil, http.StatusNotFound},
		"created without a role": {reader, "POST", packages, map[string]any{}, http.StatusForbidden},
		"created elsewhere":      {member, "POST", packages + "?project=green", map[string]any{}, http.StatusForbidden},
		"without a project":      {sim.Issue("ann", ""), "GET", packages + "/" + made, nil, http.StatusNotFound},
		"with a wrong token":     {"wrong", "GET", packages, nil, http.StatusUnauthorized},
	} {
		if got := as(tc.token, tc.method, tc.path, tc.body); got.status != tc.status {
			t.Errorf("a package %s: status %d, want %d: %s", reason, got.status, tc.status, got.body)
		}
	}
	late := sim.Issue("ann", "blue")
	sim.Fail(keystone.Fault{Status: http.StatusServiceUnavailable, Body: "s3cret internals"}, -1)
	got := s.want(http.StatusServiceUnavailable, as(late, "GET", packages, nil))
	if got.header.Get("Retry-After") == "" || !strings.Contains(string(got.body), "its token cannot be validated with Keystone") || strings.Contains(string(got.body), "internals") {
		t.Errorf("Keystone does not answer: %v %s", got.header, got.body)
	}
	s.want(http.StatusOK, as(member, "GET", packages, nil)) // it is remembered
}

// configFileOf writes a file, and returns its name.
func configFileOf(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
