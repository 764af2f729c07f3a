package main

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/notify"
)

// changes tells the notifier what happens in the regions. Subscriptions name
// instances by the ids that ONAP's API gave, which is another one than the
// engine's when the instance was moved.
type changes struct {
	engine  *lifecycle.Engine
	ledger  *bundle.Ledger
	lookout *cluster.Lookout
}

var _ notify.Source = changes{}

// Target implements notify.Source: an instance is its objects, the pods that
// they make, and the further kinds of its profile.
func (c changes) Target(ctx context.Context, instance string) (notify.Target, error) {
	alias, err := c.ledger.Alias(ctx, instance)
	if err != nil {
		return notify.Target{}, err
	}
	in, err := c.engine.Instance(ctx, alias.Engine)
	if err != nil {
		return notify.Target{}, err
	}
	kinds := []nf.Ref{{Version: "v1", Kind: "Pod"}}
	for _, it := range in.Inventory {
		if !it.Hook {
			kinds = append(kinds, nf.Ref{Group: it.Group, Version: it.Version, Kind: it.Kind})
		}
	}
	more, err := onap.ExtraKinds(in)
	if err != nil {
		return notify.Target{}, err
	}
	return notify.Target{Region: in.Region, Owner: alias.Engine, Kinds: append(kinds, more...)}, nil
}

// Follow implements notify.Source.
func (c changes) Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[notify.Event, error] {
	return func(yield func(notify.Event, error) bool) {
		for s, err := range c.lookout.Follow(ctx, region, kind) {
			if !yield(notify.Event(s), err) {
				return
			}
		}
	}
}

// notices are the notifier's subscriptions, for ONAP's API.
type notices struct{ *notify.Notifier }

var _ onap.Subscriptions = notices{}

// Subscribe implements onap.Subscriptions.
func (n notices) Subscribe(ctx context.Context, s onap.Subscription) (onap.Subscription, error) {
	made, err := n.Notifier.Subscribe(ctx, notify.Subscription(s))
	return onap.Subscription(made), err
}

// Subscription implements onap.Subscriptions.
func (n notices) Subscription(ctx context.Context, instance, name string) (onap.Subscription, error) {
	s, err := n.Notifier.Subscription(ctx, instance, name)
	return onap.Subscription(s), err
}

// SubscriptionsOf implements onap.Subscriptions.
func (n notices) SubscriptionsOf(ctx context.Context, instance string) ([]onap.Subscription, error) {
	all, err := n.Notifier.SubscriptionsOf(ctx, instance)
	out := make([]onap.Subscription, len(all))
	for i, s := range all {
		out[i] = onap.Subscription(s)
	}
	return out, err
}

// Change implements onap.Subscriptions.
func (n notices) Change(ctx context.Context, s onap.Subscription) (onap.Subscription, error) {
	changed, err := n.Notifier.Change(ctx, notify.Subscription(s))
	return onap.Subscription(changed), err
}
