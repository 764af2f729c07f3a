package onap_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

func TestPrefixes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, method, path, want string }{
		"v1":            {"the broker's path", "POST", "/api/multicloud/v1/k8s/r1/infra_workload", "/k8s/r1/infra_workload"},
		"MSB":           {"the path that the broker forwards", "POST", "/api/multicloud-k8s/v1/k8s/r1/infra_workload", "/k8s/r1/infra_workload"},
		"v0":            {"the region is after the first _", "GET", "/api/multicloud/v0/k8s_r_1/infra_workload/x", "/k8s/r_1/infra_workload/x"},
		"v0 MSB":        {"likewise", "POST", "/api/multicloud-k8s/v0/k8s_r1/registry", "/k8s/r1/registry"},
		"v0 no owner":   {"without _ there is no owner", "GET", "/api/multicloud/v0/r1/registry", "/api/multicloud/v0/r1/registry"},
		"doubled":       {"the prefix is removed once", "GET", "/api/multicloud-k8s/v1/v1/rb/definition", "/v1/rb/definition"},
		"delete":        {"a region is deleted", "DELETE", "/api/multicloud/v1/k8s/r1", "/k8s/r1/registry"},
		"delete v0":     {"also in v0", "DELETE", "/api/multicloud/v0/k8s_r1", "/k8s/r1/registry"},
		"delete native": {"but not a path of the native API", "DELETE", "/api/multicloud/v1/v1/cloud_regions", "/v1/cloud_regions"},
		"get":           {"other methods stay", "GET", "/api/multicloud/v1/k8s/r1", "/k8s/r1"},
		"escaped":       {"escaping stays", "GET", "/api/multicloud/v1/k8s/r%2F1/registry", "/k8s/r%2F1/registry"},
		"no version":    {"there is no v2", "GET", "/api/multicloud/v2/k8s/r1/registry", "/api/multicloud/v2/k8s/r1/registry"},
		"other":         {"other paths stay", "GET", "/v1/vnf_instances", "/v1/vnf_instances"},
		"other prefix":  {"also similar ones", "GET", "/api/multicloudx/v1/a", "/api/multicloudx/v1/a"},
		"nothing":       {"nothing follows", "GET", "/api/multicloud/v1/", "/api/multicloud/v1/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			h := onap.Prefixes(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.EscapedPath() }))
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path+"?name=x", http.NoBody)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if got != tc.want || r.URL.EscapedPath() != tc.path {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
