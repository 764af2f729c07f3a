package clustertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Objects returns all objects of the given namespaces, all cluster-scoped
// objects whose names begin like one of these namespaces, and all others of the
// sandbox that do not belong to tests, sorted, as "resource.group/namespace/name". It omits events and
// leases, which change on their own, and IP addresses, which are cluster-scoped
// but belong to Services of other tests.
func Objects(t testing.TB, namespaces ...string) []string {
	t.Helper()
	cfg := config(t)
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, r := range resources(t) {
		list, err := client.Resource(r.GroupVersionResource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("cannot list %s: %v", r.GroupResource(), err)
		}
		for _, obj := range list.Items {
			if mine(r, obj.ObjectMeta, namespaces) {
				out = append(out, r.GroupResource().String()+"/"+obj.Namespace+"/"+obj.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func mine(r resource, obj metav1.ObjectMeta, namespaces []string) bool {
	if obj.Namespace != "" {
		return slices.Contains(namespaces, obj.Namespace)
	}
	// Other tests serve their kinds, ask for certificates, and have namespaces and
	// volumes, at the same time.
	shared := slices.Contains([]string{"apiservices", "certificatesigningrequests", "customresourcedefinitions", "namespaces", "persistentvolumes"}, r.Resource)
	named := slices.ContainsFunc(namespaces, func(name string) bool { return strings.HasPrefix(obj.Name, name) })
	return named || !shared && !strings.Contains(obj.Name, "test-")
}

// Kind is a kind of object that the sandbox serves.
type Kind struct {
	APIVersion string
	Kind       string
	Namespaced bool
	Creatable  bool
}

// Kinds returns every kind that can be listed, except kinds of tests.
func Kinds(t testing.TB) []Kind {
	t.Helper()
	var out []Kind
	for _, r := range resources(t) {
		out = append(out, Kind{r.GroupVersion().String(), r.kind, r.namespaced, r.creatable})
	}
	return out
}

// resource is a kind of object that the sandbox serves.
type resource struct {
	schema.GroupVersionResource

	kind                  string
	namespaced, creatable bool
}

func resources(t testing.TB) []resource {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // another test may register an aggregated API
		t.Fatalf("cannot list the sandbox's kinds: %v", err)
	}
	var out []resource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			passing := r.Name == "events" || r.Name == "leases" || r.Name == "ipaddresses"
			// If another test has just deleted a CRD, its kind is gone.
			foreign := strings.Contains(gv.Group, "test")
			if slices.Contains(r.Verbs, "list") && !passing && !foreign {
				out = append(out, resource{gv.WithResource(r.Name), r.Kind, r.Namespaced, slices.Contains(r.Verbs, "create")})
			}
		}
	}
	return out
}

// Get returns the sandbox's object with the kind, namespace and name of another
// object; nil if there is none.
func Get(t testing.TB, of *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	cfg := config(t)
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	list, err := kinds.ServerResourcesForGroupVersion(of.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == of.GetKind() && !strings.Contains(r.Name, "/") })
	if at < 0 {
		t.Fatalf("the sandbox serves no %s of %s", of.GetKind(), of.GetAPIVersion())
	}
	api := client.Resource(of.GroupVersionKind().GroupVersion().WithResource(list.APIResources[at].Name))
	got, err := api.Namespace(of.GetNamespace()).Get(t.Context(), of.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// deployments returns the client for the sandbox's Deployments, for tests that
// act as their controller.
func deployments(t testing.TB, namespace string) dynamic.ResourceInterface {
	t.Helper()
	return clientFor(t, "apps", "v1", "deployments").Namespace(namespace)
}

// WaitForDeployment returns once the Deployment exists.
func WaitForDeployment(t testing.TB, namespace, name string) {
	t.Helper()
	await(t, deployments(t, namespace), name, exists)
}

// Unblock changes the image of a Deployment's first container, as a user would
// do to repair it manually.
func Unblock(t testing.TB, namespace, name, image string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	if _, err := deployments(t, namespace).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Foreign creates a ConfigMap with the field manager "a-person".
func Foreign(t testing.TB, namespace, name string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"by": "hand"},
	}}
	maps := clientFor(t, "", "v1", "configmaps").Namespace(namespace)
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "a-person"}); err != nil {
		t.Fatal(err)
	}
}

// clientFor returns the client for the sandbox's objects of a kind.
func clientFor(t testing.TB, group, version, resource string) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
}

// await returns an object of the sandbox as soon as it is as wanted. The object may not
// exist yet.
func await(t testing.TB, api dynamic.ResourceInterface, name string, wanted func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A watch without a resource version starts with the existing objects.
	watch, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if now, ok := event.Object.(*unstructured.Unstructured); ok && wanted(now) {
			return now
		}
	}
	t.Fatalf("object %s does not exist, or is not as wanted, after a minute", name)
	return nil
}

func exists(*unstructured.Unstructured) bool { return true }

// isTrue reports whether a condition of an object is true.
func isTrue(u *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == condition && fields["status"] == "True"
	})
}
