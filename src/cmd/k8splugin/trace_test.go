package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
	"github.com/multicloud-k8s/k8splugin/src/telemetry/telemetrytest"
)

// TestTraces follows the requests of a site's life into all that they begin: the
// removal of a site terminates the instance on it, in the same trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	s := serveProgram(t, t.TempDir(), "--otlp-endpoint", collector.URL)
	ns := clustertest.Namespace(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/sites", siteOf(sitetest.New(t), "edge", building(t))))
	s.upload("web", web(goodImage))
	made := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "edge", "csar_id": "web", "namespace": ns}))
	s.operation(made.text(t, "operation_id"))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/sites/edge?cascade=true", nil))
	if code := s.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.log)
	}
	trees := map[string]string{}
	for _, span := range collector.Spans(t) {
		if len(span.GetParentSpanId()) == 0 {
			trees[span.GetName()] = span.Tree()
		}
	}
	for request, want := range map[string][]string{
		"POST /v1/sites":         {"\n  operation site_build#1\n    check_hosts\n    build\n    register\n"},
		"POST /v1/vnf_instances": {"\n  operation instantiate#1\n", "\n      apply apps/v1/deployments\n"},
		"DELETE /v1/sites/{site_id}": {
			"\n  operation site_remove#1\n    terminate\n      operation terminate#1\n", "\n    deregister\n    check_hosts\n    reset_hosts\n",
		},
	} {
		for _, part := range want {
			if !strings.Contains(trees[request], part) {
				t.Errorf("the trace of %s lacks %q:\n%s", request, part, trees[request])
			}
		}
	}
	for _, secret := range append(secretsOf(string(clustertest.Kubeconfig(t))), "s3cret", sitetest.Password) {
		if strings.Contains(collector.Sent(), secret) {
			t.Errorf("the traces tell the secret %s", secret)
		}
	}
}
