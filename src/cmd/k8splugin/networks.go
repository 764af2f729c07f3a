package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/volume"
)

// shareResources creates the engines for virtual networks and volumes. They connect to
// regions with their own access, because these do not belong to the namespaces of a
// project.
func (s *service) shareResources(cfg Config, db *secureStore) (err error) {
	open := opened(s.catalog, s.pool)
	sharing := shared.Config{
		KV: db.kv, Regions: s.catalog, Workers: s.workers, Retention: cfg.Retention,
		Open: func(ctx context.Context, region string) (shared.Cluster, error) {
			c, err := open(ctx, region)
			if err != nil {
				return nil, err // not a nil *Cluster, which would be a non-nil Cluster
			}
			return c, nil
		},
	}
	if s.networks, err = network.New(sharing, networkDrivers()); err != nil {
		return err
	}
	s.volumes, s.binder, err = volume.New(sharing, func(ctx context.Context, region string) (volume.Cluster, error) {
		c, err := open(ctx, region)
		if err != nil {
			return nil, err // as above
		}
		return c, nil
	})
	return err
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

// volumes holds volumes for instances, and binds their claims to them.
type volumes struct {
	lifecycle.Shared
	lifecycle.Binder
}
