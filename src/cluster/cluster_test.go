package cluster

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// sandbox opens the sandbox and makes a namespace in it.
func sandbox(t *testing.T) (c *Cluster, namespace string) {
	t.Helper()
	return openAt(t, clustertest.Kubeconfig(t)), newNamespace(t)
}

// recorded is sandbox behind a recorder.
func recorded(t *testing.T) (*Cluster, *clustertest.Recorder, string) {
	t.Helper()
	namespace := newNamespace(t)
	r := clustertest.NewRecorder(t)
	return openAt(t, r.Kubeconfig()), r, namespace
}

// local returns a pool for regions on this machine.
func local(t *testing.T) *Pool {
	t.Helper()
	return New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
}

func openAt(t *testing.T, kubeconfig []byte) *Cluster {
	t.Helper()
	c, err := local(t).Open("test", accessTo(t, kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := clustertest.Namespace(t)
	c := openAt(t, clustertest.Kubeconfig(t))
	if is, err := c.EnsureNamespace(t.Context(), namespace, nf.DefaultProject); err != nil || !is.Created {
		t.Fatalf("EnsureNamespace: %+v, %v", is, err)
	}
	return namespace
}

func instance(id string) nf.Subject { return nf.Subject{Kind: nf.InstanceSubject, ID: id} }

// inside are the bounds of an instance in a region that keeps no projects apart.
func inside(namespace string) nf.Bounds {
	return nf.Bounds{Namespace: namespace, Tenancy: nf.Tenancy{Whole: true}}
}

// objects reads YAML documents, puts the objects into the namespace unless it
// is empty, and gives them, and their pod templates, the owner's label.
func objects(t *testing.T, owner, namespace, text string) []*unstructured.Unstructured {
	t.Helper()
	out := clustertest.Documents(t, text)
	for _, u := range out {
		if namespace != "" {
			u.SetNamespace(namespace)
		}
		label(u, owner)
	}
	return out
}

func label(u *unstructured.Unstructured, owner string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[nf.OwnerLabel] = owner
	u.SetLabels(labels)
	if _, found, _ := unstructured.NestedMap(u.Object, "spec", "template", "metadata"); found {
		_ = unstructured.SetNestedField(u.Object, owner, "spec", "template", "metadata", "labels", nf.OwnerLabel)
	}
}

func configMap(t *testing.T, owner, namespace, name, value string) *unstructured.Unstructured {
	t.Helper()
	return objects(t, owner, namespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {key: "`+value+`"}}`)[0]
}

// foreignApply writes an object as another client than the service.
func foreignApply(t *testing.T, c *Cluster, manager string, u *unstructured.Unstructured) {
	t.Helper()
	ks, err := c.client.apis.kinds(t.Context(), gvksOf([]nf.Ref{nf.RefOf(u)}))
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(u.GroupVersionKind())
	a := application{client: c.client, target: target{nf.RefOf(u), k, true}, object: u}
	build, err := a.request(manager)
	if err != nil {
		t.Fatal(err)
	}
	if err := build().Param("force", "true").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// watcher is a client that does not go through what is tested.
func watcher(t *testing.T) dynamic.Interface {
	t.Helper()
	cfg, err := configure(accessTo(t, clustertest.Kubeconfig(t)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// get reads an object, or returns nil when it is not there.
func get(t *testing.T, c *Cluster, ref nf.Ref) *unstructured.Unstructured {
	t.Helper()
	ks, err := c.client.apis.kinds(t.Context(), gvksOf([]nf.Ref{ref}))
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(gvkOf(ref))
	u := &unstructured.Unstructured{}
	err = c.client.get(t.Context(), target{ref, k, true}, u)
	if nf.KindOf(c.client.region.failObject(t.Context(), "get", ref, err)) == nf.NotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// patchStatus writes an object's status as its controller would.
func patchStatus(t *testing.T, c *Cluster, path, status string) {
	t.Helper()
	err := c.client.verb(http.MethodPatch).SetHeader("Content-Type", string(types.MergePatchType)).AbsPath(path + "/status").Body([]byte(`{"status":` + status + `}`)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}

// actions is what was done to which name.
func actions(changes []nf.Change) map[string]nf.Action {
	out := map[string]nf.Action{}
	for _, c := range changes {
		out[c.Name] = c.Action
	}
	return out
}

func wantKind(t *testing.T, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Fatalf("error is %v (%v), want one of kind %v", err, nf.KindOf(err), kind)
	}
}

func diff(t *testing.T, reason string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

func mustApply(t *testing.T, c *Cluster, owner string, us ...*unstructured.Unstructured) []nf.Change {
	t.Helper()
	changes, err := c.Apply(t.Context(), instance(owner), us)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func refs(us ...*unstructured.Unstructured) []nf.Ref {
	out := make([]nf.Ref, len(us))
	for i, u := range us {
		out[i] = nf.RefOf(u)
	}
	return out
}

// await watches until every target has the status, and returns the last health
// of each by name.
func await(ctx context.Context, t *testing.T, c *Cluster, owner string, targets []nf.Change, want nf.Status) map[string]nf.Health {
	t.Helper()
	last := map[string]nf.Health{}
	for h, err := range c.Watch(ctx, instance(owner), targets) {
		if err != nil {
			t.Fatal(err)
		}
		last[h.Name] = h
		done := 0
		for _, l := range last {
			if l.Status == want {
				done++
			}
		}
		if done == len(targets) {
			return last
		}
	}
	t.Fatalf("the watch ended before all were %s: %v", want, last)
	return nil
}
