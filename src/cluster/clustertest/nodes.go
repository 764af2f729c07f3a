package clustertest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Node adds a simulated node to the sandbox until the test ends, and waits until it is
// ready. The scheduler places no pod on it, because it has no room for pods: a pod runs
// there if its spec names the node.
func Node(t testing.TB, name string, labels, allocatable map[string]string, cordoned bool) {
	t.Helper()
	room := map[string]any{"pods": "0"}
	for resource, amount := range allocatable {
		room[resource] = amount
	}
	marks := map[string]any{"kubernetes.io/hostname": name, "type": "kwok"}
	for label, value := range labels {
		marks[label] = value
	}
	api := clientFor(t, "", "v1", "nodes")
	if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": marks, "annotations": map[string]any{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"}},
		"spec":     map[string]any{"unschedulable": cordoned},
		"status":   map[string]any{"allocatable": room, "capacity": room},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("cannot delete node %s: %v", name, err)
		}
	})
	await(t, api, name, func(now *unstructured.Unstructured) bool { return usable(now, cordoned) })
}

// usable reports whether a node is ready and has no taint, except that of a cordoned
// one.
func usable(node *unstructured.Unstructured, cordoned bool) bool {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	return isTrue(node, "Ready") && (len(taints) == 0 || cordoned)
}
