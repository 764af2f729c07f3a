package sriov_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestServer lets an API server with the definition of the operator check the objects of
// every network, and create them.
func TestServer(t *testing.T) {
	clustertest.Networks(t)
	text, err := os.ReadFile("testdata/crds/sriovnetworks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Serve(t, string(text))
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(cluster.PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()}).Open("test", access)
	if err != nil {
		t.Fatal(err)
	}
	served, err := c.Served(t.Context(), sriov.Driver{}.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	own := clustertest.Namespace(t)
	if _, err := c.EnsureNamespace(t.Context(), own, nf.DefaultProject); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		spec := networks[name].spec[:len(networks[name].spec)-1] + `, "operator_namespace": "` + own + `"}`
		n := nf.Network{ID: "test." + name, Name: name, Spec: normal(t, spec, nf.NetworkRegion{Served: served})}
		objects, err := sriov.Driver{}.Objects(n, own)
		if err != nil {
			t.Fatal(err)
		}
		owner := nf.Subject{Kind: nf.NetworkSubject, ID: n.ID}
		for _, o := range objects {
			render.Tag(o, owner)
		}
		if _, err := c.Preflight(t.Context(), owner, nf.Bounds{Namespace: own}, objects); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Apply(t.Context(), owner, objects); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, o := range objects { // the API server drops fields that the definition does not have
			wanted, _ := o.Object["spec"].(map[string]any)
			has, _ := clustertest.Get(t, o).Object["spec"].(map[string]any)
			for field := range wanted {
				if has[field] == nil {
					t.Errorf("%s: the API server has dropped %s", name, field)
				}
			}
		}
	}
}
