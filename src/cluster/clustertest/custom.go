package clustertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// definitionOf is a CustomResourceDefinition that accepts any object, and whose
// status only its subresource changes.
const definitionOf = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[2]ss, singular: %[2]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Define makes the sandbox serve a kind of a group in version v1, until the test
// ends.
func Define(t testing.TB, group, kind string) {
	t.Helper()
	crd := Documents(t, fmt.Sprintf(definitionOf, group, strings.ToLower(kind), kind))[0]
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := definitions(t).Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	define(t, crd)
}

func definitions(t testing.TB) dynamic.ResourceInterface {
	t.Helper()
	return clientFor(t, "apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

// define applies a definition, and returns once it is established.
func define(t testing.TB, crd *unstructured.Unstructured) {
	t.Helper()
	api := definitions(t)
	if _, err := api.Apply(t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "clustertest", Force: true}); err != nil {
		t.Fatal(err)
	}
	await(t, api, crd.GetName(), func(now *unstructured.Unstructured) bool { return isTrue(now, "Established") })
}

// SetStatus sets the status of an object of a kind that Define has defined, once
// the object exists, as its operator would.
func SetStatus(t testing.TB, of nf.Ref, status map[string]any) {
	t.Helper()
	resource := strings.ToLower(of.Kind) + "s"
	object := await(t, clientFor(t, of.Group, "v1", resource).Namespace(of.Namespace), of.Name, exists)
	Patch(t, object, resource, map[string]any{"status": status}, "status")
}

// Collected returns when the garbage collector of the sandbox knows the kind of an object,
// which it creates and deletes. The collector reads the kinds of the API server every 30
// seconds, and the deletion of an object that may own others waits for it.
func Collected(t testing.TB, object *unstructured.Unstructured, resource string) {
	t.Helper()
	gvk := object.GroupVersionKind()
	api := clientFor(t, gvk.Group, gvk.Version, resource).Namespace(object.GetNamespace())
	made, err := api.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	watch, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName(), ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := api.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	for event := range watch.ResultChan() {
		if event.Type == apiwatch.Deleted {
			return
		}
	}
	t.Fatalf("the garbage collector does not know %s after five minutes", gvk)
}
