package bundle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// collectEvery is the interval of garbage collection.
const collectEvery = 10 * time.Minute

// Instances returns the present instances.
type Instances interface {
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// Instances returns all instances.
	Instances(ctx context.Context) ([]nf.Instance, error)
}

// Run collects garbage every 10 minutes until the context ends: it deletes the
// records of deleted instances and regions, and composed packages that are no
// longer needed. It logs errors and retries after the interval. Region returns a
// region, or nf.NotFound.
func (b *Bundles) Run(ctx context.Context, present Instances, region func(ctx context.Context, id string) (nf.Region, error), log *slog.Logger) {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := b.collect(ctx, present, region); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "failed to delete stale resource bundle records; will retry", "error", err)
		}
	}
}

func (b *Bundles) collect(ctx context.Context, present Instances, region func(ctx context.Context, id string) (nf.Region, error)) error {
	records := b.InstanceRecords()
	exists := func(ctx context.Context, id string) (bool, error) {
		_, err := present.Instance(ctx, id)
		if nf.KindOf(err) == nf.NotFound {
			return false, nil
		}
		return err == nil, err
	}
	if err := errors.Join(records.Sweep(ctx, exists), b.SweepConnections(ctx, region)); err != nil {
		return err
	}
	composed, err := b.composed.List(ctx, "")
	if err != nil || len(composed) == 0 {
		return err // what uses packages need not be read
	}
	used, err := records.Packages(ctx)
	if err != nil {
		return err
	}
	all, err := present.Instances(ctx)
	if err != nil {
		return err
	}
	for _, in := range all {
		for _, a := range in.Amendments {
			used[a.Package] = true
		}
	}
	return b.Sweep(ctx, func(id string) bool { return used[id] })
}
