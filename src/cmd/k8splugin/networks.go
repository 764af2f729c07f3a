package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// networkKeeper creates the engine for virtual networks. It connects to regions with
// their own access, because networks do not belong to the namespaces of a project.
func (s *service) networkKeeper(cfg Config, db *secureStore) (*shared.Resources, error) {
	open := opened(s.catalog, s.pool)
	return network.New(shared.Config{
		KV: db.kv, Regions: s.catalog, Workers: s.workers, Retention: cfg.Retention,
		Open: func(ctx context.Context, region string) (shared.Cluster, error) {
			c, err := open(ctx, region)
			if err != nil {
				return nil, err // not a nil *Cluster, which would be a non-nil Cluster
			}
			return c, nil
		},
	}, networkDrivers())
}

func networkDrivers() network.Drivers {
	return network.Drivers{"multus": multus.Driver{}, "ovn": ovn.Driver{}, "sriov": sriov.Driver{}}
}

// networks holds networks for instances, and attaches these to them.
type networks struct {
	lifecycle.Shared
	lifecycle.Creator
	lifecycle.Connector
}
