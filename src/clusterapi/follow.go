package clusterapi

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Run follows the Secrets of the clusters that are regions, until the context ends. It
// reads each once in a period, and at once when the region rejects its credentials
// (Rejected). If the Secret has another kubeconfig, it updates the region and hands it
// over again. If the account of a region is that of an earlier release, it applies the
// account again. Several replicas may run it at the same time.
func (r *Registrar) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return r.answer(ctx) })
	group.Go(func() error {
		for ctx.Err() == nil {
			r.follow(ctx)
			delay.For(ctx, r.cfg.Pause, nil)
		}
		return nil
	})
	return group.Wait()
}

// follow looks at all regions once.
func (r *Registrar) follow(ctx context.Context) {
	for region, err := range r.cfg.Regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			r.cfg.Logger.WarnContext(ctx, "failed to list the cloud regions whose credentials are followed", "error", err)
			return
		}
		if region.Parent == nil || !r.due(region) {
			continue
		}
		if _, err := r.refresh(ctx, region, false); err != nil && ctx.Err() == nil {
			r.logUnread(ctx, region.ID, err)
		}
	}
}

func (r *Registrar) logUnread(ctx context.Context, region string, err error) {
	r.cfg.Logger.WarnContext(ctx, "failed to read the credentials of a cloud region again", "region", region, "error", err)
}

// due reports whether the Secret of a region is to be read, and counts it as read.
func (r *Registrar) due(region nf.Region) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock()
	last, known := r.read[region.ID]
	if !known {
		last = region.Created
	}
	if now.Sub(last) < r.cfg.Period {
		return false
	}
	r.read[region.ID] = now
	return true
}

// refresh reads the Secret of a region again, and updates the region as renew does, in any
// case if the region has rejected its credentials. It returns the region.
// Its errors are those of Register.
func (r *Registrar) refresh(ctx context.Context, region nf.Region, rejected bool) (nf.Region, error) {
	p := *region.Parent
	source, err := r.secret(ctx, p)
	if err != nil {
		return region, err
	}
	always := func(context.Context) error { return nil }
	changed, err := r.renew(ctx, always, region, renewal{p, source, rejected})
	if err != nil {
		return region, err
	}
	return changed, r.handOver(ctx, always, changed)
}
