package clusterapi_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// TestResend resends the kubeconfig of a region, unless it is not the region's any longer.
func TestResend(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		world  func(*testing.T, *world)
		id     string
		fails  nf.Kind // 0: it does not
	}{
		"Present": {reason: "the credentials are the region's", world: func(*testing.T, *world) {}, id: "edge-1-0000000001"},
		"Absent":  {reason: "there is no such dead letter", world: func(*testing.T, *world) {}, id: "none", fails: nf.NotFound},
		"Gone":    {reason: "there is no such region", world: func(_ *testing.T, w *world) { delete(w.regions, "edge-1") }, id: "edge-1-0000000001", fails: nf.NotFound},
		"Another": {
			reason: "the region is another instance's by now", id: "edge-1-0000000001", fails: nf.NotFound,
			world: func(_ *testing.T, w *world) {
				p := parent()
				p.Instance = "vnf-2"
				w.regions["edge-1"] = nf.Region{ID: "edge-1", Parent: &p}
			},
		},
		"Former": {
			reason: "a receiver must not replace the present kubeconfig by a former one", id: "edge-1-0000000001", fails: nf.Conflict,
			world: func(t *testing.T, w *world) {
				w.rotate("admin-2")
				if err := w.registrar(t).Register(t.Context(), held, parent(func(w *nf.WorkloadCluster) { w.Credentials = nf.SecretCredentials })); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			r := w.registrar(t)
			if err := r.Register(t.Context(), held, parent()); err != nil {
				t.Fatal(err)
			}
			w.dead["edge-1-0000000001"] = outbox.Delivery{Request: w.sent[1], ID: "edge-1-0000000001"}
			tc.world(t, w)
			got, err := r.Resend(t.Context(), tc.id)
			if tc.fails != 0 {
				if nf.KindOf(err) != tc.fails || len(w.dead) != 1 {
					t.Errorf("%s: %v, %d dead letters", tc.reason, err, len(w.dead))
				}
				return
			}
			if err != nil || got.Region != "edge-1" || got.Instance != "vnf-1" || len(w.dead) > 0 {
				t.Errorf("%s: %s of %s: %v", tc.reason, got.Region, got.Instance, err)
			}
		})
	}
}
