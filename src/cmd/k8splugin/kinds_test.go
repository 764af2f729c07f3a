package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestKindsThatNeedCare brings up what a naive engine gets wrong: a definition
// and its resource side by side, a Job that must complete, one that is gone as
// soon as it has, a StatefulSet, a Deployment of no pods, and a claim that
// nothing binds.
func TestKindsThatNeedCare(t *testing.T) {
	t.Parallel()
	s := startService(t)
	ns := clustertest.Namespace(t)
	group := "test-" + ns + ".example.org" // definitions are cluster-wide: one for each run
	s.upload("kinds", map[string]string{
		"metadata.yaml": "resources:\n- name: all\n  manifest: [things.yaml, workloads.yaml]\n- deployment: [idle.yaml]\n",
		"things.yaml": strings.ReplaceAll(`apiVersion: GROUP/v1
kind: Thing
metadata: {name: one}
spec: {kept: {deep: [1, 2.5, "three"]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, "GROUP", group),
		"workloads.yaml": `apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: migrate}
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/migrate}]}}}
- apiVersion: batch/v1
  kind: Job
  metadata: {name: passing}
  spec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/migrate}]}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: store}
  spec:
    replicas: 3
    serviceName: store
    selector: {matchLabels: {app: store}}
    template: {metadata: {labels: {app: store}}, spec: {serviceAccountName: store, containers: [{name: main, image: example.invalid/store}]}}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: store}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: later}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
		"idle.yaml": strings.ReplaceAll(deployment("idle", goodImage), "${replicas:-1}", "0"),
	})
	before := clustertest.Objects(t, ns)
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "kinds", "namespace": ns}))
	op := s.operation(up.text(t, "operation_id"))
	if op.text(t, "state") != "succeeded" {
		t.Fatalf("operation: %s", op.body)
	}
	var applied []string
	for _, st := range op.field(t, "steps").([]any) {
		if name := st.(map[string]any)["name"].(string); strings.HasPrefix(name, "apply") {
			applied = append(applied, name)
		}
	}
	want := []string{"apply 1/4 all (definitions)", "apply 2/4 all (prerequisites)", "apply 3/4 all", "apply 4/4 deployment"}
	if diff := cmp.Diff(want, applied); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	in := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+up.text(t, "vnf_id"), nil))
	for _, o := range in.field(t, "objects").([]any) {
		if object := o.(map[string]any); object["status"] != "Current" {
			t.Errorf("%s %s is %s: %s", object["kind"], object["name"], object["status"], object["message"])
		}
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+up.text(t, "vnf_id"), nil))
	if diff := cmp.Diff(before, clustertest.Objects(t, ns)); diff != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", diff)
	}
}

// TestPodOnVolume changes and removes a Pod without a controller, and a PersistentVolume, which
// belongs to no namespace.
func TestPodOnVolume(t *testing.T) {
	t.Parallel()
	s := startService(t)
	ns := clustertest.Namespace(t)
	s.upload("pod", map[string]string{
		"metadata.yaml": "variables: {image: {default: example.invalid/one}}\nresources:\n- persistentvolume: [volume.yaml]\n- persistentvolumeclaim: [claim.yaml]\n- pod: [pod.yaml]\n",
		"volume.yaml": strings.ReplaceAll(`apiVersion: v1
kind: PersistentVolume
metadata: {name: NS-data}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: NS, persistentVolumeReclaimPolicy: Retain, hostPath: {path: /srv/data}}
`, "NS", ns),
		"claim.yaml": strings.ReplaceAll(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: NS, resources: {requests: {storage: 1Gi}}}
`, "NS", ns),
		"pod.yaml": `apiVersion: v1
kind: Pod
metadata: {name: solo}
spec:
  containers: [{name: main, image: $image, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`,
	})
	before := clustertest.Objects(t, ns)
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "pod", "namespace": ns}))
	if op := s.operation(up.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
		t.Fatalf("operation: %s", op.body)
	}
	id := up.text(t, "vnf_id")
	for kind, status := range s.objectsOf(id) {
		if !strings.HasPrefix(status, "Current") {
			t.Errorf("%s is %s", kind, status)
		}
	}
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": ns, "name": "solo"}}}
	made := clustertest.Get(t, pod).GetUID()
	changed := s.want(http.StatusAccepted, s.async("PATCH", "/v1/vnf_instances/"+id, map[string]any{"parameters": map[string]any{"image": "example.invalid/two"}}))
	if op := s.operation(changed.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
		t.Fatalf("operation: %s", op.body)
	}
	now := clustertest.Get(t, pod)
	containers, _, _ := unstructured.NestedSlice(now.Object, "spec", "containers")
	if image := containers[0].(map[string]any)["image"]; image != "example.invalid/two" || now.GetUID() != made {
		t.Errorf("the image of the Pod can be changed in place, and is %v; its UID was %s and is %s", image, made, now.GetUID())
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	if diff := cmp.Diff(before, clustertest.Objects(t, ns)); diff != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", diff)
	}
}

// TestQuotaFailsAtOnce shows that pods which may not be made end the wait, with
// the API server's own words.
func TestQuotaFailsAtOnce(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("greedy", map[string]string{
		"metadata.yaml": "resources:\n- resourcequota: [quota.yaml]\n- deployment: [web.yaml]\n",
		"quota.yaml":    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: \"0\"}}\n",
		"web.yaml":      deployment("web", goodImage),
	})
	ns := clustertest.Namespace(t)
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "greedy", "namespace": ns, "on_failure": "keep"}))
	op := s.operation(up.text(t, "operation_id"))
	if message := op.text(t, "failure.message"); !strings.Contains(message, "exceeded quota") {
		t.Errorf("operation: %s", op.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+up.text(t, "vnf_id"), nil))
}

// TestForeignObjectsAreNeverTakenOver shows that what is there already stays as
// it is, and that its namespace stays with it.
func TestForeignObjectsAreNeverTakenOver(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("web", web(goodImage))
	s.upload("other", map[string]string{
		"metadata.yaml": "resources:\n- configmap: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
	})
	ns := clustertest.Namespace(t)
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "other", "namespace": ns}))
	s.operation(up.text(t, "operation_id"))
	clustertest.Foreign(t, ns, "settings")
	refused := s.want(http.StatusConflict, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns}))
	for _, part := range []string{`"field":"ConfigMap ` + ns + `/settings"`, `"file":"settings.yaml"`, "a-person"} {
		if !strings.Contains(string(refused.body), part) {
			t.Errorf("no %s in %s", part, refused.body)
		}
	}
	gone := s.want(http.StatusAccepted, s.async("DELETE", "/v1/vnf_instances/"+up.text(t, "vnf_id"), nil))
	op := s.operation(strings.TrimPrefix(gone.header.Get("Location"), "/v1/operations/"))
	if !strings.Contains(string(op.body), "ConfigMap "+ns+"/settings") {
		t.Errorf("nothing says why the namespace stays: %s", op.body)
	}
	if left := clustertest.Objects(t, ns); !slices.Contains(left, "configmaps/"+ns+"/settings") {
		t.Errorf("the foreign object is gone: %v", left)
	}
}
