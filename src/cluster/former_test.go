package cluster

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// TestFormerPods judges workloads of two pods, "old" and "other", whose status says that
// both are ready, after "old" was removed.
func TestFormerPods(t *testing.T) {
	const (
		replicated = `replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2, currentReplicas: 2, conditions: [{type: Available, status: "True"}]`
		daemons    = `desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 2`
	)
	cases := map[string]struct {
		reason string
		kind   string
		pods   []string // names, with their states
		want   nf.Status
	}{
		"Stale":       {"the controller has not noticed the removal", "StatefulSet", []string{"other ready"}, nf.InProgress},
		"Deleting":    {"the pod is still deleted", "StatefulSet", []string{"old ready", "other ready"}, nf.InProgress},
		"Leaving":     {"another pod is deleted, too", "StatefulSet", []string{"new ready", "other deleting"}, nf.InProgress},
		"Starting":    {"the new pod is not ready", "StatefulSet", []string{"new starting", "other ready"}, nf.InProgress},
		"Replaced":    {"the new pod is ready", "StatefulSet", []string{"new ready", "other ready"}, nf.Current},
		"Deployment":  {"pods of a Deployment belong to a replica set", "Deployment", []string{"other ready"}, nf.InProgress},
		"Deployment2": {"and their successors, too", "Deployment", []string{"new ready", "other ready"}, nf.Current},
		"DaemonSet":   {"a DaemonSet counts pods in another field", "DaemonSet", []string{"other ready"}, nf.InProgress},
		"DaemonSet2":  {"and is ready again", "DaemonSet", []string{"new ready", "other ready"}, nf.Current},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := replicated
			if tc.kind == "DaemonSet" {
				status = daemons
			}
			below := func(kind, name, uid, parent, rest string) *unstructured.Unstructured {
				u := parsed(t, fmt.Sprintf(`{apiVersion: v1, kind: %s, metadata: {name: %s, uid: %s, ownerReferences: [{apiVersion: apps/v1, kind: X, name: x, uid: %s, controller: true}]}%s}`, kind, name, uid, parent, rest))
				if kind != "Pod" {
					u.SetAPIVersion("apps/v1")
				}
				return u
			}
			v := newView(instance("vnf-1"), readiness.Shipped())
			workload := parsed(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: web, uid: web, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, %s}}`, tc.kind, status))
			v.put(workload)
			parent := "web"
			if tc.kind == "Deployment" {
				parent = "set"
				v.put(below("ReplicaSet", "web-1", "set", "web", ""))
			}
			for _, text := range tc.pods {
				var uid, state string
				if _, err := fmt.Sscan(text, &uid, &state); err != nil {
					t.Fatal(err)
				}
				p := below("Pod", uid, uid, parent, map[string]string{
					"ready": `, status: {conditions: [{type: Ready, status: "True"}]}`, "deleting": `, status: {conditions: [{type: Ready, status: "True"}]}`, "starting": "",
				}[state])
				if state == "deleting" {
					p.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
				}
				v.put(p)
			}
			change := nf.Change{Ref: nf.RefOf(workload)}
			if is, _ := v.of(change); is.Status != nf.Current {
				t.Errorf("%s: without a removal, the status is %s, %s", tc.reason, is.Status, is.Message)
			}
			change.Former = []string{"old"}
			if is, _ := v.of(change); is.Status != tc.want {
				t.Errorf("%s: the status is %s, %s", tc.reason, is.Status, is.Message)
			}
		})
	}
}

// TestWatchOfReplacedPods removes one of two pods of a Deployment, whose kubelet is the
// test. The Deployment is not ready until the pod that takes its place is.
func TestWatchOfReplacedPods(t *testing.T) {
	c, ns := sandbox(t)
	web := workloadOf(t, ns, "Deployment", "web", held, "replicas: 2,")
	made := mustApply(t, c, "vnf-1", web)
	ready := func(n int) {
		t.Helper()
		heldPods(t, ns, n, func(p *unstructured.Unstructured) {
			patchStatus(t, c, "/api/v1/namespaces/"+ns+"/pods/"+p.GetName(), `{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
		})
	}
	ready(2)
	await(t.Context(), t, c, "vnf-1", made, nf.Current)
	pods, err := c.Pods(t.Context(), instance("vnf-1"), refs(web))
	if err != nil {
		t.Fatal(err)
	}
	former := pods[0]
	gone, err := c.Evict(t.Context(), instance("vnf-1"), nf.HealPod{Ref: former.Ref, UID: former.UID, Workload: former.Workload}, nf.HealTask{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	await(t.Context(), t, c, "vnf-1", []nf.Change{gone}, nf.Absent)
	replaced := false
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: nf.RefOf(web), Action: nf.Unchanged, Former: []string{former.UID}}}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case h.Status == nf.Current && !replaced:
			t.Fatalf("it is ready before its new pod is: %+v", h)
		case h.Status == nf.Current:
			return
		case !replaced:
			replaced = true
			ready(2) // the one that is ready is so again
		}
	}
}
