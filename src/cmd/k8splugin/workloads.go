package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// registerWorkloads creates the registrar of clusters that become regions, and the outbox
// that hands their kubeconfigs over.
func (s *service) registerWorkloads(cfg Config, db *secureStore, obs observability, apart bool) error {
	hosts, err := cfg.callbackHosts()
	if err != nil {
		return err
	}
	s.handOvers, err = outbox.New(outbox.Config{
		KV: db.kv, Prefix: "handovers/", Noun: "kubeconfig", NewID: newID, Hosts: hosts, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole,
		Observe: func(o outbox.Outcome) { obs.metrics.Notified(string(o)) },
	}, nil)
	if err != nil {
		return err
	}
	open := clusters(s.catalog, s.pool, apart)
	s.workloads, err = clusterapi.New(clusterapi.Config{
		Regions: s.regions(), Parse: cluster.Parse, Outbox: s.handOvers, Logger: obs.log,
		Open: func(ctx context.Context, region, project string) (clusterapi.Reader, error) {
			return open(ctx, region, project)
		},
		Visit: func(access nf.Access, use func(clusterapi.Workload) error) error {
			return s.pool.Visit(access, func(c *cluster.Cluster) error { return use(c) })
		},
	})
	return err
}
