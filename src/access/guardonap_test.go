package access_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// atlas contains the connections to regions that ONAP's API stores.
type atlas struct{ written []string }

// link is a connection with a secret.
type link struct{ secret string }

func (link) Masked() link { return link{nf.Masked} }

func (*atlas) Connection(context.Context, nf.Region) (link, error) { return link{"s3cret"}, nil }

func (a *atlas) PutConnection(context.Context, link) error {
	a.written = append(a.written, "put")
	return nil
}

func (a *atlas) RemoveConnection(_ context.Context, region string) error {
	a.written = append(a.written, "remove "+region)
	return nil
}

// cell is a stored record of an instance or a bundle. Access to it gives an error
// or a value.
type cell string

// TestGrantsOfONAP checks which permissions give access to the records of ONAP's API.
func TestGrantsOfONAP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const no, hidden, unknown, yes = nf.Forbidden, nf.NotFound, nf.Unauthenticated, nf.Internal
	cases := map[string]struct {
		reason, who               string
		read, write, fresh        nf.Kind // of bundles; Internal: granted
		see, change, compose, put nf.Kind // of an instance and its region
	}{
		"Operator":  {"the operator of a project changes its instances, but not those of the default project", "operator-a-east", no, no, no, yes, yes, yes, no},
		"Other":     {"instances of another project are hidden", "operator-b", no, no, no, hidden, no, no, no},
		"Viewer":    {"a viewer reads and does not change", "viewer-all", yes, no, no, yes, no, no, no},
		"Blind":     {"permission to change an instance is not permission to read it", "blind-all", yes, yes, yes, hidden, yes, yes, yes},
		"Admin":     {"an administrator may do all of it", "admin-all", yes, yes, yes, yes, yes, yes, yes},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, unknown, unknown, unknown, unknown, unknown, unknown, unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, kept := h.as(t, tc.who), &atlas{}
			in := nf.Instance{ID: vnf("a", accesstest.East), Project: "a", Region: accesstest.East}
			bundles := access.NewBundles(h.Guarded, cell("reader"), cell("writer"), cell("composer"))
			records := access.NewOfInstances(h.Guarded, cell("reader"), cell("writer"))
			is := func(what string, want nf.Kind, value cell, got cell, err error) {
				t.Helper()
				if want == yes && (err != nil || got != value) || want != yes && (err == nil || nf.KindOf(err) != want || got != "") {
					t.Errorf("%s: %s: %q, %v, want %s", tc.reason, what, got, err, want)
				}
			}
			got, err := bundles.Read(ctx)
			is("read bundles", tc.read, "reader", got, err)
			got, err = bundles.Write(ctx)
			is("write bundles", tc.write, "writer", got, err)
			got, err = bundles.ForNew(ctx, nf.DefaultProject, accesstest.East)
			is("compose for a new instance", tc.fresh, "composer", got, err)
			got, err = bundles.ForChange(ctx, in)
			is("compose for an instance", tc.compose, "composer", got, err)
			got, err = records.Read(ctx, in)
			is("read records", tc.see, "reader", got, err)
			got, err = records.Change(ctx, in)
			is("change records", tc.change, "writer", got, err)
			connections := access.NewConnections(h.Guarded, kept)
			is("put a connection", tc.put, "", "", connections.Put(ctx, accesstest.East, link{}))
			is("remove a connection", tc.put, "", "", connections.Remove(ctx, accesstest.East))
			if granted := tc.put == yes; granted != (len(kept.written) == 2) {
				t.Errorf("%s: these connections were written: %v", tc.reason, kept.written)
			}
		})
	}
}

// TestConnectionsHideSecrets checks that only an identity that may write a region
// gets its access and the secrets of its connection.
func TestConnectionsHideSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		kind        nf.Kind // Internal: granted
		secret      string
		access      bool
	}{
		"Admin":     {"a caller that may write them may read them", "admin-all", nf.Internal, "s3cret", true},
		"Viewer":    {"region:read does not give access to the credentials of a region", "viewer-all", nf.Internal, nf.Masked, false},
		"Other":     {"a connection to a hidden region is reported as absent", "operator-west", nf.NotFound, "", false},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c, err := access.NewConnections(h.Guarded, &atlas{}).Connection(h.as(t, tc.who), accesstest.East)
			if (err == nil) != (tc.kind == nf.Internal) || nf.KindOf(err) != tc.kind || c.secret != tc.secret || (r.Access.Token != nil) != tc.access {
				t.Errorf("%s: %+v, %+v, %v", tc.reason, r, c, err)
			}
		})
	}
}

