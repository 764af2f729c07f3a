package access_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// twoSites is a keeper of a site in each region. The operation of each has the
// id of its region.
type twoSites struct {
	access.SiteKeeper

	cancelled []string
}

func (s *twoSites) Sites(context.Context) ([]nf.Site, error) {
	return []nf.Site{{ID: "east-site", Region: accesstest.East}, {ID: "west-site", Region: accesstest.West}}, nil
}

func (s *twoSites) OperationsFrom(_ context.Context, site string, _ nf.Cursor) iter.Seq2[nf.Operation, error] {
	return sequence(s.operations(site))
}

func (s *twoSites) operations(site string) []nf.Operation {
	var all []nf.Operation
	for _, region := range []string{accesstest.East, accesstest.West} {
		if op := (nf.Operation{ID: region, Subject: nf.Subject{Kind: nf.SiteSubject, ID: region + "-site"}, Region: region, Project: accesstest.ProjectA}); site == "" || site == op.Subject.ID {
			all = append(all, op)
		}
	}
	return all
}

func (s *twoSites) Operation(_ context.Context, site, id string) (nf.Operation, error) {
	all := s.operations(site)
	if i := slices.IndexFunc(all, func(op nf.Operation) bool { return op.ID == id }); i >= 0 {
		return all[i], nil
	}
	return nf.Operation{}, nf.E(nf.NotFound, "find", "it", nil)
}

func (s *twoSites) Follow(ctx context.Context, site, id string, _ int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		op, err := s.Operation(ctx, site, id)
		yield(nf.OperationUpdate{Operation: &op}, err)
	}
}

func (s *twoSites) Cancel(ctx context.Context, site, id string) (nf.Operation, error) {
	s.cancelled = append(s.cancelled, id)
	return s.Operation(ctx, site, id)
}

// TestListsLeaveNoTrail checks that a list does not ask for the permissions of
// single objects: the audit log would name that of the last one.
func TestListsLeaveNoTrail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	sites, operations := access.NewSites(h.Guarded, &twoSites{}), access.NewSiteOperations(h.Guarded, &twoSites{})
	cases := map[string]struct {
		reason string
		list   func(context.Context) (int, error)
	}{
		"Instances": {"VNF instances", func(ctx context.Context) (int, error) { return length(h.Instances.Instances(ctx)) }},
		"Operations": {"operations of instances", func(ctx context.Context) (int, error) {
			return length(collected(h.Operations.OperationsFrom(ctx, "", nf.Cursor{})))
		}},
		"Regions": {"regions", func(ctx context.Context) (int, error) {
			return length(collected(h.Regions.RegionsFrom(ctx, nf.Cursor{})))
		}},
		"Packages": {"packages", func(ctx context.Context) (int, error) {
			return length(collected(h.Packages.PackagesFrom(ctx, nf.Cursor{})))
		}},
		"Sites": {"sites", func(ctx context.Context) (int, error) { return length(sites.Sites(ctx)) }},
		"SiteOperations": {"the operations of sites", func(ctx context.Context) (int, error) {
			return length(collected(operations.OperationsFrom(ctx, "", nf.Cursor{})))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, trail := nf.WithTrail(h.as(t, "viewer-a-east"))
			var entry nf.AuditEntry
			n, err := tc.list(ctx)
			trail.Tell(&entry)
			if diff := cmp.Diff(nf.AuditEntry{}, entry); n == 0 || err != nil || diff != "" || trail.Hidden() {
				t.Errorf("%s: %d listed, %v, hidden: %t (-want +got):\n%s", tc.reason, n, err, trail.Hidden(), diff)
			}
		})
	}
}

func length[T any](list []T, err error) (int, error) { return len(list), err }

// TestOperationsByRole lists, reads, follows and cancels the operations of
// instances and of sites as every identity. The site may be named or not.
func TestOperationsByRole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	outcome := func(err error) accesstest.Outcome {
		for outcome, kind := range kinds {
			if err != nil && nf.KindOf(err) == kind {
				return outcome
			}
		}
		if err != nil {
			t.Errorf("an error of an unknown kind: %v", err)
		}
		return accesstest.Allowed
	}
	tried := map[accesstest.Outcome]int{}
	for _, who := range accesstest.People() {
		keeper := &twoSites{}
		operations, ctx := access.NewSiteOperations(h.Guarded, keeper), h.as(t, who)
		var listed, instances []string
		for _, region := range []string{accesstest.East, accesstest.West} {
			want, cancel := accesstest.Hidden, accesstest.Hidden
			switch {
			case who == accesstest.Anonymous:
				want, cancel = accesstest.Unauthenticated, accesstest.Unauthenticated
			case !accesstest.May(who, nf.ReadRegion, nf.Scope{Region: region}): // hidden, even from an identity that may change it
			case accesstest.May(who, nf.WriteRegion, nf.Scope{Region: region}):
				want, cancel = accesstest.Allowed, accesstest.Allowed
			default:
				want, cancel = accesstest.Allowed, accesstest.Forbidden
			}
			if want == accesstest.Allowed {
				listed = append(listed, region)
			}
			for _, project := range []string{accesstest.ProjectA, accesstest.ProjectB} {
				if accesstest.May(who, nf.ReadInstance, nf.Scope{Project: project, Region: region}) {
					instances = append(instances, op(project, region))
				}
			}
			for _, site := range []string{"", region + "-site"} {
				keeper.cancelled = nil
				_, read := operations.Operation(ctx, site, region)
				_, stopped := operations.Cancel(ctx, site, region)
				followed := error(nil)
				for _, err := range operations.Follow(ctx, site, region, 0) {
					followed = err
				}
				got := []accesstest.Outcome{outcome(read), outcome(followed), outcome(stopped)}
				if diff := cmp.Diff([]accesstest.Outcome{want, want, cancel}, got); diff != "" || (len(keeper.cancelled) > 0) != (cancel == accesstest.Allowed) {
					t.Errorf("%s reads, follows and cancels an operation of site %q in %s (-want +got):\n%s\ncancelled: %v", who, site, region, diff, keeper.cancelled)
				}
				tried[cancel]++
			}
		}
		all, err := collected(operations.OperationsFrom(ctx, "", nf.Cursor{}))
		if got := ids(all, func(op nf.Operation) string { return op.ID }); !slices.Equal(got, listed) || (err != nil) != (who == accesstest.Anonymous) {
			t.Errorf("%s sees the operations %v of sites, want %v: %v", who, got, listed, err)
		}
		other, err := collected(h.Operations.OperationsFrom(ctx, "", nf.Cursor{}))
		other = slices.DeleteFunc(other, func(op nf.Operation) bool { return op.Verb != nf.Upgrade })
		if got := ids(other, func(op nf.Operation) string { return op.ID }); !slices.Equal(got, slices.Sorted(slices.Values(instances))) || (err != nil) != (who == accesstest.Anonymous) {
			t.Errorf("%s sees the operations %v of instances, want %v: %v", who, got, instances, err)
		}
	}
	for _, outcome := range []accesstest.Outcome{accesstest.Allowed, accesstest.Hidden, accesstest.Forbidden, accesstest.Unauthenticated} {
		if tried[outcome] == 0 {
			t.Errorf("no case has the outcome %s: %v", outcome, tried)
		}
	}
}
