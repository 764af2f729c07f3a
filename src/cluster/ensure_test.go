package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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

// definitionText is a CustomResourceDefinition. It is established unless it is pending.
func definitionText(name, text string) string {
	established := "True"
	if strings.HasPrefix(name, "pending") {
		established = "False"
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q,"uid":%q,"resourceVersion":"1","generation":1,
		"annotations":{"text":%q}},"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":%q,"reason":"Installing"}]}}`, name, name, text, established)
}

// defining is a region with many large CustomResourceDefinitions, and any other one that
// a request names.
type defining struct {
	mu        sync.Mutex
	selectors []string // of lists
}

func (d *defining) respond(req *http.Request) (*http.Response, error) {
	const all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	name, isObject := strings.CutPrefix(req.URL.Path, all+"/")
	switch {
	case req.URL.Path == "/apis":
		return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}]}]}`)
	case req.URL.Path == "/apis/apiextensions.k8s.io/v1":
		return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apiextensions.k8s.io/v1","resources":[
			{"name":"customresourcedefinitions","namespaced":false,"kind":"CustomResourceDefinition","verbs":["get","list","watch","patch","delete"]}]}`)
	case isObject:
		return answer(200, definitionText(name, ""))
	case req.URL.Path != all || req.URL.Query().Get("watch") != "":
		return served(req)
	}
	selector := req.URL.Query().Get("fieldSelector")
	d.mu.Lock()
	d.selectors = append(d.selectors, selector)
	d.mu.Unlock()
	var items []string
	one, isOne := strings.CutPrefix(selector, "metadata.name=")
	switch {
	case isOne && !strings.HasPrefix(one, "gone"):
		items = []string{definitionText(one, "")}
	case !isOne:
		for i := range 200 {
			items = append(items, definitionText(fmt.Sprint("foreign", i), strings.Repeat("x", 20<<10)))
		}
	}
	return answer(200, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`+strings.Join(items, ",")+`]}`)
}

// TestEnsureOfDefinitions waits for CustomResourceDefinitions in a region with more of them
// than fit into memory.
func TestEnsureOfDefinitions(t *testing.T) {
	cases := map[string]struct {
		reason string
		names  []string
		want   nf.Kind // Internal: no error
	}{
		"two":  {"others are not read", []string{"a", "b"}, nf.Internal},
		"gone": {"one that does not become current ends the wait for the others", []string{"pending", "gone"}, nf.Failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &defining{}
				p, _ := stubbed(map[string]stub{"east": d.respond})
				p.cfg.limits.kept = 1 << 20
				c := opening(t, p, "east")
				var all []*unstructured.Unstructured
				for _, name := range tc.names {
					u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
					u.SetName(name)
					all = append(all, u)
				}
				_, err := c.Ensure(t.Context(), all)
				if tc.want != nf.Internal {
					wantKind(t, err, tc.want)
				} else if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				for _, selector := range d.selectors {
					if selector == "" {
						t.Errorf("%s: all objects are read: %q", tc.reason, d.selectors)
					}
				}
			})
		})
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
