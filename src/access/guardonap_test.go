package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMayOfONAP checks the permissions that ONAP's API asks for itself.
func TestMayOfONAP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who                   string
		create, change, remove, write nf.Kind // Internal: allowed
	}{
		"Operator":  {"a project's operator may change its instances, and creates none in the default project", "operator-a-east", nf.Forbidden, nf.Internal, nf.Internal, nf.Forbidden},
		"Other":     {"instances of another project stay as they are", "operator-b", nf.Forbidden, nf.Forbidden, nf.Forbidden, nf.Forbidden},
		"Viewer":    {"reading is not changing", "viewer-all", nf.Forbidden, nf.Forbidden, nf.Forbidden, nf.Forbidden},
		"Admin":     {"an administrator may do everything", "admin-all", nf.Internal, nf.Internal, nf.Internal, nf.Internal},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated, nf.Unauthenticated, nf.Unauthenticated, nf.Unauthenticated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := h.as(t, tc.who)
			in := nf.Instance{ID: vnf("a", accesstest.East), Project: "a", Region: accesstest.East}
			for what, got := range map[string]struct {
				err  error
				want nf.Kind
			}{
				"create": {h.ONAP.MayCreateInstance(ctx, accesstest.East), tc.create}, "change": {h.ONAP.MayChangeInstance(ctx, in), tc.change},
				"remove": {h.ONAP.MayRemoveInstance(ctx, in), tc.remove}, "write": {h.ONAP.MayWriteRegion(ctx, accesstest.East), tc.write},
			} {
				if (got.err == nil) != (got.want == nf.Internal) || got.err != nil && nf.KindOf(got.err) != got.want {
					t.Errorf("%s: %s: %v, want %s", tc.reason, what, got.err, got.want)
				}
			}
		})
	}
	ctx, trail := nf.WithTrail(h.as(t, "admin-all"))
	if err := h.ONAP.MayChangeInstance(ctx, nf.Instance{ID: "vnf-1", Region: accesstest.East}); err != nil {
		t.Fatal(err)
	}
	var entry nf.AuditEntry
	trail.Tell(&entry)
	want := nf.AuditEntry{Permission: nf.ChangeInstance, Project: nf.DefaultProject, Region: accesstest.East, Subjects: []string{"vnf-1"}}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("the audit entry names the instance (-want +got):\n%s", diff)
	}
}

func TestVisibleObjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		kind        nf.Kind // Internal: allowed
		want        []string
	}{
		"Tenant":    {"an identity sees the objects of its instances in the region", "viewer-a-east", nf.Internal, []string{"vnf-a-east"}},
		"Viewer":    {"only of that region, and none without an owner", "viewer-all", nf.Internal, []string{"vnf-a-east", "vnf-b-east"}},
		"Admin":     {"an identity that may register the region sees all", "admin-all", nf.Internal, []string{"", "gone", "vnf-a-east", "vnf-a-west", "vnf-b-east"}},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated, nil},
		"None":      {"an identity that may not see the region", "operator-west", nf.Forbidden, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			visible, err := h.ONAP.VisibleObjects(h.as(t, tc.who), accesstest.East)
			if (err == nil) != (tc.kind == nf.Internal) || err != nil && nf.KindOf(err) != tc.kind {
				t.Fatalf("%s: %v, want %s", tc.reason, err, tc.kind)
			}
			var got []string
			for _, owner := range []string{"", "gone", "vnf-a-east", "vnf-a-west", "vnf-b-east"} {
				if err != nil {
					continue
				}
				if shown, err := visible(owner); err != nil {
					t.Error(err)
				} else if shown {
					got = append(got, owner)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
