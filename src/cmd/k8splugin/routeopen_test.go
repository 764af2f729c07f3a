package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestServiceRoutesAreOpen checks that the routes which need no credentials are
// those of probes and the description of the API, and no others, and that
// metrics, which name all regions, require that one may read them. Every other route of the description is in routeAccess.
func TestServiceRoutesAreOpen(t *testing.T) {
	t.Parallel()
	w := &roleWorld{testService: startBareService(t, func(c *Config) { c.AccessFile = accesstest.File(t) }, startAAI(t).settings("k8s-resource"))}
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
	want := []string{"GET /", "GET /docs", "GET /healthz", "GET /metrics", "GET /openapi.json", "GET /openapi.yaml", "GET /readyz", "GET /swagger.json", "GET /swagger.yaml"}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("routes without a rule (-want +got):\n%s", diff)
	}
	w.want(http.StatusCreated, w.as("admin-all", "POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": accesstest.East, "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	for who, status := range map[string]int{
		accesstest.Anonymous: http.StatusUnauthorized, "stranger": http.StatusForbidden, "operator-west": http.StatusForbidden,
		"viewer-a-east": http.StatusOK, "viewer-all": http.StatusOK,
	} {
		if got := w.as(who, "GET", "/metrics", nil); got.status != status || strings.Contains(string(got.body), accesstest.East) && status != http.StatusOK {
			t.Errorf("GET /metrics by %q: status %d, want %d: %s", who, got.status, status, got.body)
		}
	}
	for _, route := range slices.DeleteFunc(own, func(route string) bool { return route == "GET /metrics" }) {
		method, path, _ := strings.Cut(route, " ")
		status := http.StatusOK
		if path == "/" {
			status = http.StatusSeeOther // to /docs
		}
		for _, who := range []string{accesstest.Anonymous, "stranger"} {
			if got := w.as(who, method, path, nil); got.status != status {
				t.Errorf("%s by %q: status %d, want %d: %s", route, who, got.status, status, got.body)
			}
		}
	}
}
