package main

import (
	"context"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (s *service) regions() regions { return regions{s.catalog, s.pool, s} }

// Register implements native.Regions.
func (r regions) Register(ctx context.Context, region nf.Region) (nf.Region, error) {
	return r.listed(r.keeper.Register(ctx, region))
}

// Enlist implements access.RegionKeeper.
func (r regions) Enlist(ctx context.Context, region nf.Region) (nf.Region, error) {
	return r.listed(r.keeper.Enlist(ctx, region))
}

// listed has the flavors of a region that was registered written to A&AI.
func (r regions) listed(made nf.Region, err error) (nf.Region, error) {
	if err == nil {
		r.of.inventory.touch(nf.Subject{Kind: nf.RegionSubject, ID: made.ID})
	}
	return made, err
}

// unlistTime is how long the removal of a region waits for A&AI, which must not hold it up.
const unlistTime = 30 * time.Second

// unlist waits until A&AI has no flavors of a region that was removed: they would block
// the deletion of the region in A&AI. Those that are left are deleted later.
func (i *inventory) unlist(ctx context.Context, region string) {
	if i == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, unlistTime)
	defer cancel()
	i.keeper.Gone(limited, aaisource.RegionID(region))
}

// Regions implements aaisource.Instances.
func (f facts) Regions(ctx context.Context) ([]nf.Region, error) {
	return f.service.catalog.Regions(ctx)
}

// Capabilities implements aaisource.Regions.
func (f facts) Capabilities(ctx context.Context, region string) (nf.RegionCapabilities, error) {
	return f.service.regions().RegionCapabilities(ctx, region, false)
}

// flavorLabels is the lifecycle.FlavorLabels of the classes of nodes that are flavors
// in A&AI.
func flavorLabels(offers nf.RegionCapabilities, flavor string) (alternatives []map[string]string, found bool, flavors []string) {
	nodes := aai.NodesOf(offers.Rooms)
	for _, class := range aai.ClassesOf(nodes) {
		flavors = append(flavors, class.ID)
	}
	alternatives, found = aai.FlavorLabels(nodes, flavor)
	return alternatives, found, flavors
}
