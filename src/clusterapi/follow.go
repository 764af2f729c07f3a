package clusterapi

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Run follows the Secrets of the clusters that are regions, until the context ends. It
// reads each once in a period, and at once when the region rejects its credentials. If the
// Secret has another kubeconfig, it updates the region and hands it over again. Several
// replicas may run it at the same time.
func (r *Registrar) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		r.follow(ctx)
		delay.For(ctx, r.cfg.Pause, nil)
	}
	return nil
}

// follow looks at all regions once.
func (r *Registrar) follow(ctx context.Context) {
	for region, err := range r.cfg.Regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			r.cfg.Logger.WarnContext(ctx, "failed to list the cloud regions whose credentials are followed", "error", err)
			return
		}
		if region.Parent == nil {
			continue
		}
		denied := r.cfg.State(region.ID).Reason == nf.ReasonUnauthorized
		if !denied && !r.due(region) {
			continue
		}
		if err := r.Refresh(ctx, region, denied); err != nil && ctx.Err() == nil {
			r.cfg.Logger.WarnContext(ctx, "failed to read the credentials of a cloud region again", "region", region.ID, "error", err)
		}
	}
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

// Refresh reads the Secret of a region again, and updates the region if the Secret has
// another kubeconfig or the region has rejected its credentials. Its errors are those of
// Register.
func (r *Registrar) Refresh(ctx context.Context, region nf.Region, denied bool) error {
	p := *region.Parent
	source, err := r.secret(ctx, p)
	if err != nil {
		return err
	}
	always := func(context.Context) error { return nil }
	changed, err := r.renew(ctx, always, region, renewal{p, source, denied})
	if err != nil {
		return err
	}
	return r.handOver(ctx, always, changed)
}
