package clustertest

import (
	_ "embed"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// networkDefinition is the part of Multus' CustomResourceDefinition that the service
// depends on: the config is a text.
//
//go:embed networks.yaml
var networkDefinition string

// Attach sets the interfaces of the pods in a namespace, as Multus reports them.
func Attach(t testing.TB, namespace, status string) {
	t.Helper()
	api := clientFor(t, "", "v1", "pods").Namespace(namespace)
	pods, err := api.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"k8s.v1.cni.cncf.io/network-status": status}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if _, err := api.Patch(t.Context(), p.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Networks makes the sandbox serve NetworkAttachmentDefinitions, as a region with
// Multus does. Other tests may need the kind at the same time, so it stays.
func Networks(t testing.TB) {
	t.Helper()
	Serve(t, networkDefinition)
}

// Serve makes the sandbox serve the kinds of CustomResourceDefinitions. Other tests may
// need them at the same time, so they stay.
func Serve(t testing.TB, text string) {
	t.Helper()
	for _, crd := range Documents(t, text) {
		define(t, crd)
	}
}

// Patch changes an object as its controller does. The resource is the plural of its
// kind.
func Patch(t testing.TB, of *unstructured.Unstructured, resource string, change map[string]any, subresources ...string) {
	t.Helper()
	patch, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	gvk := of.GroupVersionKind()
	api := clientFor(t, gvk.Group, gvk.Version, resource).Namespace(of.GetNamespace())
	if _, err := api.Patch(t.Context(), of.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}
