package main

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

// accounts issues and reviews tokens of service accounts at the sandbox's API server.
type accounts struct {
	dynamic.Interface
}

func newAccounts(t *testing.T) accounts {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return accounts{client}
}

// in returns the service accounts of a namespace.
func (a accounts) in(namespace string) dynamic.ResourceInterface {
	return a.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace)
}

// review is the TokenReview that istiod requests.
func (a accounts) review(ctx context.Context, token string, audiences []string) (istiod.Review, error) {
	asked := []any{}
	for _, one := range audiences {
		asked = append(asked, one)
	}
	answer, err := a.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": token, "audiences": asked},
	}}, metav1.CreateOptions{})
	if err != nil {
		return istiod.Review{}, err
	}
	var r istiod.Review
	r.Authenticated, _, _ = unstructured.NestedBool(answer.Object, "status", "authenticated")
	r.User, _, _ = unstructured.NestedString(answer.Object, "status", "user", "username")
	r.Audiences, _, _ = unstructured.NestedStringSlice(answer.Object, "status", "audiences")
	return r, nil
}

// token returns a token of a service account.
func (a accounts) token(t *testing.T, namespace, name, audience string) string {
	t.Helper()
	answer, err := a.in(namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": name}, "spec": map[string]any{"audiences": []any{audience}},
	}}, metav1.CreateOptions{}, "token")
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	return token
}

// TestMeshTokens has a real API server issue and review the tokens that istiod gets.
func TestMeshTokens(t *testing.T) {
	t.Parallel()
	api, namespace := newAccounts(t), clustertest.Namespace(t)
	if _, err := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "k8splugin"}}}
	if _, err := api.in(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m := startMesh(t, api.review)
	live, id := api.token(t, namespace, "k8splugin", "istio-ca"), "spiffe://cluster.local/ns/"+namespace+"/sa/k8splugin"
	known := m.enrol(t, "live", live)
	until(t, "the mesh has answered", func() bool { return known.Status().ID == id })

	other := m.enrol(t, "other", api.token(t, namespace, "k8splugin", "vault"))
	until(t, "the mesh has answered", func() bool { return other.Status().Failures > 1 })
	if s := other.Status(); s.ID != "" {
		t.Errorf("a token of another audience got a certificate: %+v", s)
	}
	m.write(t, "other", live)
	until(t, "the mesh has answered", func() bool { return other.Status().ID == id })

	if err := api.in(namespace).Delete(t.Context(), "k8splugin", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the mesh has answered", func() bool {
		r, err := api.review(t.Context(), live, []string{"istio-ca"})
		return err == nil && !r.Authenticated
	})
	gone := m.enrol(t, "gone", live)
	until(t, "the mesh has answered", func() bool { return gone.Status().Failures > 1 })
	if s := gone.Status(); s.ID != "" {
		t.Errorf("a token of a deleted service account got a certificate: %+v", s)
	}
	if s := known.Status(); s.ID != id || s.Failures != 0 {
		t.Errorf("a certificate that was issued before changed: %+v", s)
	}
}
