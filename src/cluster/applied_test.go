package cluster

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestApplyUnchanged applies objects again. Only those whose applied fields were changed are
// sent, and they are as wanted then.
func TestApplyUnchanged(t *testing.T) {
	const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: front}}, spec: {
		selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`
	none := func(*testing.T, *Cluster, nf.Ref, nf.Ref) {}
	cases := map[string]struct {
		reason string
		change func(t *testing.T, c *Cluster, web, settings nf.Ref)
		fresh  bool // the objects were applied just now
		sent   int
	}{
		"Nothing": {reason: "the objects are as they were applied", change: none},
		"Status": {reason: "a controller writes the status", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patchedStatus(t, c, web, `{"status":{"observedGeneration":1,"replicas":1}}`)
		}},
		"Annotation": {reason: "another client adds an annotation to an object", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patched(t, c, web, "other", types.MergePatchType, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1"}}}`)
		}},
		"AnnotationOnly": {reason: "or to one without a status", change: func(t *testing.T, c *Cluster, _, settings nf.Ref) {
			patched(t, c, settings, "other", types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`)
		}},
		"Fresh": {reason: "soon after an apply, any change counts", change: func(t *testing.T, c *Cluster, _, settings nf.Ref) {
			patched(t, c, settings, "other", types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`)
		}, fresh: true, sent: 1},
		"Label": {reason: "a label has another value", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patched(t, c, web, "other", types.MergePatchType, `{"metadata":{"labels":{"tier":"back"}}}`)
		}, sent: 1},
		"Image": {reason: "a field has another value", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patched(t, c, web, "other", types.JSONPatchType, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"other"}]`)
		}, sent: 1},
		"Data": {reason: "a value of a ConfigMap differs", change: func(t *testing.T, c *Cluster, _, settings nf.Ref) {
			patched(t, c, settings, "other", types.MergePatchType, `{"data":{"key":"other"}}`)
		}, sent: 1},
		"Added": {reason: "another client owns a field of its own", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patched(t, c, web, "other", types.MergePatchType, `{"spec":{"paused":true}}`)
		}},
		"Again": {reason: "another replica has applied something else, and within the same second", change: func(t *testing.T, c *Cluster, web, _ nf.Ref) {
			patched(t, c, web, manager(instance("vnf-1")), types.MergePatchType, `{"metadata":{"labels":{"tier":"back"}}}`)
		}, sent: 1},
		"Created": {reason: "an object with the same name is another object", change: func(t *testing.T, c *Cluster, _, settings nf.Ref) {
			deleteForeign(t, c, get(t, c, settings))
		}, sent: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			both := objects(t, "vnf-1", ns, web+"\n---\n"+`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {key: "1"}}`)
			if !tc.fresh {
				c.client.answers.clock = func() time.Time { return time.Now().Add(time.Hour) }
			}
			mustApply(t, c, "vnf-1", both...)
			tc.change(t, c, nf.RefOf(both[0]), nf.RefOf(both[1]))
			r.Reset()
			changes := mustApply(t, c, "vnf-1", both...)
			paths := map[string]bool{} // a conflict is sent twice
			for _, q := range r.Requests() {
				if q.Method == http.MethodPatch {
					paths[q.Path] = true
				}
			}
			sent := len(paths)
			changed := 0
			for _, change := range changes {
				if change.UID == "" {
					t.Errorf("a change without the object's uid: %+v", change)
				}
				if change.Action != nf.Unchanged {
					changed++
				}
			}
			if sent < tc.sent || sent > tc.sent && !tc.fresh || changed > sent { // of fresh objects, a controller may change others, too
				t.Errorf("%s: %d objects were sent, want %d; changes: %+v", tc.reason, sent, tc.sent, changes)
			}
			deployment, configMap := get(t, c, nf.RefOf(both[0])), get(t, c, nf.RefOf(both[1]))
			image, _ := nf.At(deployment.Object, "/spec/template/spec/containers/0/image")
			if deployment.GetLabels()["tier"] != "front" || image != "i" || settingOf(configMap) != "1" {
				t.Errorf("%s: the objects are not as wanted: %v, %v", tc.reason, deployment.Object, configMap.Object)
			}
		})
	}
}

func settingOf(configMap *unstructured.Unstructured) any {
	value, _ := nf.At(configMap.Object, "/data/key")
	return value
}

// patchedStatus changes the status of an object as a controller does.
func patchedStatus(t *testing.T, c *Cluster, ref nf.Ref, patch string) {
	t.Helper()
	targets, err := c.client.apis.resolveAll(t.Context(), []nf.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	err = c.client.request(http.MethodPatch, targets[0]).SubResource("status").SetHeader("Content-Type", string(types.MergePatchType)).
		Param("fieldManager", "controller").Body([]byte(patch)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}
