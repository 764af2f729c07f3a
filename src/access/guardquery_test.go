package access_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestLists(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason                                   string
		who                                      string
		instances, operations, regions, packages []string
		users                                    []string // of region east
	}{
		"Stranger": {"an identity without grants sees no objects", "stranger", nil, nil, nil, nil, nil},
		"Tenant": {"a tenant sees the objects of its project in its regions, and these regions", "viewer-a-east",
			[]string{"vnf-a-east"}, []string{"op-a-east", "op-born-a-east", "op-end-a-east"}, []string{"east"}, []string{"pkg-a"}, []string{"vnf-a-east"}},
		"Site": {"the operator of a region sees all objects in it", "operator-west",
			[]string{"vnf-a-west", "vnf-b-west"}, []string{"op-a-west", "op-b-west"}, []string{"west"}, []string{"pkg-a", "pkg-b"}, nil},
		"All": {"a viewer of all projects also sees users that do not have a record yet", "viewer-all",
			[]string{"vnf-a-east", "vnf-a-west", "vnf-b-east", "vnf-b-west"}, []string{"op-a-east", "op-a-west", "op-b-east", "op-b-west", "op-born-a-east", "op-end-a-east"},
			[]string{"east", "west"}, []string{"pkg-a", "pkg-b"}, []string{"vnf-a-east", "vnf-b-east", "vnf-unborn"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := h.as(t, c.who)
			instances, err1 := h.Instances.Instances(ctx)
			operations, err2 := collected(h.Operations.OperationsFrom(ctx, "", nf.Cursor{}))
			regions, err3 := collected(h.Regions.RegionsFrom(ctx, nf.Cursor{}))
			packages, err4 := collected(h.Packages.PackagesFrom(ctx, nf.Cursor{}))
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
			got := [][]string{
				ids(instances, func(i nf.Instance) string { return i.ID }), ids(operations, func(o nf.Operation) string { return o.ID }),
				ids(regions, func(r nf.Region) string { return r.ID }), ids(packages, func(p nf.Package) string { return p.ID }),
			}
			if diff := cmp.Diff([][]string{c.instances, c.operations, c.regions, c.packages}, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
			if slices.ContainsFunc(regions, func(r nf.Region) bool { return r.ID == "east" }) {
				users, err := usersOf(ctx, h, nf.Holding{Region: "east"})
				if diff := cmp.Diff(c.users, users); diff != "" || err != nil {
					t.Errorf("%s: users of the region: %v (-want +got)\n%s", c.reason, err, diff)
				}
			} else if _, err := usersOf(ctx, h, nf.Holding{Region: "east"}); nf.KindOf(err) != nf.NotFound {
				t.Errorf("%s: users of a hidden region: %v", c.reason, err)
			}
		})
	}
	if _, err := h.Instances.Instances(t.Context()); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("a list without an identity: %v", err)
	}
}

func usersOf(ctx context.Context, h *house, of nf.Holding) (out []string, err error) {
	for user, err := range h.Regions.Users(ctx, of) {
		if err != nil {
			return nil, err
		}
		out = append(out, user.ID)
	}
	return out, nil
}

