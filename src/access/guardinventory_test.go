package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ledgerOfAAI has a listing of each of some instances and of a region, and records what it is told.
type ledgerOfAAI struct{ done []string }

func (l *ledgerOfAAI) Listings(context.Context) iter.Seq2[nf.Listing, error] {
	return func(yield func(nf.Listing, error) bool) {
		for _, id := range []string{"vnf-a-east", "vnf-b-west", "gone"} {
			if !yield(nf.Listing{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}}, nil) {
				return
			}
		}
		yield(nf.Listing{Subject: nf.Subject{Kind: nf.RegionSubject, ID: "west"}}, nil)
	}
}

func (l *ledgerOfAAI) Listing(_ context.Context, in nf.Instance) (nf.Listing, error) {
	l.done = append(l.done, "get "+in.ID)
	return nf.Listing{}, nil
}

func (l *ledgerOfAAI) Relist(_ context.Context, in nf.Instance) (nf.Listing, error) {
	l.done = append(l.done, "relist "+in.ID)
	return nf.Listing{}, nil
}

func TestGuardedInventory(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		listed      []string
		get, relist nf.Kind // of vnf-a-east; Internal: allowed
	}{
		"Tenant": {"an identity sees the listings of its instances, and of the regions that it may read", "admin-a", []string{"vnf-a-east", "west"}, nf.Internal, nf.Internal},
		"Viewer": {"instance:read is not enough to compare, and another region does not exist", "viewer-a-east", []string{"vnf-a-east"}, nf.Internal, nf.Forbidden},
		"Other":  {"instances of other projects do not exist", "operator-b", []string{"vnf-b-west", "west"}, nf.NotFound, nf.NotFound},
		"Store":  {"store:admin shows those of deleted instances", "admin-all", []string{"vnf-a-east", "vnf-b-west", "gone", "west"}, nf.Internal, nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &ledgerOfAAI{}
			inventory, ctx := access.NewInventory(h.Guarded, access.Shared{}, l), h.as(t, tc.who)
			var listed []string
			noted, trail := nf.WithTrail(ctx)
			for one, err := range inventory.Listings(noted) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, one.Subject.ID)
			}
			if diff := cmp.Diff(tc.listed, listed); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if trail.Hidden() {
				t.Errorf("%s: the list is recorded as a denial", tc.reason)
			}
			var want []string
			for _, call := range []struct {
				name string
				kind nf.Kind
				do   func(context.Context, string) (nf.Listing, error)
			}{{"get vnf-a-east", tc.get, inventory.Listing}, {"relist vnf-a-east", tc.relist, inventory.Relist}} {
				if call.kind == nf.Internal {
					want = append(want, call.name)
				}
				if _, err := call.do(ctx, "vnf-a-east"); (err == nil) != (call.kind == nf.Internal) || err != nil && nf.KindOf(err) != call.kind {
					t.Errorf("%s: %s: %v, want %s", tc.reason, call.name, err, call.kind)
				}
			}
			if diff := cmp.Diff(want, l.done); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, err := range access.NewInventory(h.Guarded, access.Shared{}, &ledgerOfAAI{}).Listings(t.Context()) {
		if nf.KindOf(err) != nf.Unauthenticated {
			t.Errorf("a list without credentials: %v", err)
		}
	}
}
