package clusterapi_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestReparent moves the Cluster of a region to another region.
func TestReparent(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		world  func(*world) // after the registration; w.moved is the new parent
		fails  nf.Kind      // 0: it does not
		has    string       // the region's credentials in the end
	}{
		"Moved":   {reason: "the Secret was copied", world: func(*world) {}, has: "admin-1"},
		"Rotated": {reason: "the Secret has changed in the meantime", world: func(w *world) { w.moved.rotate("admin-2") }, has: "admin-2"},
		"Absent":  {reason: "the new parent does not have the Cluster", world: func(w *world) { delete(w.moved.parent, "Cluster edge") }, fails: nf.Conflict},
		"Early":   {reason: "its Secret has not been copied yet", world: func(w *world) { delete(w.moved.parent, "Secret edge-kubeconfig") }, fails: nf.Unreachable},
		"Another": {reason: "it has a Cluster of this name, which is another cluster", world: func(w *world) { w.ca = "another" }, fails: nf.Conflict},
		"Plain": {
			reason: "the region is not made of a Cluster", fails: nf.Conflict,
			world: func(w *world) { w.regions["edge-1"] = nf.Region{ID: "edge-1"} },
		},
		"Gone": {reason: "there is no such region", world: func(w *world) { delete(w.regions, "edge-1") }, fails: nf.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			r := w.registrar(t)
			if err := r.Register(t.Context(), held, parent(func(w *nf.WorkloadCluster) { w.Credentials = nf.SecretCredentials })); err != nil {
				t.Fatal(err)
			}
			w.moved = newWorld()
			tc.world(w)
			for range 2 { // a repeated request changes nothing
				got, err := r.Reparent(t.Context(), "edge-1", "other")
				if tc.fails != 0 {
					if nf.KindOf(err) != tc.fails || len(w.sent) > 1 {
						t.Errorf("%s: %v", tc.reason, err)
					}
					continue
				}
				if err != nil || got.Parent.Region != "other" || got.Labels[nf.ParentRegionLabel] != "other" || string(got.Access.Certificate) != tc.has {
					t.Errorf("%s: the region has the parent %+v, the labels %v and the credentials %q: %v", tc.reason, got.Parent, got.Labels, got.Access.Certificate, err)
				}
			}
			if tc.fails != 0 {
				return
			}
			if err := r.Deregister(t.Context(), held, parent()); err != nil || len(w.regions) != 1 {
				t.Errorf("the instance in the former parent has deregistered the region: %v", err)
			}
		})
	}
}