func TestGrantsAreAudited(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, trail := nf.WithTrail(h.as(t, "admin-all"))
	records := access.NewOfInstances(h.Guarded, cell(""), cell(""))
	if _, err := records.Change(ctx, nf.Instance{ID: "vnf-1", Region: accesstest.East}); err != nil {
		t.Fatal(err)
	}
	var entry nf.AuditEntry
	trail.Tell(&entry)
	want := nf.AuditEntry{Permission: nf.ChangeInstance, Project: nf.DefaultProject, Region: accesstest.East, Subjects: []string{"vnf-1"}}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("the audit entry names the instance (-want +got):\n%s", diff)
	}
}

// sky holds an object of each owner in every region.
type sky struct{ owners []string }

func (sky) Objects(context.Context, nf.Instance, []nf.Ref) ([]map[string]any, error) {
	return nil, nil
}

func (s sky) Find(context.Context, string, string) ([]map[string]any, error) {
	var out []map[string]any
	for _, owner := range s.owners {
		out = append(out, map[string]any{"metadata": map[string]any{"labels": map[string]any{nf.OwnerLabel: owner}}})
	}
	return out, nil
}

func (sky) Hooks(context.Context, nf.Instance) ([]string, error) { return []string{"hook"}, nil }

func ownersOf(objects []map[string]any) []string {
	return ids(objects, func(o map[string]any) string {
		return o["metadata"].(map[string]any)["labels"].(map[string]any)[nf.OwnerLabel].(string)
	})
}

func TestLiveObjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	all := []string{"", "gone", "vnf-a-east", "vnf-a-west", "vnf-b-east"}
	cases := map[string]struct {
		reason, who string
		kind        nf.Kind // of a query of the region; Internal: allowed
		want        []string
		of          nf.Kind // of a query of vnf-a-east
		wantOf      []string
	}{
		"Tenant":    {"an identity sees the objects of its instances in the region", "viewer-a-east", nf.Internal, []string{"vnf-a-east"}, nf.Internal, []string{"vnf-a-east"}},
		"Viewer":    {"a viewer sees the objects of that region that have an owner", "viewer-all", nf.Internal, []string{"vnf-a-east", "vnf-b-east"}, nf.Internal, []string{"vnf-a-east", "vnf-b-east"}},
		"Changer":   {"the objects of an instance do not require a permission for the region", "changer-a", nf.Forbidden, nil, nf.Internal, []string{"vnf-a-east"}},
		"Admin":     {"an identity that may register the region sees all objects", "admin-all", nf.Internal, all, nf.Internal, all},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated, nil, nf.Unauthenticated, nil},
		"None":      {"an identity that may see neither the region nor the instance", "operator-west", nf.Forbidden, nil, nf.NotFound, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, live := h.as(t, tc.who), access.NewLive(h.Guarded, sky{all})
			in := nf.Instance{ID: vnf("a", accesstest.East), Project: "a", Region: accesstest.East}
			found, err := live.Find(ctx, accesstest.East, "")
			if diff := cmp.Diff(tc.want, ownersOf(found)); diff != "" || nf.KindOf(err) != tc.kind {
				t.Errorf("%s: %v, want %s (-want +got):\n%s", tc.reason, err, tc.kind, diff)
			}
			found, err = live.FindOf(ctx, in, "")
			if diff := cmp.Diff(tc.wantOf, ownersOf(found)); diff != "" || nf.KindOf(err) != tc.of {
				t.Errorf("%s: of the instance: %v, want %s (-want +got):\n%s", tc.reason, err, tc.of, diff)
			}
			_, objects := live.Objects(ctx, in, nil)
			_, hooks := live.Hooks(ctx, in)
			for _, err := range []error{objects, hooks} {
				if nf.KindOf(err) != tc.of || (err == nil) != (tc.of == nf.Internal) {
					t.Errorf("%s: objects and hooks of the instance: %v, want %s", tc.reason, err, tc.of)
				}
			}
		})
	}
}
