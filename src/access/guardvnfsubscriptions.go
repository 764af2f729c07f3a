package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNFSubscriptionKeeper stores the subscriptions of SOL003.
type VNFSubscriptionKeeper interface {
	Subscribe(ctx context.Context, s nf.VNFSubscription) (nf.VNFSubscription, error)
	Subscription(ctx context.Context, id string) (nf.VNFSubscription, error)
	SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error]
	Unsubscribe(ctx context.Context, id string) error
}

// VNFSubscriptions gives access to a VNFSubscriptionKeeper with the permissions of the
// identity in the context. A subscription belongs to its project, in all regions.
type VNFSubscriptions struct {
	guard  *guard
	keeper VNFSubscriptionKeeper
}

var _ VNFSubscriptionKeeper = VNFSubscriptions{}

// NewVNFSubscriptions returns the guarded subscriptions of a keeper.
func NewVNFSubscriptions(guarded *Guarded, keeper VNFSubscriptionKeeper) VNFSubscriptions {
	return VNFSubscriptions{guarded.guard, keeper}
}

func vnfSubscriptionScope(s nf.VNFSubscription) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(s.Project)}
}

// Subscribe requires instance:change in the project: it makes the service send requests.
func (v VNFSubscriptions) Subscribe(ctx context.Context, s nf.VNFSubscription) (nf.VNFSubscription, error) {
	inOwnProject(ctx, &s.Project)
	if err := v.guard.may(ctx, nf.ChangeInstance, vnfSubscriptionScope(s)); err != nil {
		return nf.VNFSubscription{}, err
	}
	return v.keeper.Subscribe(ctx, s)
}

// Subscription requires instance:read in the project.
func (v VNFSubscriptions) Subscription(ctx context.Context, id string) (nf.VNFSubscription, error) {
	hidden := absent("subscription", id)
	s, err := v.keeper.Subscription(ctx, id)
	if err != nil {
		return nf.VNFSubscription{}, orAbsent(err, hidden)
	}
	if err := v.guard.see(ctx, nf.ReadInstance, vnfSubscriptionScope(s), hidden); err != nil {
		return nf.VNFSubscription{}, err
	}
	return s, nil
}

// SubscriptionsFrom yields the subscriptions that the identity may read.
func (v VNFSubscriptions) SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
	visible, err := v.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.VNFSubscription](err)
	}
	return list[nf.VNFSubscription]{v.keeper.SubscriptionsFrom(ctx, from), vnfSubscriptionScope, visible}.shown(
		func(s nf.VNFSubscription) (nf.VNFSubscription, error) { return s, nil })
}

// Unsubscribe requires instance:change in the project.
func (v VNFSubscriptions) Unsubscribe(ctx context.Context, id string) error {
	s, err := v.Subscription(ctx, id)
	if err != nil {
		return err
	}
	if err := v.guard.may(ctx, nf.ChangeInstance, vnfSubscriptionScope(s), id); err != nil {
		return err
	}
	return orAbsent(v.keeper.Unsubscribe(ctx, id), absent("subscription", id))
}
