package aairegion

import (
	"context"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// heed follows the events of A&AI until the context ends.
func (i *Importer) heed(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		err := i.cfg.Events(ctx, func(ctx context.Context, message []byte) error {
			failures = 0
			i.hint(ctx, message)
			return ctx.Err() // the message is received again
		})
		if ctx.Err() != nil {
			return
		}
		pause := delay.Doubled(firstPause, longestPause, failures)
		i.cfg.Logger.WarnContext(ctx, "events of A&AI paused; will retry", "error", err, "pause_s", pause.Seconds())
		delay.For(ctx, pause, nil)
	}
}

// hint compares the region that an event is about. The event itself is not used, because
// events may arrive twice and in any order. A comparison that fails is not repeated for
// the event; the next period does it.
func (i *Importer) hint(ctx context.Context, message []byte) {
	e, err := aai.ParseEvent(message)
	if err != nil {
		i.report(ctx, "", err)
		return
	}
	if e.Region == "" || e.Source == i.cfg.Source || !slices.Contains([]string{"cloud-region", "esr-system-info"}, e.Type) {
		return
	}
	region, err := i.cfg.Regions.Region(ctx, e.Region)
	switch {
	case nf.KindOf(err) == nf.NotFound && i.cfg.All && len(nf.CheckID("", e.Region)) == 0:
		_, err = i.Import(ctx, e.Owner, e.Region)
	case err == nil && region.AAI != nil && region.AAI.Owner == e.Owner:
		_, err = i.compare(ctx, region, false)
	}
	i.report(ctx, e.Region, nf.IgnoreNotFound(err))
}
