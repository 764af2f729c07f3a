package notify_test

import (
	"context"
	"crypto/rand"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// watchedCluster is a source over the sandbox's API server: one instance, in one
// region.
type watchedCluster struct{ watch *cluster.SharedWatch }

func (watchedCluster) Target(_ context.Context, instance string) (notify.Target, error) {
	if instance != "notified" {
		return notify.Target{}, nf.E(nf.NotFound, "get", "VNF instance "+instance, nil)
	}
	return notify.Target{Region: "east", Kinds: []nf.Ref{configMaps, {Version: "v1", Kind: "Secret"}, {Group: "example.org", Version: "v1", Kind: "Gadget"}}}, nil
}

func (s watchedCluster) Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[notify.Event, error] {
	return func(yield func(notify.Event, error) bool) {
		for e, err := range s.watch.Subscribe(ctx, region, kind) {
			if !yield(notify.Event(e), err) {
				return
			}
		}
	}
}

// TestOverRealRegion tells a receiver of objects of a real API server.
func TestOverRealRegion(t *testing.T) {
	t.Parallel()
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(cluster.PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()}).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	namespace := clustertest.Namespace(t)
	if _, err := c.EnsureNamespace(t.Context(), namespace, nf.DefaultProject); err != nil {
		t.Fatal(err)
	}
	owner := nf.Subject{Kind: nf.InstanceSubject, ID: "notified"}
	apply := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		u.SetLabels(map[string]string{nf.OwnerLabel: owner.ID})
		u.SetNamespace(namespace)
		if _, err := c.Apply(t.Context(), owner, []*unstructured.Unstructured{u}); err != nil {
			t.Fatal(err)
		}
	}
	mail := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut off is not what is wanted
		mail <- string(body)
	}))
	t.Cleanup(receiver.Close)
	apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notified"}, "data": {"k": "before"}}`)
	ready, once := make(chan struct{}), sync.Once{}
	n, err := notify.New(notify.Config{
		Config: outbox.Config{
			KV: storetest.Failing{KV: memory.New(), Lose: func(method, key string) error {
				if method == "Put" && strings.HasPrefix(key, "baselines/") {
					once.Do(func() { close(ready) })
				}
				return nil
			}},
			NewID: rand.Text,
			Hosts: hosts(t, "127.0.0.1"),
		},
		Source: watchedCluster{cluster.NewSharedWatch(func(context.Context, string) (*cluster.Cluster, error) { return c, nil })},
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = n.Run(t.Context()) }) // it always returns nil
	t.Cleanup(running.Wait)
	if _, err := n.Subscribe(t.Context(), nf.Subscription{Instance: "notified", Name: "s", Callback: receiver.URL}); err != nil {
		t.Fatal(err)
	}
	<-ready
	want := func(reason string, parts ...string) {
		t.Helper()
		got := <-mail
		for _, part := range append(parts, `{"instance-id":"notified","subscription-name":"s","metadata":{},"resource-changes":{"created":[`) {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s does not say %s", reason, got, part)
			}
		}
		if strings.Contains(got, "managedFields") || strings.Contains(got, "aHVudGVyMg==") {
			t.Errorf("%s: %s says too much", reason, got)
		}
	}
	apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notified"}, "data": {"k": "after"}}`)
	want("a change", `"created":[],"deleted":[],"modified":[{"name":"notified","GVK":{"Group":"","Version":"v1","Kind":"ConfigMap"},"status":{"apiVersion":"v1","data":{"k":"after"}`)
	apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "notified"}, "data": {"k": "aHVudGVyMg=="}}`)
	want("a Secret", `"created":[{"name":"notified"`, `"data":{"k":""}`)
	if _, err := c.Delete(t.Context(), owner, []nf.Ref{{Version: "v1", Kind: "Secret", Namespace: namespace, Name: "notified"}}); err != nil {
		t.Fatal(err)
	}
	var last string
	for !strings.Contains(last, `"deleted":[{"name":"notified","GVK":{"Group":"","Version":"v1","Kind":"Secret"}`) {
		last = <-mail // that it is on its way may come before
	}
	if _, err := c.Delete(t.Context(), owner, []nf.Ref{{Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "notified"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RemoveNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}
