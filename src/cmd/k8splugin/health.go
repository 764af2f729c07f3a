package main

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sightings provides the state of regions and workloads to the health watcher.
type sightings struct {
	engine  *lifecycle.Engine
	catalog *catalog.Catalog
	pool    *cluster.Pool
}

var _ health.Source = sightings{}

// Instances implements health.Source.
func (s sightings) Instances(ctx context.Context) ([]nf.Instance, error) {
	return s.engine.Instances(ctx)
}

// Region implements health.Source.
func (s sightings) Region(id string) nf.RegionState { return s.pool.State(id) }

// Census implements health.Source.
func (s sightings) Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[health.Mark, error] {
	return func(yield func(health.Mark, error) bool) {
		c, err := opened(s.catalog, s.pool)(ctx, region)
		if err != nil {
			yield(health.Mark{}, err)
			return
		}
		for m, err := range c.Census(ctx, kind) {
			if !yield(health.Mark(m), err) {
				return
			}
		}
	}
}
