package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/nf"
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
	attached := sharing
	attached.Users = users{s}
	if s.networks, err = network.New(attached, networkDrivers()); err != nil {
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

// users are the VNF instances. The engine needs the networks, so it does not exist yet
// when they are created.
type users struct{ of *service }

func (u users) Using(ctx context.Context, instance, network string) ([]nf.SharedWorkload, error) {
	return u.of.engine.Using(ctx, instance, network)
}

func (u users) Act(ctx context.Context, instance string, req nf.ActRequest) (nf.Operation, error) {
	return u.of.engine.Act(ctx, instance, req)
}

func (u users) PreviewAct(ctx context.Context, instance string, req nf.ActRequest) (nf.Preview, error) {
	return u.of.engine.PreviewAct(ctx, instance, req)
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
