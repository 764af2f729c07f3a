package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// live reads objects in regions for ONAP's API, without guard.
type live struct {
	engine *lifecycle.Engine
	open   func(ctx context.Context, region string) (*cluster.Cluster, error)
}

var _ access.LiveReader[onap.Query, onap.PlannedHook] = live{}

// Objects implements access.LiveReader.
func (l live) Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	c, err := l.open(ctx, in.Region)
	if err != nil {
		return nil, err
	}
	return c.Read(ctx, nf.Subject{Kind: nf.InstanceSubject, ID: in.ID}, refs)
}

// Find implements access.LiveReader.
func (l live) Find(ctx context.Context, region string, q onap.Query) ([]map[string]any, error) {
	c, err := l.open(ctx, region)
	if err != nil {
		return nil, err
	}
	return c.Find(ctx, cluster.Selection(q))
}

// Hooks implements access.LiveReader. An instance without a plan has none.
func (l live) Hooks(ctx context.Context, in nf.Instance) ([]onap.PlannedHook, error) {
	plan, err := l.engine.Plan(ctx, in.ID)
	if nf.KindOf(err) == nf.Conflict {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []onap.PlannedHook
	for _, h := range plan.Hooks {
		out = append(out, onap.PlannedHook{Name: h.Object.GetName(), Kind: h.Object.GetKind(), Path: h.File, Object: h.Object.Object, Events: h.Events})
	}
	return out, nil
}

// bundleKeeper creates the stores of bundles and of their subscriptions.
func (s *service) bundleKeeper(cfg Config, db *secureStore, obs observability) error {
	limits := render.DefaultLimits().For(cfg.MaxPackage)
	var err error
	if s.bundles, err = bundle.New(bundle.Config{KV: db.kv, Packages: s.catalog, Limits: limits, NewID: newID, Memory: s.memory}); err != nil {
		return err
	}
	hosts, err := cfg.callbackHosts()
	if err != nil {
		return err
	}
	source := changes{engine: s.engine, records: s.bundles.InstanceRecords(), watch: cluster.NewSharedWatch(opened(s.catalog, s.pool))}
	s.notifier, err = notify.New(notify.Config{Source: source, Admit: s.admitSubscription, Config: outbox.Config{
		KV: db.kv, Hosts: hosts, Logger: obs.log, NewID: newID, Lease: cfg.Lease, Sole: db.db.sole,
		Observe: func(o outbox.Outcome) { obs.metrics.Notified(string(o)) },
	}})
	return err
}

// onapAPI creates ONAP's API. Packages that it composes need no upload
// permission: permission to instantiate suffices.
func (s *service) onapAPI(cfg Config, db *secureStore, obs observability, guarded *access.Guarded) (northbound.API, error) {
	records := s.bundles.InstanceRecords()
	return onap.New(onap.Config{
		Bundles:       access.NewBundles[onap.BundleReader, onap.BundleWriter, onap.Composer](guarded, s.bundles, s.sdc.writer(s.bundles), s.sdc.composer(s.bundles)),
		Connections:   access.NewConnections[bundle.Connection](guarded, s.bundles),
		Aliases:       records,
		Records:       access.NewOfInstances[onap.RecordReader, onap.RecordWriter](guarded, records, records),
		Subscriptions: access.NewOfInstances[onap.SubscriptionReader, onap.SubscriptionWriter](guarded, s.notifier, s.notifier),
		Live:          access.NewLive(guarded, live{s.engine, opened(s.catalog, s.pool)}),
		Regions:       guarded.Regions, Imports: guarded.Regions, Surveys: guarded.Regions, Inventory: s.listings(guarded, access.NewNetworks(guarded, s.networks)), Instances: guarded.Instances, Operations: guarded.Operations,
		NewID: newID, Checks: map[string]northbound.Check{"store": db.healthy, "operations": s.workers.Healthy},
		Strict: cfg.ONAPErrors == "strict", Staging: staging(db.kv, cfg.MaxPackage), Wait: cfg.SyncWait, Trace: obs.traceparent, Logger: obs.log,
	})
}
