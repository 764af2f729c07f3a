package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/shell"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// siteKeeper creates the engine for sites.
func (s *service) siteKeeper(cfg Config, db *secureStore, obs observability) (*site.Sites, error) {
	runners, err := siteDrivers(cfg, obs.log)
	if err != nil {
		return nil, err
	}
	return site.New(site.Config{
		KV: db.kv, Regions: s.regions(), Instances: instances{s.engine}, Owners: owners{s}, ProbeHost: shell.Probe, Runners: runners, Workers: s.workers,
		Clouds: s.clouds, Holds: s.catalog, Usable: shell.Usable, NewID: newID, Retention: cfg.Retention,
	})
}

// instances terminates instances for sites. The termination continues the trace
// of the site's operation.
type instances struct{ engine *lifecycle.Engine }

var _ site.Instances = instances{}

// Terminate implements site.Instances.
func (i instances) Terminate(ctx context.Context, id string) (nf.Operation, error) {
	return i.engine.Terminate(ctx, id, nf.TerminateRequest{Options: nf.Options{Trace: telemetry.Traceparent(ctx)}})
}

// Wait implements site.Instances.
func (i instances) Wait(ctx context.Context, operation string) (nf.Operation, error) {
	return i.engine.Wait(ctx, operation)
}
