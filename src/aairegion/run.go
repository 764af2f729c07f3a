package aairegion

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// rejectedPause is how long a region's credentials are not read again because of a
// rejection.
const rejectedPause = time.Minute

// rejections are the regions that have rejected their credentials.
type rejections struct {
	clock func() time.Time
	wake  delay.Signal

	mu      sync.Mutex
	last    map[string]time.Time // when the credentials of a region were read because of a rejection
	waiting []string
}

func (rs *rejections) add(region string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := rs.clock()
	if last, known := rs.last[region]; known && now.Sub(last) < rejectedPause {
		return
	}
	rs.last[region] = now
	rs.waiting = append(rs.waiting, region)
	rs.wake.Send()
}

// take returns the regions whose credentials are to be read.
func (rs *rejections) take() []string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := rs.waiting
	rs.waiting = nil
	return out
}

// Rejected says that a region has rejected the credentials of an access. If the region is
// an imported one, Run then reads its credentials again: once in a minute. Rejected
// returns at once.
func (i *Importer) Rejected(region string, _ nf.Access) { i.rejected.add(region) }

// Run compares the imported regions with A&AI, until the context ends: all in each period,
// on one replica, and one that rejects its credentials, or that an event is about, at once.
func (i *Importer) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { i.answer(ctx); return nil })
	group.Go(func() error { return i.cfg.Lead(ctx, i.poll) })
	if i.cfg.Events != nil {
		group.Go(func() error { i.heed(ctx); return nil })
	}
	return group.Wait()
}

// answer reads the credentials of regions that reject theirs.
func (i *Importer) answer(ctx context.Context) {
	for ctx.Err() == nil {
		for _, id := range i.rejected.take() {
			region, err := i.cfg.Regions.Region(ctx, id)
			if err == nil && region.AAI != nil {
				_, err = i.compare(ctx, region, true)
			}
			i.report(ctx, id, nf.IgnoreNotFound(err))
		}
		select {
		case <-ctx.Done():
		case <-i.rejected.wake:
		}
	}
}

func (i *Importer) report(ctx context.Context, region string, err error) {
	if err != nil && ctx.Err() == nil {
		i.cfg.Logger.WarnContext(ctx, "failed to compare a cloud region with A&AI", "region", region, "error", err)
	}
}

// poll compares all imported regions with A&AI in each period.
func (i *Importer) poll(ctx context.Context) {
	for ctx.Err() == nil {
		for region, err := range i.cfg.Regions.RegionsFrom(ctx, nf.Cursor{}) {
			if err == nil && region.AAI != nil {
				_, err = i.compare(ctx, region, false)
			}
			i.report(ctx, region.ID, err)
		}
		if i.cfg.All {
			i.importAll(ctx)
		}
		delay.For(ctx, i.cfg.Period, nil)
	}
}

// importAll imports the clusters of A&AI that are not registered. It imports none of
// several that have the same id.
func (i *Importer) importAll(ctx context.Context) {
	all, err := i.cfg.Inventory.CloudRegions(ctx, "")
	if err != nil {
		i.cfg.Observe(Failed)
		i.report(ctx, "", err)
		return
	}
	owners := map[string]int{}
	for _, c := range all {
		if i.cfg.Rules.IsCluster(c) {
			owners[c.ID]++
		}
	}
	for _, c := range all {
		if !i.cfg.Rules.IsCluster(c) || owners[c.ID] > 1 || len(nf.CheckID("", c.ID)) > 0 {
			continue
		}
		_, err := i.Find(ctx, c.Owner, c.ID)
		i.report(ctx, c.ID, nf.IgnoreNotFound(err))
	}
}
