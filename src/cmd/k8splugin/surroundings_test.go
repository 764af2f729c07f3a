package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestSurroundingsAreOff uses a service with its default settings. It has no part that
// connects to another component of ONAP, and stores and counts nothing for one.
func TestSurroundingsAreOff(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	if p := s.parts; p.aai != nil || p.inventory != nil || p.imports != nil || p.sdc.client != nil || p.sdc.finder != nil || p.sdc.runner != nil || p.mesh != nil {
		t.Error("a part for A&AI, SDC or istiod exists")
	}
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "east", "cloud_owner": "k8s", "aai_tenant": "t1", "kubeconfig": clustertest.Kubeconfig(t)}))
	s.upload("config", map[string]string{"metadata.yaml": "resources: {configmap: [c.yaml]}\n", "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "east", "csar_id": "config", "namespace": clustertest.Namespace(t), "aai": map[string]any{"generic_vnf_id": "v", "vf_module_id": "m"},
	}))
	vnf := created.text(t, "vnf_id")
	s.operation(created.text(t, "operation_id"))
	s.want(http.StatusNotFound, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "none", "csar_id": "6b1a0c1e-0000-4000-8000-000000000001"}))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+vnf, nil))
	for _, key := range s.keys() {
		for _, prefix := range []string{"aai", "sdc/"} {
			if strings.HasPrefix(key, prefix) {
				t.Errorf("there is a record %s", key)
			}
		}
	}
	metrics := string(s.want(http.StatusOK, s.do("GET", "/metrics", nil)).body)
	if !strings.Contains(metrics, "\nk8splugin_") {
		t.Error("there are no metrics")
	}
	for _, name := range []string{"k8splugin_sdc_", "k8splugin_istio_", "k8splugin_aai_subjects{"} {
		if strings.Contains(metrics, "\n"+name) {
			t.Errorf("there is a metric %s", name)
		}
	}
}
