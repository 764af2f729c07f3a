package cluster

import (
	"context"
	"time"
)

// pendingDiscovery is a discovery that several callers wait for.
type pendingDiscovery struct {
	done      chan struct{} // closed when it has ended
	kinds     *kinds
	err       error
	abandoned bool // the context of the caller that made it has ended
}

// cached returns the known kinds if they are enough, and otherwise reads them. At most one
// such discovery is in progress: others wait for it, and use its kinds if they are enough.
// Enough is called with kinds that are known, and with their age.
func (a *apis) cached(ctx context.Context, enough func(known *kinds, age time.Duration) bool) (*kinds, error) {
	for waited := 0; ; waited++ {
		a.mu.Lock()
		if known := a.known; known != nil && enough(known, a.clock().Sub(a.read)) {
			a.mu.Unlock()
			return known, nil
		}
		d := a.running
		if d == nil {
			d = &pendingDiscovery{done: make(chan struct{})}
			a.running = d
			a.mu.Unlock()
			return a.conduct(ctx, d)
		}
		a.mu.Unlock()
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, a.unreadable(ctx, context.Cause(ctx))
		}
		// The first one may have begun before a requested kind was served.
		if !d.abandoned && (d.err != nil || waited > 0) {
			return d.kinds, d.err
		}
	}
}

// conduct makes the discovery for those that wait for it.
func (a *apis) conduct(ctx context.Context, d *pendingDiscovery) (*kinds, error) {
	d.kinds, d.err = a.discover(ctx)
	d.abandoned = d.err != nil && ctx.Err() != nil
	a.mu.Lock()
	a.running = nil
	a.mu.Unlock()
	close(d.done)
	return d.kinds, d.err
}
