package main

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestActions scales, heals and updates an instance whose objects other clients
// change in the meantime.
func TestActions(t *testing.T) {
	t.Parallel()
	s, region := startService(t), newReleases(t)
	s.upload("actions", map[string]string{
		"metadata.yaml": "name: actions\nvariables: [{name: greeting, default: hello}]\nresources:\n- configmap: config.yaml\n- deployment: [web.yaml, db.yaml]\n" +
			"- horizontalpodautoscaler: hpa.yaml\n- poddisruptionbudget: guard.yaml\n",
		"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {greeting: $greeting}\n",
		"web.yaml":    scalable("web"), "db.yaml": scalable("db"),
		"hpa.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n" +
			"spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n",
		"guard.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: guard}\nspec: {minAvailable: 2, selector: {matchLabels: {app: db}}}\n",
	})
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "actions", "namespace": region.ns}))
	one := "/v1/vnf_instances/" + created.text(t, "vnf_id")
	ended := func(a answer) {
		t.Helper()
		op := s.operation(a.text(t, "operation_id"))
		if state := op.text(t, "state"); state != string(nf.Succeeded) {
			t.Fatalf("the operation is %s: %s", state, op.body)
		}
	}
	replicas := func(name string) any {
		t.Helper()
		u, err := region.api("Deployment").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is, _ := nf.At(u.Object, "/spec/replicas")
		return is
	}
	ended(created)
	ended(s.want(http.StatusOK, s.do("POST", one+"/scale", map[string]any{"workloads": []any{map[string]any{"workload": "Deployment/db", "replicas": 2}}})))
	refused := s.want(http.StatusConflict, s.do("POST", one+"/scale", map[string]any{"workloads": []any{map[string]any{"workload": "Deployment/web", "by": 1}}}))
	if !strings.Contains(refused.text(t, "detail"), "is scaled by HorizontalPodAutoscaler web") {
		t.Errorf("the autoscaler is named: %s", refused.body)
	}

	if _, err := region.api("Deployment").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec": {"replicas": 4}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "db"} {
		kind := map[string]string{"config": "ConfigMap", "db": "Deployment"}[name]
		if err := region.api(kind).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ended(s.want(http.StatusOK, s.do("POST", one+"/heal", nil)))
	if web, db := replicas("web"), replicas("db"); web != int64(4) || db != int64(2) {
		t.Errorf("after the heal, web has %v replicas, and db %v", web, db)
	}
	if _, err := region.api("ConfigMap").Get(t.Context(), "config", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	ended(s.want(http.StatusOK, s.do("PATCH", one, map[string]any{"parameters": map[string]any{"greeting": "good morning"}})))
	if web, db := replicas("web"), replicas("db"); web != int64(4) || db != int64(2) {
		t.Errorf("after the update, web has %v replicas, and db %v", web, db)
	}

	var pods *unstructured.UnstructuredList
	until(t, "the pods of the deleted Deployment are gone", func() bool {
		var err error
		if pods, err = region.api("Pod").List(t.Context(), metav1.ListOptions{LabelSelector: "app=db"}); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 2
	})
	pod := pods.Items[0].GetName()
	failed := s.want(http.StatusFailedDependency, s.do("POST", one+"/heal", map[string]any{"pods": []string{pod}, "eviction_timeout": "1s"}))
	if failed.text(t, "reason") != nf.ReasonBudget || !strings.Contains(failed.text(t, "detail"), "The disruption budget guard needs 2 healthy pods") {
		t.Errorf("the budget is named: %s", failed.body)
	}
	ended(s.want(http.StatusOK, s.do("POST", one+"/heal", map[string]any{"pods": []string{pod}, "force": true})))
	if _, err := region.api("Pod").Get(t.Context(), pod, metav1.GetOptions{}); err == nil {
		t.Errorf("pod %s is still there", pod)
	}
	s.want(http.StatusNoContent, s.do("DELETE", one, nil))
}

func scalable(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: " + name + "}}\n" +
		"  template: {metadata: {labels: {app: " + name + "}}, spec: {containers: [{name: c, image: registry.example.com/web:1}]}}\n"
}
