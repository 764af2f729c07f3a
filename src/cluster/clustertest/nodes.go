package clustertest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Node adds a simulated node to the sandbox until the test ends, and waits until it is
// ready. The scheduler places no pod on it, because it has no room for pods: a pod runs
// there if its spec names the node.
func Node(t testing.TB, name string, labels, allocatable map[string]string, cordoned bool) {
	t.Helper()
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	room := map[string]any{"pods": "0"}
	for resource, amount := range allocatable {
		room[resource] = amount
	}
	marks := map[string]any{"kubernetes.io/hostname": name, "type": "kwok"}
	for label, value := range labels {
		marks[label] = value
	}
	api := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
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
	watch, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if now, ok := event.Object.(*unstructured.Unstructured); ok && usable(now, cordoned) {
			return
		}
	}
	t.Fatalf("node %s does not become ready", name)
}

// usable reports whether a node is ready and has no taint, except that of a cordoned
// one.
func usable(node *unstructured.Unstructured, cordoned bool) bool {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
			return len(taints) == 0 || cordoned
		}
	}
	return false
}
