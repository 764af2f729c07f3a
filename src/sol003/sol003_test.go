package sol003_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestLife follows a VNF from its creation to its deletion.
func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		ctx, id := t.Context(), create(t, m)
		wantNotices := func(reason string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, notices(t, m)); diff != "" {
				t.Errorf("%s: the notices (-want +got):\n%s", reason, diff)
			}
		}
		wantNotices("created", "VnfIdentifierCreationNotification")
		if _, err := w.packages(w.kv).Remove(ctx, "one"); nf.ReasonOf(err) != nf.ReasonHeld {
			t.Errorf("the package of a VNF is not held: %v", err)
		}
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, instantiate) })
		wantNotices("instantiated", "INSTANTIATE STARTING", "INSTANTIATE PROCESSING", "INSTANTIATE COMPLETED")
		v := get(t, m, id)
		want := &nf.InstantiatedVNF{
			Flavor: "simple", Region: "edge", Namespace: "apps", Scale: map[string]int{"front": 0}, MaxScale: map[string]int{"front": 2},
			VNFCs: []nf.VNFC{{VDU: "VDU1", Resource: "web-01", UID: "web-01", Workload: "Deployment"}}, Files: []string{"Files/kubernetes/web.yaml"}, Params: instantiate.Extra,
		}
		if diff := cmp.Diff(want, v.Instantiated); diff != "" || v.Occurrence != "" || v.VIMs["default"].Region != "edge" {
			t.Errorf("the VNF (-want +got):\n%s%+v", diff, v)
		}
		if len(o.VNFCs) != 1 || o.VNFCs[0].Change != nf.VNFCAdded || !o.CanUndo || o.Failure != nil {
			t.Errorf("the occurrence is %+v", o)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", Steps: 2}) })
		if in := get(t, m, id).Instantiated; in.Scale["front"] != 2 || len(in.VNFCs) != 3 {
			t.Errorf("after scaling: %+v", in)
		}
		o = do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Heal(ctx, id, nf.HealVNFRequest{VNFCs: []string{"VDU1-web-02"}})
		})
		if len(o.VNFCs) != 2 {
			t.Errorf("a heal replaces one component: %+v", o.VNFCs)
		}
		o = do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{In: true, Aspect: "front"})
		})
		if len(o.VNFCs) != 1 || o.VNFCs[0].Change != nf.VNFCRemoved {
			t.Errorf("a scale in removes one component: %+v", o.VNFCs)
		}
		notices(t, m)
		name := "router-2"
		o = do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Modify(ctx, id, nf.ModifyVNFRequest{Name: &name, Metadata: map[string]any{"a": "b"}})
		})
		wantNotices("modified", "MODIFY_INFO PROCESSING", "MODIFY_INFO COMPLETED")
		if string(o.Changed) != `{"metadata":{"a":"b"},"vnfInstanceName":"router-2"}` {
			t.Errorf("the changes are %s", o.Changed)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2"})
		})
		if v = get(t, m, id); v.Package != "two" || v.VNFD.ID != "vnfd-2" || v.Name != "router-2" {
			t.Errorf("after the change of the package: %+v", v)
		}
		_, err := w.packages(w.kv).Remove(ctx, "one")
		must(t, err)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Connect(ctx, id, nf.ConnectVNFRequest{Networks: []nf.Attachment{{Network: "oam", Workload: "web"}}})
		})
		wantKind(t, "an instantiated VNF is not deleted", m.Delete(ctx, id), nf.Conflict)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		if v = get(t, m, id); v.Instantiated != nil || len(w.engine.instances) > 0 {
			t.Errorf("after the termination: %+v", v)
		}
		notices(t, m)
		must(t, m.Delete(ctx, id))
		wantNotices("deleted", "VnfIdentifierDeletionNotification")
		_, err = w.packages(w.kv).Remove(ctx, "two")
		must(t, err)
		_, err = m.VNF(ctx, id)
		wantKind(t, "a deleted VNF", err, nf.NotFound)
		if _, err = m.Occurrence(ctx, o.ID); err != nil {
			t.Errorf("an occurrence outlives its VNF: %v", err)
		}
	})
}

// TestTerminationTypes terminates VNFs in each way.
func TestTerminationTypes(t *testing.T) {
	cases := map[string]struct {
		reason  string
		request nf.TerminateVNFRequest
		want    *time.Duration
	}{
		"Graceful":        {"pods have their own grace periods", nf.TerminateVNFRequest{}, nil},
		"GracefulTimeout": {"but not longer than the request says", nf.TerminateVNFRequest{Grace: 30 * time.Second}, new(30 * time.Second)},
		"Forceful":        {"pods are killed, whatever the timeout is", nf.TerminateVNFRequest{Forceful: true, Grace: 30 * time.Second}, new(time.Duration(0))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id := prepared(t, m, termination)
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(t.Context(), id, tc.request) })
				if diff := cmp.Diff(tc.want, w.engine.grace); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
