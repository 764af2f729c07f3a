package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	syncInterval             = 5 * time.Second  // the registered regions
	dueInterval              = time.Second      // which regions are due for a check
	probeInterval            = 30 * time.Second // a region that is available
	unreachableProbeInterval = 5 * time.Second  // a region that is not, or that signs its certificate
	readyTimeout             = 10 * time.Second
	maxProbes                = 64 // regions checked at the same time
)

// Run keeps the pool in sync with the registered regions, which it reads every
// 5 seconds if they may have changed: it drops the clusters of regions that were deregistered or have
// another access, as Forget does. It checks each region about every 30
// seconds, and about every 5 seconds while the region is unreachable or signs its
// certificate, so that State is current without other requests. It checks up to 64 regions at the
// same time, so that an unreachable one does not delay the others. When the
// context ends, Run stops everything that it started and returns nil.
func (p *Pool) Run(ctx context.Context, regions func(context.Context) ([]nf.Region, error)) error {
	var group errgroup.Group
	group.Go(func() error {
		r := regionList{pool: p, read: regions, unusable: map[string]bool{}}
		repeat(ctx, syncInterval, r.sync)
		return nil
	})
	group.Go(func() error {
		var probes errgroup.Group
		probes.SetLimit(maxProbes)
		repeat(ctx, dueInterval, func(ctx context.Context) { p.probeLoop(ctx, &probes) })
		return probes.Wait()
	})
	return group.Wait()
}

// repeat calls do at once and then at each interval, until the context ends.
func repeat(ctx context.Context, interval time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// regionList is the list of registered regions that a pool is kept in sync with.
type regionList struct {
	pool       *Pool
	read       func(context.Context) ([]nf.Region, error)
	readFailed bool            // the last read failed
	unusable   map[string]bool // ids of regions that could not be opened last time
	last       seen
	inSync     bool // the pool has what was read last, as far as is known
}

// seen is what a pool and the list of regions were before a read.
type seen struct {
	version uint64 // of the list
	changes uint64 // of the pool
}

// sync opens the registered regions, and drops those that are no longer
// registered. Clusters opened after the read started are newer and stay. Each
// failure is logged only once. It reads nothing if neither the list nor the pool has changed
// since the last read: a late request may have opened a former access.
func (r *regionList) sync(ctx context.Context) {
	version, known := r.pool.cfg.RegionsVersion()
	now := seen{version, r.pool.changed()}
	if known && r.inSync && now == r.last {
		return
	}
	r.last, r.inSync = now, false
	log, began := r.pool.cfg.Logger, r.pool.cfg.Clock()
	all, err := r.read(ctx)
	if err != nil {
		if !r.readFailed && ctx.Err() == nil {
			log.WarnContext(ctx, "failed to read the cloud regions; the known ones are kept", "error", err.Error())
		}
		r.readFailed = true
		return
	}
	r.readFailed = false
	registered, usable := map[string]bool{}, true
	for _, region := range all {
		registered[region.ID] = true
		if r.pool.openedAfter(region.ID, began) {
			continue
		}
		_, err := r.pool.Open(region.ID, region.Access)
		if err != nil && !r.unusable[region.ID] {
			log.WarnContext(ctx, "cloud region cannot be opened", "region", region.ID, "error", err.Error())
		}
		r.unusable[region.ID] = err != nil
		usable = usable && err == nil
	}
	for id := range r.pool.clusters() {
		if !registered[id] && !r.pool.openedAfter(id, began) {
			r.pool.Forget(id)
		}
	}
	r.inSync = known && usable
}

// changed returns a number that differs after each change of the pool's clusters.
func (p *Pool) changed() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

func (p *Pool) openedAfter(id string, t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.known[id]
	return e != nil && e.opened.After(t)
}

// probeLoop starts a check of each region that is due.
func (p *Pool) probeLoop(ctx context.Context, probes *errgroup.Group) {
	for _, e := range p.due() {
		probes.Go(func() error {
			e.cluster.checkReady(ctx)
			renewCertificate(ctx, e.cluster)
			p.schedule(e)
			return nil
		})
	}
}

// due returns the regions to check, longest overdue first.
func (p *Pool) due() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Clock()
	var out []*entry
	for _, e := range p.known {
		if !e.probing && !now.Before(e.due) {
			e.probing = true
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return a.due.Compare(b.due) })
	return out
}

// schedule sets the time of the next check of a region: at the usual interval, or when
// its breaker admits the probe.
func (p *Pool) schedule(e *entry) {
	s := e.cluster.state(p.cfg.ExpiryWarning)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Clock()
	interval := probeInterval
	if signing := s.Credential.Request != "" && s.Credential.Failing.IsZero(); signing || s.Condition == nf.RegionUnreachable {
		interval = unreachableProbeInterval
	}
	// The random part spreads the checks of the regions, which may all have been opened at
	// once: the second check comes at any time of the interval.
	least := interval * 9 / 10
	if e.due.Equal(e.opened) {
		least = 0
	}
	e.due, e.probing = now.Add(least+rand.N(interval*11/10-least)), false
	if s.Breaker != nf.BreakerClosed {
		e.due = s.Retry
	}
}

// checkReady requests the readiness of the API server, and so verifies the
// credentials as well. The transport records the result of the request itself.
func (c *Cluster) checkReady(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errSilent)
	defer cancel()
	_, err := c.client.send(ctx, func() *rest.Request { return c.client.verb(http.MethodGet).AbsPath("/readyz") }, nil)
	if reason := checkFailure(ctx, err); reason != "" {
		c.transport.health.markUnreachable(ctx, reason, err)
	}
}

// checkFailure returns the reason of a check's error; "" if the transport has
// already recorded it.
func checkFailure(ctx context.Context, err error) string {
	status, refused := errors.AsType[*apierrors.StatusError](err)
	_, held := errors.AsType[*breaker.OpenError](err)
	switch {
	case err == nil, held, errors.Is(err, errReplaced), errors.Is(ctx.Err(), context.Canceled):
		return ""
	case refused && status.Status().Code < 500:
		return ""
	case refused:
		return "unavailable"
	}
	return unreachable(err)
}
