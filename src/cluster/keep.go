package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	rereadEvery = 5 * time.Second  // the regions that there are
	lookEvery   = time.Second      // which regions are due to be asked
	askEvery    = 30 * time.Second // a region that is well
	askSoon     = 5 * time.Second  // a region that is not
	askTimeout  = 10 * time.Second
	askTogether = 64 // regions
)

// Run keeps the pool in step with the registered regions, which it reads every
// few seconds: the clusters of regions that are gone, or whose kubeconfig is
// another now, are dropped as Forget does. It asks each region twice a minute
// how it is doing, and more often while it is unreachable, so that State needs
// no other requests to be right. A region that gives no answer is in nobody's
// way. When the context ends, Run returns nil, and nothing of it is left running.
func (p *Pool) Run(ctx context.Context, regions func(context.Context) ([]nf.Region, error)) error {
	var group errgroup.Group
	group.Go(func() error {
		r := register{pool: p, read: regions, unusable: map[string]bool{}}
		every(ctx, rereadEvery, r.follow)
		return nil
	})
	group.Go(func() error {
		var asking errgroup.Group
		asking.SetLimit(askTogether)
		every(ctx, lookEvery, func(ctx context.Context) { p.patrol(ctx, &asking) })
		return asking.Wait()
	})
	return group.Wait()
}

// every calls do at once and then at intervals, until the context ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
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

// register is the list of the regions that there are, which a pool follows.
type register struct {
	pool     *Pool
	read     func(context.Context) ([]nf.Region, error)
	blind    bool            // it could not be read last time
	unusable map[string]bool // ids of regions that could not be opened last time
}

// follow opens the regions that there are, and drops those that are gone. What
// was opened since they were read is newer, and stays. Trouble is logged once.
func (r *register) follow(ctx context.Context) {
	log, began := r.pool.cfg.Logger, r.pool.cfg.Clock()
	all, err := r.read(ctx)
	if err != nil {
		if !r.blind && ctx.Err() == nil {
			log.WarnContext(ctx, "cloud regions cannot be read; those that are known are kept", "error", err.Error())
		}
		r.blind = true
		return
	}
	r.blind = false
	registered := map[string]bool{}
	for _, region := range all {
		registered[region.ID] = true
		if r.pool.openedAfter(region.ID, began) {
			continue
		}
		_, err := r.pool.Open(region.ID, region.Kubeconfig)
		if err != nil && !r.unusable[region.ID] {
			log.WarnContext(ctx, "cloud region cannot be opened", "region", region.ID, "error", err.Error())
		}
		r.unusable[region.ID] = err != nil
	}
	for id := range r.pool.clusters() {
		if !registered[id] && !r.pool.openedAfter(id, began) {
			r.pool.Forget(id)
		}
	}
}

func (p *Pool) openedAfter(id string, t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.known[id]
	return e != nil && e.opened.After(t)
}

// patrol asks the regions that are due how they are doing.
func (p *Pool) patrol(ctx context.Context, asking *errgroup.Group) {
	for _, e := range p.due() {
		asking.Go(func() error {
			e.cluster.check(ctx)
			p.asked(e)
			return nil
		})
	}
}

// due returns the regions that are to be asked, those that wait longest first.
func (p *Pool) due() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Clock()
	var out []*entry
	for _, e := range p.known {
		if !e.asked && !now.Before(e.due) {
			e.asked = true
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return a.due.Compare(b.due) })
	return out
}

// asked says when a region that was asked is due again: one that is held back,
// when its breaker lets the probe through.
func (p *Pool) asked(e *entry) {
	breaker, retry := e.cluster.guard.breaker.now()
	condition := e.cluster.state(p.cfg.ExpiryWarning).Condition
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Clock()
	interval := askEvery
	if condition == nf.RegionUnreachable {
		interval = askSoon
	}
	// A random part, so that the regions are not asked all at once.
	e.due, e.asked = now.Add(interval*9/10+rand.N(interval/5)), false
	if breaker != nf.BreakerClosed {
		e.due = retry
	}
}

// check asks the API server whether it is ready, and lets in whom we are. What
// comes of the request itself, the guard has noted.
func (c *Cluster) check(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
	defer cancel()
	_, err := c.send(ctx, func() *rest.Request { return c.rest.Get().AbsPath("/readyz") }, nil)
	if reason := troubleOf(ctx, err); reason != "" {
		c.guard.standing.bad(ctx, reason, err)
	}
}

// troubleOf says what a check's error tells of the region; "" for nothing more
// than the guard knows.
func troubleOf(ctx context.Context, err error) string {
	status, refused := errors.AsType[*apierrors.StatusError](err)
	_, held := errors.AsType[*shut](err)
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
