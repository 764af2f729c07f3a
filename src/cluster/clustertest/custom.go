package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// define applies a definition, and returns once it is established.
func define(t testing.TB, crd *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	api := definitions(t)
	if _, err := api.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "clustertest", Force: true}); err != nil {
		t.Fatal(err)
	}
	watch, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		now, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return
			}
		}
	}
	t.Fatalf("the sandbox does not serve %s", crd.GetName())
}

// SetStatus sets the status of an object of a kind that Define has defined, once
// the object exists, as its operator would.
func SetStatus(t testing.TB, of nf.Ref, status map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	api := client.Resource(schema.GroupVersionResource{Group: of.Group, Version: "v1", Resource: strings.ToLower(of.Kind) + "s"}).Namespace(of.Namespace)
	watch, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + of.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if _, ok := <-watch.ResultChan(); !ok {
		t.Fatalf("%s does not come", of)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Patch(ctx, of.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}
