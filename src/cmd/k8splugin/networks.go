package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/multus"
)

// networkKeeper creates the engine for virtual networks. It connects to regions with
// their own access, because networks do not belong to the namespaces of a project.
func (s *service) networkKeeper(cfg Config, db *secureStore) (*network.Networks, error) {
	open := opened(s.catalog, s.pool)
	return network.New(network.Config{
		KV: db.kv, Regions: s.catalog, Workers: s.workers, Drivers: map[string]network.Driver{"multus": multus.Driver{}}, Retention: cfg.Retention,
		Open: func(ctx context.Context, region string) (network.Cluster, error) {
			c, err := open(ctx, region)
			if err != nil {
				return nil, err // not a nil *Cluster, which would be a non-nil Cluster
			}
			return c, nil
		},
	})
}
