package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestEnsureNamespace(t *testing.T) {
	c, ns := sandbox(t)
	is, err := c.EnsureNamespace(t.Context(), ns, "another")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "a namespace that is there is as it was made", nf.Namespace{Created: true, Project: nf.DefaultProject}, is)
	live := get(t, c, nf.Ref{Version: "v1", Kind: "Namespace", Name: ns})
	if live.GetLabels()[nf.CreatedByLabel] != nf.CreatedBy {
		t.Errorf("a namespace that was made bears the label: %v", live.GetLabels())
	}
	stuck := configMap(t, "vnf-1", ns, "stuck", "1")
	stuck.SetFinalizers([]string{"example.org/wait"})
	mustApply(t, c, "vnf-1", stuck)
	deleteForeign(t, c, live)
	_, err = c.EnsureNamespace(t.Context(), ns, nf.DefaultProject)
	wantKind(t, err, nf.Busy)
	_, err = c.Apply(t.Context(), instance("vnf-1"), objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}`))
	wantKind(t, err, nf.Busy)
	stuck.SetFinalizers([]string{})
	_, _ = c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{stuck}) // let it go
}

func TestNamespaces(t *testing.T) {
	c, ns := sandbox(t)
	want := map[string]nf.Namespace{ns: {Created: true, Project: nf.DefaultProject}, "kube-system": {}}
	for _, names := range [][]string{{ns, "kube-system", ns + "-not"}, {ns}, {ns + "-not"}} {
		got, err := c.Namespaces(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]nf.Namespace{}
		for _, name := range names {
			if is, there := want[name]; there {
				all[name] = is
			}
		}
		diff(t, "those that exist, and who they were made for", all, got)
	}
}

func TestEnsureNamespaceRace(t *testing.T) {
	r := clustertest.NewRecorder(t)
	c, ns := openAt(t, r.Kubeconfig()), clustertest.Namespace(t)
	r.Fail(clustertest.Times(1, func(q clustertest.Request) bool { return q.Method == "POST" }), clustertest.Lose)
	if _, err := c.EnsureNamespace(t.Context(), ns, nf.DefaultProject); err != nil {
		t.Errorf("who finds the namespace made in the meantime is content: %v", err)
	}
}

func TestRemoveNamespace(t *testing.T) {
	c, ns := sandbox(t)
	// A pod set that outlives nothing, and an object of another owner.
	replicaSet := objects(t, "vnf-1", ns, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 1,
		selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`)
	made := mustApply(t, c, "vnf-1", replicaSet...)
	foreign := unlabelled(configMap(t, "x", ns, "foreign", "1"))
	foreignApply(t, c, "kubectl", foreign)
	await(t.Context(), t, c, "vnf-1", made, nf.Current)

	kept, err := c.RemoveNamespace(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "what somebody made is in the way; its dependents and the cluster's own are not", append(refs(foreign), refs(replicaSet...)...), kept)

	if _, err := c.Delete(t.Context(), instance("vnf-1"), refs(replicaSet...)); err != nil {
		t.Fatal(err)
	}
	await(t.Context(), t, c, "vnf-1", made, nf.Absent)
	deleteForeign(t, c, foreign)
	kept, err = c.RemoveNamespace(t.Context(), ns)
	if err != nil || len(kept) > 0 {
		t.Fatalf("an empty namespace is removed: kept %v, %v", kept, err)
	}
	if live := get(t, c, nf.Ref{Version: "v1", Kind: "Namespace", Name: ns}); live != nil {
		t.Errorf("the namespace is still there: %v", live.Object["status"])
	}
	if kept, err = c.RemoveNamespace(t.Context(), ns); err != nil || kept != nil {
		t.Errorf("repeating it is harmless: %v, %v", kept, err)
	}
}

func TestRemoveNamespaceThatChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  clustertest.Fault
	}{
		"Lost":    {"the deletion was carried out, so it is another version that is deleted again", clustertest.Lose},
		"Changed": {"somebody changed it between the look and the deletion", clustertest.Status(409)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			r.Fail(clustertest.Times(1, func(q clustertest.Request) bool {
				return q.Method == "DELETE" && q.Path == "/api/v1/namespaces/"+ns
			}), tc.fault)
			if kept, err := c.RemoveNamespace(t.Context(), ns); err != nil || kept != nil {
				t.Errorf("%s: kept %v, %v", tc.reason, kept, err)
			}
			if live := get(t, c, nf.Ref{Version: "v1", Kind: "Namespace", Name: ns}); live != nil {
				t.Errorf("%s: the namespace is still there: %v", tc.reason, live.Object["status"])
			}
		})
	}
}

