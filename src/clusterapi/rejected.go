package clusterapi

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstPause  = time.Second // after an attempt that found no other credentials; doubled after each
	maxAttempts = 8           // at the same time, each for another region
	maxReadings = 4           // in one attempt, while the cluster does not have new credentials yet
)

// rejections are the regions that have rejected their credentials.
type rejections struct {
	clock   func() time.Time
	longest time.Duration // between two attempts for the same credentials
	wake    delay.Signal

	mu    sync.Mutex
	known map[string]*rejection // by region
}

// rejection is an access that its region has rejected.
type rejection struct {
	region   string
	access   nf.Access
	attempts int
	next     time.Time // no attempt before
	waiting  bool      // for an attempt
	busy     bool      // an attempt is in progress
}

// add records a rejection, unless an attempt for the same credentials waits, is in
// progress, or has ended a moment ago.
func (rs *rejections) add(region string, access nf.Access) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	one := rs.known[region]
	if one == nil || !one.access.Equal(access) {
		one = &rejection{region: region, access: access}
		rs.known[region] = one
	}
	if one.waiting || one.busy || rs.clock().Before(one.next) {
		return
	}
	one.waiting = true
	rs.wake.Send()
}

// take returns the rejections that wait for an attempt, and begins it.
func (rs *rejections) take() []*rejection {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var out []*rejection
	for _, one := range rs.known {
		if one.waiting {
			one.waiting, one.busy = false, true
			out = append(out, one)
		}
	}
	return out
}

// end ends an attempt. If it is settled, the region does not have these credentials any
// longer.
func (rs *rejections) end(one *rejection, settled bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	one.busy, one.next = false, rs.clock().Add(delay.Doubled(firstPause, rs.longest, one.attempts))
	one.attempts++
	if settled && rs.known[one.region] == one {
		delete(rs.known, one.region)
	}
}

// Rejected says that a region has rejected the credentials of an access. Run then reads
// the Secret of its cluster at once: one time for all rejections of the same credentials.
// If the Secret has no others, the next rejection counts after a pause of one second,
// which doubles up to one minute. Rejected returns at once.
func (r *Registrar) Rejected(region string, access nf.Access) { r.rejections.add(region, access) }

// answer handles the rejections of credentials, until the context ends.
func (r *Registrar) answer(ctx context.Context) error {
	var attempts errgroup.Group
	attempts.SetLimit(maxAttempts)
	for ctx.Err() == nil {
		for _, one := range r.rejections.take() {
			attempts.Go(func() error {
				r.rejections.end(one, r.attempt(ctx, one.region, one.access))
				return nil
			})
		}
		select {
		case <-ctx.Done():
		case <-r.rejections.wake:
		}
	}
	return attempts.Wait()
}

// attempt gives a region other credentials than those that it has rejected. It reports
// whether the region has others now, or does not exist.
func (r *Registrar) attempt(ctx context.Context, region string, rejected nf.Access) bool {
	for n := 1; ; n++ {
		settled, err := r.replace(ctx, region, rejected)
		pause := nf.RetryAfterOf(err)
		switch {
		case err == nil, ctx.Err() != nil:
			return settled
		case pause == 0, n == maxReadings:
			r.logUnread(ctx, region, err)
			return settled
		}
		delay.For(ctx, pause, nil)
	}
}

// replace makes an attempt once.
func (r *Registrar) replace(ctx context.Context, id string, rejected nf.Access) (settled bool, err error) {
	region, err := r.cfg.Regions.Region(ctx, id)
	switch {
	case err != nil:
		return nf.KindOf(err) == nf.NotFound, nf.IgnoreNotFound(err)
	case !region.Access.Equal(rejected):
		return true, nil
	case region.Parent == nil:
		return false, nil
	}
	changed, err := r.refresh(ctx, region, true)
	return err == nil && !changed.Access.Equal(rejected), err
}