func TestEntries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, c := range map[string]struct {
		reason, who string
		want        []string
		kind        nf.Kind
	}{
		"Admin":     {"an admin of the whole service reads all entries", "admin-all", []string{"1 hidden", "2", "3", "4"}, 0},
		"Project":   {"an admin of a project reads its entries, but not which objects were hidden", "admin-a", []string{"1 not-found"}, 0},
		"Site":      {"an admin of a region reads its entries", "admin-east", []string{"1 not-found", "3"}, 0},
		"Viewer":    {"a viewer cannot read entries", "viewer-all", nil, nf.Forbidden},
		"Anonymous": {"an anonymous caller cannot read", accesstest.Anonymous, nil, nf.Unauthenticated},
	} {
		var got []string
		var failed error
		for e, err := range h.AuditLog.Entries(h.as(t, c.who), nf.AuditFilter{}) {
			if failed = err; err == nil {
				got = append(got, strings.TrimSpace(e.ID+" "+e.Outcome))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || c.kind != 0 && nf.KindOf(failed) != c.kind || c.kind == 0 && failed != nil {
			t.Errorf("%s: %s: %v, %v", name, c.reason, got, failed)
		}
	}
}

func TestTrail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, c := range map[string]struct {
		reason string
		who    string
		call   accesstest.Case
		want   nf.AuditEntry
		hidden bool
	}{
		"Change": {"a change records its permission and its operation", "operator-a-east", accesstest.Case{Call: accesstest.Call{Name: "Terminate"}, Project: "a", Region: "east"},
			nf.AuditEntry{Permission: nf.RemoveInstance, Project: "a", Region: "east", Subjects: []string{"vnf-a-east"}, Operation: "new-op"}, false},
		"Refused": {"a denied request records the missing permission", "viewer-a-east", accesstest.Case{Call: accesstest.Call{Name: "Upgrade"}, Project: "a", Region: "east"},
			nf.AuditEntry{Permission: nf.ChangeInstance, Project: "a", Region: "east", Subjects: []string{"vnf-a-east"}}, false},
		"Hidden": {"a request for a hidden object is recorded", "viewer-a-east", accesstest.Case{Call: accesstest.Call{Name: "Instance"}, Project: "b", Region: "west"},
			nf.AuditEntry{Permission: nf.ReadInstance, Project: "b", Region: "west"}, true},
	} {
		ctx, trail := nf.WithTrail(h.as(t, c.who))
		_ = h.make(ctx, c.call)
		var got nf.AuditEntry
		trail.Tell(&got)
		if diff := cmp.Diff(c.want, got); diff != "" || trail.Hidden() != c.hidden {
			t.Errorf("%s: %s: hidden %t (-want +got)\n%s", name, c.reason, trail.Hidden(), diff)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	h := guarded(t, access.Open())
	ctx := nf.WithIdentity(t.Context(), nf.Anonymous())
	for _, call := range accesstest.Calls() {
		for what, ctx := range map[string]context.Context{"anonymous": ctx, "an unknown caller": t.Context()} {
			if err := h.make(ctx, accesstest.Case{Call: call, Project: "b", Region: "west"}); err != nil {
				t.Errorf("%s by %s is denied although access is open: %v", call.Name, what, err)
			}
		}
	}
	_, content, err := h.Packages.Content(ctx, "pkg-b")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(content); string(text) != "content of pkg-b" {
		t.Errorf("the content is %q", text)
	}
}

func TestUploadReplaces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason string
		who    string
		as     nf.Package
		kind   nf.Kind
		done   string
	}{
		"New":      {"an upload into a project of the caller", "operator-a-east", nf.Package{ID: "fresh", Project: "a"}, 0, "upload fresh into a"},
		"Default":  {"an upload without a project goes into the default project", "operator-a-east", nf.Package{ID: "fresh"}, nf.Forbidden, ""},
		"Own":      {"a replaced package stays in its project", "operator-all", nf.Package{ID: "pkg-a", Project: "b"}, 0, "upload pkg-a into a"},
		"Hidden":   {"a hidden package is not replaced, even if the request names a project of the caller", "operator-a-east", nf.Package{ID: "pkg-b", Project: "a"}, nf.Exists, ""},
		"ReadOnly": {"package:read is not enough to replace a package", "viewer-all", nf.Package{ID: "pkg-b", Project: "b"}, nf.Forbidden, ""},
	}
	for name, c := range cases {
		h.world.done = nil
		_, _, err := h.Packages.Upload(h.as(t, c.who), c.as, strings.NewReader(""))
		if c.kind == 0 && err != nil || c.kind != 0 && nf.KindOf(err) != c.kind || strings.Join(h.world.done, ",") != c.done {
			t.Errorf("%s: %s: %v, done %v", name, c.reason, err, h.world.done)
		}
	}
}

