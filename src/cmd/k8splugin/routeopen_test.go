package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
)

// TestServiceRoutesAreOpen checks that the routes which need no credentials are
// those of probes, metrics and the description of the API, and no others. Every
// other route of the description is in routeAccess.
func TestServiceRoutesAreOpen(t *testing.T) {
	t.Parallel()
	w := &roleWorld{testService: startBareService(t, func(c *Config) { c.AccessFile = accesstest.File(t) })}
	described := w.want(http.StatusOK, w.as(accesstest.Anonymous, "GET", "/swagger.json", nil))
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(described.body, &document); err != nil {
		t.Fatal(err)
	}
	table, own := routeAccess(), []string{}
	for path, item := range document.Paths {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			route := strings.ToUpper(method) + " " + path
			if _, guarded := table[route]; item[method] != nil && !guarded {
				own = append(own, route)
			}
		}
	}
	slices.Sort(own)
	want := []string{"GET /docs", "GET /healthz", "GET /metrics", "GET /readyz", "GET /swagger.json", "GET /swagger.yaml"}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("routes without a rule (-want +got):\n%s", diff)
	}
	for _, route := range own {
		method, path, _ := strings.Cut(route, " ")
		for _, who := range []string{accesstest.Anonymous, "stranger"} {
			if got := w.as(who, method, path, nil); got.status != http.StatusOK {
				t.Errorf("%s by %q: status %d, want 200: %s", route, who, got.status, got.body)
			}
		}
	}
}
