package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/networkservice"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// serviceKeeper creates the engine for network services.
func (s *service) serviceKeeper(cfg Config, db *secureStore) (err error) {
	s.services, err = networkservice.New(networkservice.Config{
		KV: db.kv, Workers: s.workers, Instances: members{s.engine}, Previews: s.engine, Children: s.engine, Retention: cfg.Retention,
	})
	return err
}

// owners are the network services. They need the engine, so they do not exist yet when it
// is created.
type owners struct{ of *service }

var _ lifecycle.Owners = owners{}

// Owner implements lifecycle.Owners.
func (o owners) Owner(ctx context.Context, instance string) (nf.Subject, error) {
	return o.of.services.Owner(ctx, instance)
}

// members changes VNF instances for network services. Their operations continue the trace
// of the service's operation.
type members struct{ engine *lifecycle.Engine }

var _ networkservice.Instances = members{}

// Instance implements networkservice.Instances.
func (m members) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return m.engine.Instance(ctx, id)
}

// Instantiate implements networkservice.Instances.
func (m members) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	req.Trace = telemetry.Traceparent(ctx)
	return m.engine.Instantiate(ctx, req)
}

// Upgrade implements networkservice.Instances.
func (m members) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	req.Trace = telemetry.Traceparent(ctx)
	return m.engine.Upgrade(ctx, id, req)
}

// Terminate implements networkservice.Instances.
func (m members) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	req.Trace = telemetry.Traceparent(ctx)
	return m.engine.Terminate(ctx, id, req)
}
