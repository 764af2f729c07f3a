package access_test

import (
	"context"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
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

// TestPreviewsInRegions makes dry runs for a caller who reads both regions, and may
// instantiate in one. Templates find Secrets only if every region in question is that one.
func TestPreviewsInRegions(t *testing.T) {
	t.Parallel()
	rules, err := access.New(access.Config{File: written(t, `grants:
- {subjects: ["keystone:ann", "keystone:bob"], role: viewer, projects: ["*"], regions: ["*"]}
- {subjects: ["keystone:ann"], role: operator, projects: [a], regions: [east]}
- {subjects: ["keystone:bob"], role: operator, projects: [a], regions: [east, west]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	h, kept := guarded(t, a), &lookups{}
	services := access.NewServices(h.Guarded, kept)
	instance := func(ctx context.Context, region string, among ...string) (bool, error) {
		req := nf.InstantiateRequest{Spec: nf.Spec{Package: "pkg-a"}, Project: "a", Region: region}
		if region == "" {
			req.Placement = &nf.Placement{Regions: among}
		}
		_, err := h.Instances.PreviewInstantiate(ctx, req)
		return h.world.secrets, err
	}
	member := func(name, region string) nf.ServiceMember {
		m := vpnMember(name)
		if m.Region = region; region == "" {
			m.Placement = &nf.Placement{}
		}
		return m
	}
	cases := map[string]struct {
		reason  string
		preview func(ctx context.Context) (bool, error)
		ann     bool
	}{
		"East":   {"the region is named", func(ctx context.Context) (bool, error) { return instance(ctx, "east") }, true},
		"West":   {"so is one that is only read", func(ctx context.Context) (bool, error) { return instance(ctx, "west") }, false},
		"Placed": {"a dry run considers all regions that are read", func(ctx context.Context) (bool, error) { return instance(ctx, "") }, false},
		"Among":  {"or those that the request names", func(ctx context.Context) (bool, error) { return instance(ctx, "", "east") }, true},
		"Create": {"each member is in the region", func(ctx context.Context) (bool, error) { return kept.create(ctx, services, member("fw", "east")) }, true},
		"CreateWest": {"one is not", func(ctx context.Context) (bool, error) {
			return kept.create(ctx, services, member("fw", "east"), member("dns", "west"))
		}, false},
		"CreatePlaced": {"one may be anywhere", func(ctx context.Context) (bool, error) { return kept.create(ctx, services, member("fw", "")) }, false},
		"Change":       {"no member is added", func(ctx context.Context) (bool, error) { return kept.change(ctx, services, member("fw", "east")) }, true},
		"Add": {"a member is added elsewhere", func(ctx context.Context) (bool, error) {
			return kept.change(ctx, services, member("fw", "east"), member("dns", "west"))
		}, false},
	}
	for name, tc := range cases {
		for who, want := range map[string]bool{"ann": tc.ann, "bob": true} {
			got, err := tc.preview(nf.WithIdentity(t.Context(), nf.Identity{Kind: "keystone", Name: who}))
			if err != nil || got != want {
				t.Errorf("%s: %s: %s finds Secrets: %t, want %t, %v", name, tc.reason, who, got, want, err)
			}
		}
	}
}

// TestInvalidChangeLooksUpNothing adds a member with a placement in a change that is invalid.
func TestInvalidChangeLooksUpNothing(t *testing.T) {
	t.Parallel()
	h, kept := newHouse(t), &lookups{secrets: true}
	found, err := kept.change(h.as(t, "admin-all"), access.NewServices(h.Guarded, kept), nf.ServiceMember{Name: "not a name", Placement: &nf.Placement{}})
	if found || err != nil {
		t.Errorf("its templates find Secrets: %t, %v", found, err)
	}
}

// lookups keeps the network service vpn, and notes whether a preview may look up Secrets.
type lookups struct {
	serviceKeeper

	secrets bool
}

func (l *lookups) PreviewCreate(_ context.Context, req nf.ServiceRequest) ([]nf.MemberPreview, error) {
	l.secrets = req.Secrets
	return nil, nil
}

func (l *lookups) PreviewChange(ctx context.Context, id string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error) {
	l.secrets = req.Secrets
	return l.serviceKeeper.PreviewChange(ctx, id, req)
}

func (l *lookups) create(ctx context.Context, s access.Services, members ...nf.ServiceMember) (bool, error) {
	in := vpn()
	in.Content.Members = members
	_, err := s.PreviewCreate(ctx, nf.ServiceRequest{Service: in})
	return l.secrets, err
}

func (l *lookups) change(ctx context.Context, s access.Services, members ...nf.ServiceMember) (bool, error) {
	_, err := s.PreviewChange(ctx, "vpn", nf.ServiceChangeRequest{Edit: func(in *nf.NetworkService) error {
		in.Content.Members = members
		return nil
	}})
	return l.secrets, err
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
