package ovn_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// region opens the sandbox with the definitions of all controllers, and creates a
// namespace.
func region(t *testing.T) (c *cluster.Cluster, namespace string) {
	t.Helper()
	clustertest.Networks(t)
	files, err := filepath.Glob("testdata/crds/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("the definitions are in %v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		clustertest.Serve(t, string(text))
	}
	pool := cluster.New(cluster.PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = pool.Open("test", access); err != nil {
		t.Fatal(err)
	}
	namespace = clustertest.Namespace(t)
	if _, err := c.EnsureNamespace(t.Context(), namespace, nf.DefaultProject); err != nil {
		t.Fatal(err)
	}
	return c, namespace
}

// TestServer lets an API server with the definitions of each controller check the
// objects of every network, create them, and delete them.
func TestServer(t *testing.T) {
	c, namespace := region(t)
	for i, name := range slices.Sorted(maps.Keys(networks)) {
		t.Run(name, func(t *testing.T) {
			own := fmt.Sprintf("%s-%d", namespace, i)
			n := nf.Network{ID: "test." + own, Name: own, Spec: normal(t, networks[name].spec, regions[networks[name].region])}
			objects, err := ovn.Driver{}.Objects(n, namespace)
			if err != nil {
				t.Fatal(err)
			}
			owner := nf.Subject{Kind: nf.NetworkSubject, ID: n.ID}
			for _, o := range objects {
				render.Tag(o, owner)
			}
			if _, err := c.Preflight(t.Context(), owner, nf.Bounds{Namespace: namespace, Tenancy: nf.Tenancy{Whole: true}}, objects); err != nil {
				t.Fatal(err)
			}
			changes, err := c.Apply(t.Context(), owner, objects)
			if err != nil || len(changes) != len(objects) {
				t.Fatalf("%d of %d objects: %v", len(changes), len(objects), err)
			}
			var refs []nf.Ref
			for _, change := range changes {
				refs = append(refs, change.Ref)
			}
			for _, o := range objects { // the API server drops fields that a definition does not have
				missing(t, o.GetKind(), o.Object["spec"], clustertest.Get(t, o).Object["spec"])
			}
			if _, err := c.Delete(t.Context(), owner, refs); err != nil {
				t.Error(err)
			}
		})
	}
}

// missing reports values that the API server has dropped.
func missing(t *testing.T, path string, want, got any) {
	t.Helper()
	m, isMap := want.(map[string]any)
	has, ok := got.(map[string]any)
	if isMap && ok {
		for name, v := range m {
			missing(t, path+"."+name, v, has[name])
		}
		return
	}
	if want != nil && got == nil {
		t.Errorf("the API server has dropped %s", path)
	}
}

// TestReady waits for the controller of a Subnet, and for a finalizer of it.
func TestReady(t *testing.T) {
	c, namespace := region(t)
	n := nf.Network{ID: "test." + namespace, Name: namespace, Spec: normal(t, `{"subnets": ["10.1.0.0/24"]}`, regions["kube-ovn"])}
	objects, err := ovn.Driver{}.Objects(n, namespace)
	if err != nil {
		t.Fatal(err)
	}
	subnet := objects[0]
	owner := nf.Subject{Kind: nf.NetworkSubject, ID: n.ID}
	render.Tag(subnet, owner)
	subnet.SetFinalizers([]string{"kubeovn.io/kube-ovn-controller"})
	changes, err := c.Apply(t.Context(), owner, []*unstructured.Unstructured{subnet})
	if err != nil {
		t.Fatal(err)
	}
	conditions := func(status string) {
		t.Helper()
		clustertest.Patch(t, subnet, "subnets", map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": status, "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		}}}, "status")
	}
	conditions("False")
	var deleted, freed bool
	for h, err := range c.Watch(t.Context(), owner, changes) {
		switch {
		case err != nil:
			t.Fatal(err)
		case h.Status == nf.InProgress:
			conditions("True")
		case h.Status == nf.Current && !deleted:
			deleted = true
			if _, err := c.Delete(t.Context(), owner, []nf.Ref{changes[0].Ref}); err != nil {
				t.Fatal(err)
			}
		case h.Status == nf.StatusDeleting && freed: // without finalizers, before it is gone
		case h.Status == nf.StatusDeleting:
			freed = true
			if !strings.Contains(h.Message, "kubeovn.io/kube-ovn-controller") {
				t.Errorf("the Subnet is going: %s", h.Message)
			}
			clustertest.Patch(t, subnet, "subnets", map[string]any{"metadata": map[string]any{"finalizers": nil}})
		case h.Status == nf.Absent && deleted:
			return
		default:
			t.Errorf("the Subnet is %s: %s", h.Status, h.Message)
		}
	}
	t.Error("the Subnet is not deleted")
}
