package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// live reads what is in the regions, for ONAP's API.
type live struct {
	engine *lifecycle.Engine
	open   func(ctx context.Context, region string) (*cluster.Cluster, error)
}

var _ onap.Live = live{}

// Objects implements onap.Live.
func (l live) Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	c, err := l.open(ctx, in.Region)
	if err != nil {
		return nil, err
	}
	return c.Read(ctx, in.ID, refs)
}

// Find implements onap.Live.
func (l live) Find(ctx context.Context, q onap.Query) ([]map[string]any, error) {
	c, err := l.open(ctx, q.Region)
	if err != nil {
		return nil, err
	}
	return c.Find(ctx, cluster.Selection{APIVersion: q.APIVersion, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, Labels: q.Labels})
}

// Hooks implements onap.Live. An instance that is not up yet has none.
func (l live) Hooks(ctx context.Context, in nf.Instance) ([]onap.Hook, error) {
	if in.Revision == 0 {
		return nil, nil
	}
	plan, err := l.engine.Plan(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	secrets := nf.NewRedactor(append(in.Inputs.Secrets(in.Sensitive), in.Hidden...))
	var out []onap.Hook
	for _, h := range plan.Hooks {
		text, err := yaml.Marshal(secrets.Value(h.Object.Object))
		if err != nil {
			return nil, fmt.Errorf("cannot show the hook %s: %w", h.Object.GetName(), err)
		}
		hook := onap.Hook{Name: h.Object.GetName(), Kind: h.Object.GetKind(), Path: h.File, Manifest: string(text)}
		if hook.Kind == "Secret" {
			hook.Manifest = ""
		}
		for _, e := range h.Events {
			hook.Events = append(hook.Events, string(e))
		}
		out = append(out, hook)
	}
	return out, nil
}

// onapAPI makes ONAP's API. What it composes are packages like any, and made for
// whoever may instantiate.
func (s *service) onapAPI(cfg Config, db *vault, see sight, guard *access.Guard) (*onap.API, error) {
	limits := render.DefaultLimits()
	limits.Archive = cfg.MaxPackage
	var err error
	if s.bundles, err = bundle.New(bundle.Config{KV: db, Packages: s.catalog, Limits: limits, NewID: newID}); err != nil {
		return nil, err
	}
	open := opened(s.catalog, s.pool)
	hosts, err := outbound.ParseHosts(listed(cfg.CallbackAllow))
	if err != nil {
		return nil, err
	}
	source := changes{engine: s.engine, ledger: s.bundles.Ledger(), lookout: cluster.NewLookout(open)}
	s.notifier, err = notify.New(notify.Config{
		KV: db, Source: source, Hosts: hosts, Logger: see.log, NewID: newID, Lease: cfg.Lease, Sole: db.db.sole,
		Observe: func(o notify.Outcome) { see.metrics.Notified(string(o)) },
	})
	if err != nil {
		return nil, err
	}
	return onap.New(onap.Config{
		Bundles: s.bundles, Access: guard, Regions: guard, Instances: guard, Operations: guard, Live: live{s.engine, open},
		Subscriptions: notices{s.notifier}, NewID: newID, Checks: map[string]northbound.Check{"store": db.healthy, "operations": s.engine.Healthy},
		Strict: cfg.ONAPErrors == "strict", UploadLimit: cfg.MaxPackage, Wait: cfg.SyncWait, Trace: see.traceparent, Logger: see.log,
	})
}

// sweepEvery is how often what ONAP's API has composed is looked through.
const sweepEvery = 10 * time.Minute

// sweep forgets what is remembered of instances that are gone, and packages that
// nothing composes to any more.
func (s *service) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "what is left of resource bundles is looked through again later", "error", err)
		}
	}
}

func (s *service) sweepOnce(ctx context.Context) error {
	ledger := s.bundles.Ledger()
	exists := func(ctx context.Context, id string) (bool, error) {
		_, err := s.engine.Instance(ctx, id)
		if nf.KindOf(err) == nf.NotFound {
			return false, nil
		}
		return err == nil, err
	}
	if err := errors.Join(ledger.Sweep(ctx, exists), s.bundles.SweepConnections(ctx, s.catalog.Region)); err != nil {
		return err
	}
	used, err := ledger.Packages(ctx)
	if err != nil {
		return err
	}
	all, err := s.engine.Instances(ctx)
	if err != nil {
		return err
	}
	for _, in := range all {
		for _, a := range in.Amendments {
			used[a.Package] = true
		}
	}
	return s.bundles.Sweep(ctx, func(id string) bool { return used[id] })
}
