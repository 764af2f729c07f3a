package main

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/drift"
	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// watchHealth creates what watches the objects of instances.
func (s *service) watchHealth(obs observability) (err error) {
	if s.drift, err = drift.New(drift.Config{Source: s.engine, Logger: obs.log}); err != nil {
		return err
	}
	s.health, err = health.New(health.Config{Source: sightings{s.engine, s.catalog, s.pool, s.drift}, Logger: obs.log})
	return err
}

// sightings provides the state of regions and workloads to the health watcher. The drift
// watcher sees what the health watcher reads and watches.
type sightings struct {
	engine  *lifecycle.Engine
	catalog *catalog.Catalog
	pool    *cluster.Pool
	drift   *drift.Watcher
}

var _ health.Source = sightings{}

// Instances implements health.Source.
func (s sightings) Instances(ctx context.Context) iter.Seq2[nf.Instance, error] {
	return func(yield func(nf.Instance, error) bool) {
		var followed []nf.Instance
		opens := map[string]bool{} // regions
		for in, err := range s.engine.InstancesIn(ctx, "", nf.Cursor{}) {
			if err == nil && !opens[in.Region] && s.pool.State(in.Region).Condition == nf.RegionUnknown {
				opens[in.Region] = true
				_, _ = opened(s.catalog, s.pool)(ctx, in.Region) // so that Canonical knows its access; Census reports the error
			}
			if !yield(in, err) {
				return
			}
			if drift.Follows(in) {
				followed = append(followed, in)
			}
		}
		s.drift.Follow(followed)
	}
}

// Region implements health.Source.
func (s sightings) Region(id string) nf.RegionState { return s.pool.State(id) }

// Canonical implements health.Source.
func (s sightings) Canonical(region string) string { return s.pool.Canonical(region) }

// Census implements health.Source.
func (s sightings) Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[health.Mark, error] {
	return func(yield func(health.Mark, error) bool) {
		c, err := opened(s.catalog, s.pool)(ctx, region)
		if err != nil {
			yield(health.Mark{}, err)
			return
		}
		follower := s.drift.Census(func(other string) bool { return s.pool.Canonical(other) == region }, kind)
		for m, err := range c.Census(ctx, kind) {
			if err == nil {
				follower.See(drift.Mark(m))
			}
			if !yield(health.Mark{Owner: m.Owner, Key: m.Key, Status: m.Status, Synced: m.Synced}, err) {
				return
			}
		}
	}
}