// TestRemoveNamespaceComparesGroups has custom resources whose kinds and names are
// those of objects that every cluster keeps in a namespace.
func TestRemoveNamespaceComparesGroups(t *testing.T) {
	c, ns := sandbox(t)
	alike := map[string]struct{ reason, name string }{
		"Event":          {"an event of another group belongs to a user", "a"},
		"Lease":          {"so does a lease", "a"},
		"Endpoints":      {"so do endpoints", "a"},
		"EndpointSlice":  {"so does a slice of them", "a"},
		"ServiceAccount": {"only the core group has a default service account", "default"},
		"ConfigMap":      {"only the core group has the root CA", "kube-root-ca.crt"},
	}
	var definitions, customs []*unstructured.Unstructured
	for kind, is := range alike {
		plural := strings.ToLower(kind) + "s"
		definition, custom, _ := strings.Cut(strings.NewReplacer("Gizmo", kind, "gizmos", plural, "name: g}", "name: "+is.name+"}").Replace(definition(ns+".test", "Namespaced")), "---")
		definitions = append(definitions, objects(t, "vnf-1", "", definition)...)
		customs = append(customs, objects(t, "vnf-1", ns, custom)...)
	}
	made := mustApply(t, c, "vnf-1", definitions...)
	t.Cleanup(func() {
		if _, err := c.Delete(context.WithoutCancel(t.Context()), instance("vnf-1"), refs(definitions...)); err != nil {
			t.Error(err)
		}
	})
	await(t.Context(), t, c, "vnf-1", made, nf.Current)
	mustApply(t, c, "vnf-1", customs...)
	mustApply(t, c, "vnf-1", objects(t, "vnf-1", ns, `
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: own}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: own}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own}, addressType: IPv4, endpoints: []}
---
{apiVersion: v1, kind: Event, metadata: {name: own}, involvedObject: {kind: Pod, namespace: `+ns+`, name: x}}`)...)

	kept, err := c.RemoveNamespace(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range customs {
		if !slices.Contains(kept, nf.RefOf(u)) {
			t.Errorf("%s: %v is not kept", alike[u.GetKind()].reason, nf.RefOf(u))
		}
	}
	if len(kept) > len(customs) {
		t.Errorf("objects of the cluster itself do not keep a namespace: %v", kept)
	}
	for _, u := range customs {
		deleteForeign(t, c, u)
	}
	if kept, err = c.RemoveNamespace(t.Context(), ns); err != nil || kept != nil {
		t.Errorf("a namespace with objects of the cluster itself alone is removed: %v, %v", kept, err)
	}
}

func TestRemoveNamespaceKeeps(t *testing.T) {
	c, r, ns := recorded(t)
	heal := r.Fail(func(q clustertest.Request) bool {
		return q.Method == "GET" && q.Path == "/api/v1/namespaces/"+ns+"/secrets"
	}, clustertest.Status(403))
	_, err := c.RemoveNamespace(t.Context(), ns)
	wantKind(t, err, nf.Failed)
	heal()
	for _, name := range []string{"default", "not-there-" + ns} {
		if kept, err := c.RemoveNamespace(t.Context(), name); kept != nil || err != nil {
			t.Errorf("namespace %s is not ours and is left alone: %v, %v", name, kept, err)
		}
	}
	for _, q := range r.Requests() {
		if q.Method == "DELETE" {
			t.Errorf("%v was sent", q)
		}
	}
}

// openRegion opens the sandbox as a region with an id.
func openRegion(t *testing.T, id string, kubeconfig []byte) *Cluster {
	t.Helper()
	c, err := local(t).Open(id, accessTo(t, kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// TestNamespaceOfTwoRegions has two regions that are one cluster.
func TestNamespaceOfTwoRegions(t *testing.T) {
	name := clustertest.Namespace(t)
	east, west := openRegion(t, "east", clustertest.Kubeconfig(t)), openRegion(t, "west", clustertest.Kubeconfig(t))
	ensure := func(c *Cluster) error {
		_, err := c.EnsureNamespace(t.Context(), name, nf.DefaultProject)
		return err
	}
	remove := func(c *Cluster) error {
		kept, err := c.RemoveNamespace(t.Context(), name)
		if len(kept) > 0 {
			t.Errorf("the namespace holds %v", kept)
		}
		return err
	}
	steps := []struct {
		reason string
		do     func(*Cluster) error
		region *Cluster
		stays  bool
	}{
		{"one region creates it", ensure, east, true},
		{"the other finds it", ensure, west, true},
		{"the other uses it", remove, east, true},
		{"a repetition changes nothing", remove, east, true},
		{"the first one uses it again", ensure, east, true},
		{"the region that created it uses it", remove, west, true},
		{"no other region uses it any longer", remove, east, false},
		{"there is nothing to remove", remove, west, false},
	}
	for _, s := range steps {
		if err := s.do(s.region); err != nil {
			t.Fatalf("%s: %v", s.reason, err)
		}
		live := get(t, east, nf.Ref{Version: "v1", Kind: "Namespace", Name: name})
		if (live != nil) != s.stays {
			t.Fatalf("%s: the namespace exists: %t, want %t", s.reason, live != nil, s.stays)
		}
	}
}

// TestNamespaceLeftWithContents has a region that leaves a namespace which is not empty. It
// no longer counts as a user.
func TestNamespaceLeftWithContents(t *testing.T) {
	name := clustertest.Namespace(t)
	east, west := openRegion(t, "east", clustertest.Kubeconfig(t)), openRegion(t, "west", clustertest.Kubeconfig(t))
	ensure := func(c *Cluster) {
		t.Helper()
		if _, err := c.EnsureNamespace(t.Context(), name, nf.DefaultProject); err != nil {
			t.Fatal(err)
		}
	}
	ensure(east)
	foreign := unlabelled(configMap(t, "x", name, "foreign", "1"))
	foreignApply(t, east, "kubectl", foreign)
	for range 2 {
		if kept, err := east.RemoveNamespace(t.Context(), name); err != nil || len(kept) != 1 {
			t.Fatalf("it holds %v, %v", kept, err)
		}
	}
	ensure(west)
	deleteForeign(t, west, foreign)
	if kept, err := west.RemoveNamespace(t.Context(), name); err != nil || len(kept) > 0 {
		t.Fatalf("it holds %v, %v", kept, err)
	}
	if live := get(t, west, nf.Ref{Version: "v1", Kind: "Namespace", Name: name}); live != nil {
		t.Errorf("the namespace still exists: %v", live.GetAnnotations())
	}
}

// TestNamespaceTakenDuringRemoval has another region that begins to use the namespace when
// the removal has found that it has no users.
func TestNamespaceTakenDuringRemoval(t *testing.T) {
	name := clustertest.Namespace(t)
	r := clustertest.NewRecorder(t)
	east, west := openRegion(t, "east", r.Kubeconfig()), openRegion(t, "west", clustertest.Kubeconfig(t))
	if _, err := east.EnsureNamespace(t.Context(), name, nf.DefaultProject); err != nil {
		t.Fatal(err)
	}
	taken := false
	r.Fail(func(q clustertest.Request) bool {
		if q.Method == "DELETE" && !taken {
			taken = true
			if _, err := west.EnsureNamespace(t.Context(), name, nf.DefaultProject); err != nil {
				t.Error(err)
			}
		}
		return false
	}, clustertest.Lose)
	if kept, err := east.RemoveNamespace(t.Context(), name); err != nil || kept != nil {
		t.Errorf("a region that others share the namespace with leaves it: kept %v, %v", kept, err)
	}
	live := get(t, west, nf.Ref{Version: "v1", Kind: "Namespace", Name: name})
	if !taken || live == nil || live.GetDeletionTimestamp() != nil {
		t.Errorf("the namespace was taken: %t, and is %v; it must exist", taken, live)
	}
}

// TestNamespaceThatMayNotBeChanged has an account that may create and delete namespaces, but
// not change them.
func TestNamespaceThatMayNotBeChanged(t *testing.T) {
	name := clustertest.Namespace(t)
	r := clustertest.NewRecorder(t)
	east, west := openRegion(t, "east", clustertest.Kubeconfig(t)), openRegion(t, "west", r.Kubeconfig())
	r.Fail(func(q clustertest.Request) bool { return q.Method == "PATCH" }, clustertest.Status(403))
	for _, c := range []*Cluster{east, west} {
		if is, err := c.EnsureNamespace(t.Context(), name, nf.DefaultProject); err != nil || !is.Created {
			t.Errorf("the namespace is %+v, %v", is, err)
		}
	}
	if kept, err := west.RemoveNamespace(t.Context(), name); err != nil || kept != nil {
		t.Errorf("the other region uses it: %v, %v", kept, err)
	}
	if kept, err := east.RemoveNamespace(t.Context(), name); err != nil || kept != nil || get(t, east, nf.Ref{Version: "v1", Kind: "Namespace", Name: name}) != nil {
		t.Errorf("the last region known removes it: %v, %v", kept, err)
	}
}

// TestEnsureNamespaceFails has an API server that does not allow a request, or is away.
func TestEnsureNamespaceFails(t *testing.T) {
	cases := map[string]struct {
		reason, method string
		fault          clustertest.Fault
		want           nf.Kind
	}{
		"Forbidden read":     {"the account may not read it", "GET", clustertest.Status(403), nf.Failed},
		"Forbidden creation": {"the account may not create it", "POST", clustertest.Status(403), nf.Failed},
		"Unavailable":        {"the API server is away", "GET", clustertest.Status(503), nf.Unreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := clustertest.NewRecorder(t)
			c, ns := openAt(t, r.Kubeconfig()), clustertest.Namespace(t)
			r.Fail(func(q clustertest.Request) bool {
				return q.Method == tc.method && strings.HasPrefix(q.Path, "/api/v1/namespaces")
			}, tc.fault)
			_, err := c.EnsureNamespace(t.Context(), ns, nf.DefaultProject)
			if err == nil || nf.KindOf(err) != tc.want {
				t.Errorf("%s: the error is of kind %q: %v", tc.reason, nf.KindOf(err), err)
			}
		})
	}
}
