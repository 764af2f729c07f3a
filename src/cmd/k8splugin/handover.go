package main

import (
	"context"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aaisource"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	// adapterSuffix ends the name of the subscription of SO's adapter for CNFs. It
	// begins with the id of the instance.
	adapterSuffix = "-cnf-adapter"

	// handOverTime is how long a subscription waits until A&AI has no object that the
	// service wrote. It is short because A&AI must not fail a request.
	handOverTime = 10 * time.Second
)

// admitSubscription hands an instance over to SO's adapter, if the adapter subscribes to
// it: from then on, the adapter writes the objects of the instance to A&AI. The service
// stops before the adapter gets its response. Objects that it cannot delete in time are
// deleted later, unless they are the adapter's by then: the ids are equal.
func (s *service) admitSubscription(ctx context.Context, sub nf.Subscription) error {
	if sub.Name != sub.Instance+adapterSuffix {
		return nil
	}
	alias, err := s.bundles.InstanceRecords().Alias(ctx, sub.Instance)
	if err != nil {
		return err
	}
	if err := lifecycle.HandOver(ctx, s.engine, alias.Engine); err != nil {
		return err
	}
	if s.inventory != nil {
		limited, cancel := context.WithTimeout(ctx, handOverTime)
		defer cancel()
		s.inventory.keeper.Gone(limited, aaisource.InstanceID(alias.Engine))
	}
	return ctx.Err()
}
