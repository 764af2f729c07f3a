package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestHealthAfterReady has instances break after they were ready, in every way that
// only the region shows.
func TestHealthAfterReady(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"metadata.yaml": "resources:\n- configmap: [settings.yaml]\n- deployment: [web.yaml]\n",
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"web.yaml":      deployment("web", goodImage),
	}
	cases := map[string]struct {
		reason string
		spoil  func(t *testing.T, b broken)
		want   nf.HealthState
		says   string
	}{
		"object deleted": {
			reason: "another client deletes one object", want: nf.Unhealthy, says: "ConfigMap %/settings is missing",
			spoil: func(t *testing.T, b broken) {
				kubectl(t, http.MethodDelete, "/api/v1/namespaces/"+b.namespace+"/configmaps/settings", "")
			},
		},
		"namespace deleted": {
			reason: "another client deletes the namespace with all its objects", want: nf.Unhealthy, says: "ConfigMap %/settings is missing, and 1 more of 2 objects are not healthy",
			spoil: func(t *testing.T, b broken) { kubectl(t, http.MethodDelete, "/api/v1/namespaces/"+b.namespace, "") },
		},
		"pods crash": {
			reason: "the pods of a Deployment do not start any more", want: nf.Unhealthy, says: "Deployment %/web is not ready",
			spoil: func(t *testing.T, b broken) {
				kubectl(t, http.MethodPatch, "/apis/apps/v1/namespaces/"+b.namespace+"/deployments/web",
					`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"sandbox.invalid/no-such-image:1"}]}}}}`)
			},
		},
		"region away": {
			reason: "the region cannot be reached", want: nf.HealthUnknown, says: "",
			spoil: func(t *testing.T, b broken) { t.Cleanup(b.recorder.Refuse()) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startBareService(t)
			b := broken{namespace: clustertest.Namespace(t), recorder: clustertest.NewRecorder(t)}
			s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
				"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(b.recorder.Kubeconfig()),
			}))
			s.upload("web", files)
			got := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": b.namespace}))
			if state := s.operation(got.text(t, "operation_id")).text(t, "state"); state != "succeeded" {
				t.Fatalf("the operation is %s", state)
			}
			s.awaitHealth(t, nf.Healthy, "")
			tc.spoil(t, b)
			s.awaitHealth(t, tc.want, strings.ReplaceAll(tc.says, "%", b.namespace))
		})
	}
}

// broken is what a case may spoil.
type broken struct {
	namespace string
	recorder  *clustertest.Recorder // between the service and the region
}

// kubectl changes the region behind the service's back.
func kubectl(t *testing.T, method, path, patch string) {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(cfg.Host, "/")+path, strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

// TestHealthOfRegionsWithOneAccess has one watch of each kind for two regions that are
// registered with the same kubeconfig, and deregisters the one that is watched.
func TestHealthOfRegionsWithOneAccess(t *testing.T) {
	t.Parallel()
	s, recorder := startBareService(t), clustertest.NewRecorder(t)
	s.upload("web", map[string]string{
		"metadata.yaml": "resources:\n- configmap: [settings.yaml, more.yaml]\n",
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"more.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
	})
	access := base64.StdEncoding.EncodeToString(recorder.Kubeconfig())
	namespaces, ids := map[string]string{}, map[string]string{}
	for _, region := range []string{"first", "second"} {
		namespaces[region] = clustertest.Namespace(t)
		s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": region, "kubeconfig": access}))
		got := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
			"cloud_region_id": region, "csar_id": "web", "namespace": namespaces[region], "drift": map[string]any{"mode": nf.DriftWarn},
		}))
		ids[region] = got.text(t, "vnf_id")
		s.awaitHealthIn(t, region, nf.Healthy, "")
	}
	watches := 0
	for _, r := range recorder.Requests() {
		if r.String() == "GET /api/v1/configmaps" && r.Query.Get("watch") == "true" {
			watches++
		}
	}
	if watches != 1 {
		t.Errorf("%d watches of all ConfigMaps were started for two regions, want 1", watches)
	}
	s.awaitDrift(t, ids["second"], nf.DriftNone)
	second := "/api/v1/namespaces/" + namespaces["second"] + "/configmaps/"
	kubectl(t, http.MethodDelete, second+"settings", "")
	s.awaitHealthIn(t, "second", nf.Unhealthy, "settings is missing")
	s.awaitDrift(t, ids["second"], nf.Drifted)
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+ids["first"], nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/cloud_regions/first", nil))
	kubectl(t, http.MethodDelete, second+"more", "")
	s.awaitHealthIn(t, "second", nf.Unhealthy, "and 1 more of 2 objects")
}

// awaitDrift reads an instance until its drift has the state.
func (s *testService) awaitDrift(t *testing.T, id string, want nf.DriftState) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		a := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id, nil))
		if a.text(t, "drift_state") == string(want) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the drift is not %s: %s", want, a.body)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitHealth reads the list of instances until the only one is ready and has the
// health; the list alone, which asks no region.
func (s *testService) awaitHealth(t *testing.T, want nf.HealthState, says string) {
	t.Helper()
	s.awaitHealthIn(t, "", want, says)
}

// awaitHealthIn is awaitHealth for a region; empty: any.
func (s *testService) awaitHealthIn(t *testing.T, region string, want nf.HealthState, says string) {
	t.Helper()
	path := "/v1/vnf_instances?state=ready&health=" + string(want)
	if region != "" {
		path += "&cloud_region_id=" + region
	}
	deadline := time.After(2 * time.Minute)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		last := s.want(http.StatusOK, s.do("GET", path, nil))
		for _, in := range last.field(t, "vnf_instances").([]any) {
			if message, _ := in.(map[string]any)["health_message"].(string); strings.Contains(message, says) {
				return
			}
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("no instance is %s and says %q: %s", want, says, s.do("GET", "/v1/vnf_instances", nil).body)
		}
	}
}
