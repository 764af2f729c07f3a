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

// changes provides the changes in regions to the notifier. Subscriptions name
// an instance by the id from ONAP's API, which differs from the engine's id if
// the instance was moved.
type changes struct {
	engine  *lifecycle.Engine
	records *bundle.InstanceRecords
	watch   *cluster.SharedWatch
}

var _ notify.Source = changes{}

// Target implements notify.Source. A target consists of the instance's objects,
// their pods, and the extra kinds of its profile.
func (c changes) Target(ctx context.Context, instance string) (notify.Target, error) {
	alias, err := c.records.Alias(ctx, instance)
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
		for s, err := range c.watch.Subscribe(ctx, region, kind) {
			if !yield(notify.Event(s), err) {
				return
			}
		}
	}
}
