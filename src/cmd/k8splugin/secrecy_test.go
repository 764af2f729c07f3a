package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestSensitiveValuesAreNotTold makes the API server repeat a sensitive value in
// its refusal, and compares revisions that hold others.
func TestSensitiveValuesAreNotTold(t *testing.T) {
	t.Parallel()
	p := serveProgram(t, t.TempDir())
	p.want(http.StatusCreated, p.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	p.upload("secretive", map[string]string{
		"metadata.yaml": "variables:\n  pw: {type: string, required: true, sensitive: true}\n  pin: {type: integer, default: 1, sensitive: true}\nresources:\n- configmap: [a.yaml]\n- job: [job.yaml]\n",
		"a.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {p: \"pw=$pw\", pin: \"$pin\"}\n",
		"job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n" +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/j, args: [\"$pw\"]}]}}}\n",
	})
	ns := clustertest.Namespace(t)
	up := p.want(http.StatusCreated, p.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "secretive", "namespace": ns, "parameters": map[string]any{"pw": "hunter2-first", "pin": 777123},
	}))
	p.operation(up.text(t, "operation_id"))
	path := "/v1/vnf_instances/" + up.text(t, "vnf_id")
	patch := map[string]any{"parameters": map[string]any{"pw": "hunter2-second", "pin": 888456}}

	// A Job's template cannot be changed, and the API server says what it holds.
	preview := p.do("PATCH", path+"?dry_run=true", patch)
	refused := p.do("PATCH", path, patch)
	if refused.status != http.StatusConflict || !strings.Contains(string(refused.body), "immutable") {
		t.Fatalf("the change was not refused: %d %s", refused.status, refused.body)
	}
	only := p.want(http.StatusOK, p.do("POST", "/v1/vnf_instances?dry_run=true", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "secretive", "namespace": ns + "-b", "parameters": map[string]any{"pw": "hunter2-third"},
	}))
	told := map[string]string{
		"dry run": string(preview.body), "dry run of a new instance": string(only.body), "refusal": string(refused.body), "log": p.log.String(),
		"instance":   string(p.want(http.StatusOK, p.do("GET", path, nil)).body),
		"operations": string(p.want(http.StatusOK, p.do("GET", "/v1/operations", nil)).body),
	}
	for where, text := range told {
		for _, secret := range []string{"hunter2", "777123", "888456"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s shows %s: %s", where, secret, text)
			}
		}
	}
	p.want(http.StatusNoContent, p.do("DELETE", path, nil))
}
