package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMayRegister checks which regions clusters of a new instance may become: those that
// the identity could register itself.
func TestMayRegister(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	request := nf.InstantiateRequest{Region: accesstest.East, Project: accesstest.ProjectA, Spec: nf.Spec{Package: pkg(accesstest.ProjectA)}}
	for identity, want := range map[string]bool{"admin-all": true, "admin-a": false} {
		ctx := h.as(t, identity)
		if _, err := h.Instances.Instantiate(ctx, request); err != nil || h.world.enroll == nil {
			t.Fatalf("%s: the engine is not told which regions may be registered: %v", identity, err)
		}
		if err := h.world.enroll(ctx, "edge"); (err == nil) != want || !want && nf.KindOf(err) != nf.Forbidden {
			t.Errorf("%s registers a region: %v", identity, err)
		}
	}
}

// TestTerminateWithAWorkloadRegion terminates an instance whose cluster became the region
// west.
func TestTerminateWithAWorkloadRegion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		identity string
		request  nf.TerminateRequest
		want     nf.Kind // 0: it may
		noted    nf.AuditEntry
	}{
		"All":     {"who may do everything may do this", "admin-all", nf.TerminateRequest{Cascade: true}, 0, nf.AuditEntry{Permission: nf.RemoveInstance, Project: accesstest.ProjectA, Region: accesstest.East}},
		"Project": {"without region:write, a region is not deregistered", "admin-a", nf.TerminateRequest{}, nf.Forbidden, nf.AuditEntry{Permission: nf.WriteRegion, Region: accesstest.West}},
		"Orphan":  {"it stays with its cluster", "admin-a", nf.TerminateRequest{Orphan: true}, 0, nf.AuditEntry{Permission: nf.RemoveInstance, Project: accesstest.ProjectA, Region: accesstest.East}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.world.more = append(h.world.more, nf.Instance{
				ID: "parent", Project: accesstest.ProjectA, Region: accesstest.East, Package: pkg(accesstest.ProjectA), State: nf.Ready,
				Workloads: []nf.WorkloadCluster{{Cluster: "edge", Region: accesstest.West}},
			})
			ctx, trail := nf.WithTrail(h.as(t, tc.identity))
			_, err := h.Instances.Terminate(ctx, "parent", tc.request)
			var noted nf.AuditEntry
			trail.Tell(&noted)
			if diff := cmp.Diff(tc.noted, noted, cmpopts.IgnoreFields(nf.AuditEntry{}, "Subjects", "Operation")); diff != "" {
				t.Errorf("%s: the audit entry (-want +got):\n%s", tc.reason, diff)
			}
			if tc.want == 0 && err != nil || tc.want != 0 && nf.KindOf(err) != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
