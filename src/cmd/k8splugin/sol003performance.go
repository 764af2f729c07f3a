package main

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpm"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// measureVNFs creates the part that measures VNFs.
func (s *service) measureVNFs(cfg Config, db *secureStore, obs observability) (err error) {
	s.vnfs.meter, err = performance.New(performance.Config{
		KV: db.kv, Source: usageOfVNFs{s.engine, s.sol003, opened(s.catalog, s.pool)}, Callbacks: pmCallbacks{s}, NewID: newID, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole,
	})
	return err
}

// usageOfVNFs provides VNFs and their usage.
type usageOfVNFs struct {
	engine *lifecycle.Engine
	ledger *sol003.Manager
	open   func(ctx context.Context, region string) (*cluster.Cluster, error)
}

var _ performance.Source = usageOfVNFs{}

// VNF implements performance.Source.
func (u usageOfVNFs) VNF(ctx context.Context, id string) (nf.VNF, error) {
	return u.ledger.VNF(ctx, id)
}

// Usage implements performance.Source.
func (u usageOfVNFs) Usage(ctx context.Context, id string) ([]nf.PodUsage, error) {
	in, err := u.engine.Instance(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := u.open(ctx, in.Region)
	if err != nil {
		return nil, err
	}
	var refs []nf.Ref
	for _, it := range nf.Judged(in.Inventory) {
		refs = append(refs, it.Ref)
	}
	return cluster.NewGauge(c).Usage(ctx, nf.Subject{Kind: nf.InstanceSubject, ID: id}, refs)
}

// pmCallbacks passes callbacks to the notifier, which is created later: it distributes the
// notices of the meter.
type pmCallbacks struct{ service *service }

var _ performance.Callbacks = pmCallbacks{}

// CallbackOp implements performance.Callbacks.
func (c pmCallbacks) CallbackOp(ctx context.Context, s nf.VNFSubscription) (store.Op, error) {
	return c.service.vnfs.notifier.CallbackOp(ctx, s)
}

// Subscription implements performance.Callbacks.
func (c pmCallbacks) Subscription(ctx context.Context, id string) (nf.VNFSubscription, error) {
	return c.service.vnfs.notifier.Subscription(ctx, id)
}

// SubscriptionsFrom implements performance.Callbacks.
func (c pmCallbacks) SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
	return c.service.vnfs.notifier.SubscriptionsFrom(ctx, from)
}

// Unsubscribe implements performance.Callbacks.
func (c pmCallbacks) Unsubscribe(ctx context.Context, id string) error {
	return c.service.vnfs.notifier.Unsubscribe(ctx, id)
}

// vnfPerformanceAPI creates the API of SOL003's performance management.
func (s *service) vnfPerformanceAPI(cfg Config, _ *secureStore, _ observability, guarded *access.Guarded) (northbound.API, error) {
	kept := access.NewVNFPerformance(guarded, s.vnfs.meter)
	return vnfpm.New(vnfpm.Config{Jobs: kept, Reports: kept, Thresholds: kept, Endpoint: cfg.VNFNotify.Endpoint})
}
