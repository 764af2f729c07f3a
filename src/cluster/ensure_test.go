package cluster

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestEnsure(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	fresh, there := unlabelled(configMap(t, "x", ns, "fresh", "1")), unlabelled(configMap(t, "x", ns, "there", "1"))
	foreignApply(t, c, "kubectl", unlabelled(configMap(t, "x", ns, "there", "theirs")))
	all := []*unstructured.Unstructured{fresh, there}
	if _, err := c.Preflight(t.Context(), instance(vnf), inside(ns), all); err != nil {
		t.Fatalf("what will be nobody's may be there: %v", err)
	}
	for _, want := range []nf.Action{nf.Created, nf.Unchanged} {
		changes, err := c.Ensure(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "what is missing is made, once", map[string]nf.Action{"fresh": want, "there": nf.Unchanged}, actions(changes))
	}
	diff(t, "what is there stays as it is", map[string]any{"key": "theirs"}, get(t, c, nf.RefOf(there)).Object["data"])
	if owner, has := get(t, c, nf.RefOf(fresh)).GetLabels()[nf.OwnerLabel]; has {
		t.Errorf("it bears the owner %q", owner)
	}
	deleted, err := c.Delete(t.Context(), instance(vnf), refs(fresh))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "no owner can remove it", map[string]nf.Action{"fresh": nf.Kept}, actions(deleted))
}

func TestEnsureIsInterrupted(t *testing.T) {
	c, ns := sandbox(t)
	stuck := unlabelled(objects(t, "x", ns, `{apiVersion: v1, kind: Pod, metadata: {name: stuck}, spec: {nodeName: nowhere, containers: [{name: c, image: none}]}}`)[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Ensure(ctx, []*unstructured.Unstructured{stuck}); err == nil {
		t.Error("a request that is over says nothing of it")
	}
}

func TestCapabilities(t *testing.T) {
	c, _ := sandbox(t)
	caps, err := c.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, api := range caps.APIs {
		has[api] = true
	}
	if caps.Version == "" || !has["apps/v1"] || !has["apps/v1/Deployment"] || !has["v1/ConfigMap"] || has["extensions/v1beta1"] {
		t.Errorf("the capabilities are %+v", caps)
	}
}

// TestServed looks for kinds in exactly the given versions.
func TestServed(t *testing.T) {
	c, _ := sandbox(t)
	deployment := nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment"}
	served, err := c.Served(t.Context(), []nf.Ref{{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, deployment, {Group: "example.org", Version: "v1", Kind: "Gizmo"}})
	if err != nil || len(served) != 1 || served[0] != deployment {
		t.Errorf("the region serves %v: %v", served, err)
	}
}

func TestLookup(t *testing.T) {
	c, ns := sandbox(t)
	mustApply(t, c, "vnf-1", configMap(t, "vnf-1", ns, "a", "1"))
	cases := map[string]struct {
		reason string
		ref    nf.Ref
		found  bool
		items  int
	}{
		"Object":  {"an object is given as it is", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: "a"}, true, 0},
		"Absent":  {"one that is not there is nothing", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: "b"}, false, 0},
		"Unknown": {"nor one of a kind that is not served", nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Name: "b"}, false, 0},
		"List":    {"without a name it is all of them", nf.Ref{Version: "v1", Kind: "Secret", Namespace: ns}, true, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.Lookup(t.Context(), tc.ref)
			if err != nil || (got != nil) != tc.found {
				t.Fatalf("%s: %v, %v", tc.reason, got, err)
			}
			if _, list := got["items"]; list != (tc.items < 0) {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
