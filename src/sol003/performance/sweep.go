package performance

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sweep deletes what a crash has left of jobs and thresholds: reports, periods, and
// callbacks that are older than any request that creates them.
func (m *Meter) sweep(ctx context.Context) error {
	known := map[string]bool{}
	for job, err := range m.jobs.All(ctx, "") {
		if err != nil {
			return err
		}
		known[job.ID] = true
	}
	for t, err := range m.thresholds.All(ctx, "") {
		if err != nil {
			return err
		}
		known[t.ID] = true
	}
	for r, err := range m.reports.All(ctx, "") {
		if err == nil && !known[r.Job] {
			err = nf.IgnoreNotFound(m.reports.Delete(ctx, r.Job+"/"+r.ID))
		}
		if err != nil {
			return err
		}
	}
	return m.sweepCallbacks(ctx, known)
}

func (m *Meter) sweepCallbacks(ctx context.Context, known map[string]bool) error {
	for s, err := range m.cfg.Callbacks.SubscriptionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return err
		}
		if s.Interface != nf.VNFPerformance || known[s.ID] || m.now().Sub(s.Created) < sweepEvery {
			continue
		}
		if err := nf.IgnoreNotFound(m.periods.Delete(ctx, s.ID)); err != nil {
			return err
		}
		if err := nf.IgnoreNotFound(m.cfg.Callbacks.Unsubscribe(ctx, s.ID)); err != nil {
			return err
		}
	}
	return nil
}
