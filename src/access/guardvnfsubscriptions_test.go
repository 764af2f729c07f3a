package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// oneSubscription is a keeper of one subscription.
type oneSubscription struct {
	nf.VNFSubscription

	changes int
}

func (o *oneSubscription) Subscribe(_ context.Context, s nf.VNFSubscription) (nf.VNFSubscription, error) {
	o.changes++
	return s, nil
}

func (o *oneSubscription) Subscription(_ context.Context, id string) (nf.VNFSubscription, error) {
	if id != o.ID {
		return nf.VNFSubscription{}, nf.E(nf.NotFound, "read", "that", nil)
	}
	return o.VNFSubscription, nil
}

func (o *oneSubscription) SubscriptionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
	return func(yield func(nf.VNFSubscription, error) bool) { yield(o.VNFSubscription, nil) }
}

func (o *oneSubscription) Unsubscribe(context.Context, string) error {
	o.changes++
	return nil
}

// TestGuardedVNFSubscriptions lets every identity read and change a subscription.
func TestGuardedVNFSubscriptions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := nf.Scope{Project: accesstest.ProjectA}
	tried := map[nf.Kind]int{}
	for _, who := range accesstest.People() {
		ctx := h.as(t, who)
		keeper := &oneSubscription{VNFSubscription: nf.VNFSubscription{ID: "s", Project: accesstest.ProjectA}}
		guarded := access.NewVNFSubscriptions(h.Guarded, keeper)
		reads, changes := accesstest.May(who, nf.ReadInstance, in), accesstest.May(who, nf.ChangeInstance, in)
		want := func(call string, err error, kind nf.Kind) {
			if (err == nil) != (kind == nf.Internal) || err != nil && nf.KindOf(err) != kind {
				t.Errorf("%s by %s: %v, want %s", call, who, err, kind)
			}
			tried[kind]++
		}
		kind := func(seen bool) nf.Kind {
			switch {
			case who == accesstest.Anonymous:
				return nf.Unauthenticated
			case seen && !reads:
				return nf.NotFound
			case !changes:
				return nf.Forbidden
			}
			return nf.Internal
		}
		_, err := guarded.Subscribe(ctx, keeper.VNFSubscription)
		want("Subscribe", err, kind(false))
		want("Unsubscribe", guarded.Unsubscribe(ctx, "s"), kind(true))
		_, err = guarded.Subscription(ctx, "s")
		if expected := kind(true); expected == nf.Forbidden {
			want("Subscription", err, nf.Internal)
		} else {
			want("Subscription", err, expected)
		}
		shown := 0
		for _, err := range guarded.SubscriptionsFrom(ctx, nf.Cursor{}) {
			if err == nil {
				shown++
			}
		}
		if (shown == 1) != (reads && who != accesstest.Anonymous) || (keeper.changes == 2) != (kind(true) == nf.Internal) {
			t.Errorf("%s is shown %d subscriptions and makes %d changes", who, shown, keeper.changes)
		}
	}
	if len(tried) < 4 {
		t.Errorf("only the outcomes %v were tried", tried)
	}
}