// TestTenants checks that a caller without region:write sees only the grants of
// the projects whose instances it may read.
func TestTenants(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		want        []string
	}{
		"Tenant": {"the grants of its project and of every project", "viewer-a-east", []string{nf.AnyProject, "a"}},
		"All":    {"a caller that may read all instances sees all grants", "viewer-all", []string{nf.AnyProject, "a", "b"}},
		"Admin":  {"a caller that may write the region sees all grants", "admin-all", []string{nf.AnyProject, "a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one, err1 := h.Regions.Region(h.as(t, tc.who), accesstest.East)
			all, err2 := collected(h.Regions.RegionsFrom(h.as(t, tc.who), nf.Cursor{}))
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for _, r := range []nf.Region{one, all[0]} {
				if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(r.Tenants))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestMayReadAll also checks that a store with an index need not read the regions that the
// caller may read: there may be thousands, at each scrape of the metrics.
func TestMayReadAll(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for who, tc := range map[string]struct {
		kind nf.Kind
		read []bool // of the east and the west
	}{
		"viewer-all":    {0, []bool{false, false}},
		"operator-west": {nf.Forbidden, []bool{true, false}},
		"stranger":      {nf.Forbidden, []bool{true, true}},
	} {
		err := h.Regions.MayReadAll(h.as(t, who))
		in := h.world.regionsIn
		read := []bool{in(nf.Scope{Region: accesstest.East}), in(nf.Scope{Region: accesstest.West})}
		if nf.KindOf(err) != tc.kind || !slices.Equal(read, tc.read) {
			t.Errorf("%s: %v; the regions that are read: %v, want %v", who, err, read, tc.read)
		}
	}
}

// TestPreviewsOfSecrets checks that the templates of a dry run find Secrets only
// if the caller may make the change.
func TestPreviewsOfSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for who, want := range map[string]bool{"viewer-a-east": false, "operator-a-east": true, "admin-all": true} {
		ctx := h.as(t, who)
		if _, err := h.Instances.PreviewInstantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: pkg("a")}, Project: "a", Region: accesstest.East}); err != nil || h.world.secrets != want {
			t.Errorf("%s previews an instantiation: %v, finds Secrets: %t", who, err, h.world.secrets)
		}
		if _, err := h.Instances.PreviewUpgrade(ctx, vnf("a", accesstest.East), nf.UpgradeRequest{Edit: func(*nf.Spec) error { return nil }}); err != nil || h.world.secrets != want {
			t.Errorf("%s previews an upgrade: %v, finds Secrets: %t", who, err, h.world.secrets)
		}
	}
}

func TestMayUpload(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason string
		who    string
		as     nf.Package
		want   nf.Kind // Internal: allowed
	}{
		"Own":         {"a new package in a project of the caller", "admin-a", nf.Package{Project: "a"}, nf.Internal},
		"Other":       {"a new package in another project", "admin-a", nf.Package{Project: "b"}, nf.Forbidden},
		"Unknown":     {"a project that is not known yet may be one of the caller", "admin-a", nf.Package{}, nf.Internal},
		"Nowhere":     {"an identity that may not upload into any project", "viewer-all", nf.Package{}, nf.Forbidden},
		"Replace":     {"a replaced package has a known project, which is one of the caller", "admin-a", nf.Package{ID: "pkg-a"}, nf.Internal},
		"ReplaceMore": {"a package of another project is hidden", "admin-a", nf.Package{ID: "pkg-b"}, nf.Exists},
	}
	for name, tc := range cases {
		err := h.Packages.MayUpload(h.as(t, tc.who), tc.as)
		if (err == nil) != (tc.want == nf.Internal) || err != nil && nf.KindOf(err) != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	if err := h.Packages.MayUpload(t.Context(), nf.Package{}); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("an upload without credentials: %v, want Unauthenticated", err)
	}
}

func (w *world) Entries(context.Context, nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	entries := []nf.AuditEntry{
		{ID: "1", Project: "a", Region: "east", Outcome: nf.AuditHidden}, {ID: "2", Project: "b", Region: "west"}, {ID: "3", Region: "east"}, {ID: "4"},
	}
	return func(yield func(nf.AuditEntry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
