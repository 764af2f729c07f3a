package main

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestLightServer creates an object in a region, and looks for it.
func TestLightServer(t *testing.T) {
	t.Parallel()
	l := newLightServer()
	t.Cleanup(l.close)
	send := func(method, path, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, l.server.URL+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		return l.server.Client().Do(req)
	}
	request := func(method, path, body string) (int, string) {
		t.Helper()
		resp, err := send(method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	watched, err := send(http.MethodGet, "/a/api/v1/secrets?watch=true&resourceVersion=0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Body.Close()
	const object = `{"kind":"Secret","metadata":{"name":"one"}}`
	request(http.MethodPatch, "/a/api/v1/namespaces/n/secrets/one?dryRun=All", object)
	request(http.MethodPatch, "/a/api/v1/namespaces/n/secrets/one", object)
	event, err := bufio.NewReader(watched.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(event, `{"type":"ADDED","object":{`) || !strings.Contains(event, `"name":"one"`) {
		t.Errorf("the event is %q, %v; want the object", event, err)
	}
	l.fault("faulty", http.NotFoundHandler())
	tests := map[string]struct {
		reason, path string
		want         int // number of objects in the answer; -1: 404
	}{
		"Get":       {"the object exists", "/a/api/v1/namespaces/n/secrets/one", 1},
		"List":      {"the dry run has not created one", "/a/api/v1/secrets", 1},
		"Namespace": {"another namespace is empty", "/a/api/v1/namespaces/m/secrets", 0},
		"Kind":      {"another kind is empty", "/a/apis/apps/v1/deployments", 0},
		"Region":    {"another region is empty", "/b/api/v1/secrets", 0},
		"Unserved":  {"it serves the kinds of the load", "/a/apis/batch/v1/jobs", -1},
		"Schemas":   {"it has no schemas", "/a/openapi/v3", -1},
		"Fault":     {"a fault replaces all answers", "/faulty/api/v1/secrets", -1},
		"Version":   {"the service reads the version", "/a/version", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := request(http.MethodGet, tc.path, "")
			if (status == http.StatusNotFound) != (tc.want < 0) || strings.Count(body, `"name":"one"`) != max(tc.want, 0) {
				t.Errorf("%s: status %d: %s; want %d objects", tc.reason, status, body, tc.want)
			}
		})
	}
}
