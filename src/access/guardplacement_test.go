package access_test

import (
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestPlacement considers the regions that the caller sees, and uses those in which it
// may instantiate. The operation tells only of these.
func TestPlacement(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, who, pkg string
		kind             nf.Kind                       // of the error
		judged           map[string]nf.PlacementReason // of the regions that are seen; nil: it fails
	}{
		"one region": {"the other region is hidden", "operator-a-east", "pkg-a", 0, map[string]nf.PlacementReason{"east": ""}},
		"all":        {"an administrator uses all regions", "admin-all", "pkg-a", 0, map[string]nf.PlacementReason{"east": "", "west": ""}},
		"viewer":     {"a viewer may not instantiate anywhere", "viewer-a-east", "pkg-a", nf.Forbidden, nil},
		"package":    {"a package of another project is hidden", "operator-a-east", "pkg-b", nf.NotFound, nil},
		"anonymous":  {"a request without identity", accesstest.Anonymous, "pkg-a", nf.Unauthenticated, nil},
	}
	for name, tc := range cases {
		h := newHouse(t)
		ctx := h.as(t, tc.who)
		op, err := h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: tc.pkg}, Project: "a", Placement: &nf.Placement{}})
		if tc.judged == nil {
			if nf.KindOf(err) != tc.kind || len(h.world.done) > 0 {
				t.Errorf("%s: %s: %v, want %s", name, tc.reason, err, tc.kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
			continue
		}
		for _, region := range []string{"east", "west"} {
			reason, wanted := tc.judged[region]
			seen, refused, err := h.world.placement.Permit(ctx, region)
			if err != nil || seen != wanted || seen && refused != reason {
				t.Errorf("%s: %s: region %s: %v %q, %v", name, tc.reason, region, seen, refused, err)
			}
			listed := slices.ContainsFunc(op.Instance.Placed.Candidates, func(c nf.Candidate) bool { return c.Region == region })
			if listed != wanted {
				t.Errorf("%s: %s: the operation lists %+v", name, tc.reason, op.Instance.Placed.Candidates)
			}
		}
		if hidden := len(tc.judged) < 2; hidden != (op.Instance.Placed.Omitted == 0) {
			t.Errorf("%s: %s: %d candidates are omitted", name, tc.reason, op.Instance.Placed.Omitted)
		}
	}
}

// TestPlacementPermission names a region that the caller sees and may not use.
func TestPlacementPermission(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := h.as(t, "admin-all")
	if _, err := h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "pkg-a"}, Project: "a", Placement: &nf.Placement{}}); err != nil {
		t.Fatal(err)
	}
	viewer := h.as(t, "viewer-a-east")
	if seen, refused, err := h.world.placement.Permit(viewer, "east"); !seen || refused != nf.PlacementPermission || err != nil {
		t.Errorf("a viewer: %v %q, %v", seen, refused, err)
	}
}
