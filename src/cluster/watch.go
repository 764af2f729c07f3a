package cluster

import (
	"context"
	"iter"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Watch yields the status of each target, at once and whenever it changes,
// until the loop stops or the context ends; an error ends the sequence. A
// status that speaks of an older generation than the target's, or of another
// uid, is not yielded. A workload whose pods cannot start (image pull, crash
// loop, quota) is nf.StatusFailed with the pod's own message. A region that
// stops answering after it once did is waited for; one that is forgotten or gets
// another kubeconfig ends the sequence with nf.Unreachable, reason "replaced".
// When the sequence has ended, nothing of it is left running.
func (c *Cluster) Watch(ctx context.Context, owner string, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		v := newView(owner)
		streams, err := c.streams(ctx, owner, targets, v)
		if err != nil {
			yield(nf.Health{}, err)
			return
		}
		c.follow(ctx, v, streams, targets, yield)
	}
}

// follow runs a view's streams for as long as somebody listens.
func (c *Cluster) follow(ctx context.Context, v *view, streams []*stream, targets []nf.Change, yield func(nf.Health, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		if c.guard.retired() {
			c.guard.CloseIdleConnections()
		}
	}()
	for _, s := range streams {
		running.Go(func() { s.run(ctx) })
	}
	for c.wait(ctx, v) {
		if !v.tell(targets, yield) {
			return
		}
	}
	if ctx.Err() == nil {
		yield(nf.Health{}, c.fail(ctx, "watch", "objects", errReplaced))
	}
}

// wait returns true when there is something to tell, and false when the context
// or the cluster has ended.
func (c *Cluster) wait(ctx context.Context, v *view) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.guard.gone:
		return false
	case <-v.wake:
		return true
	}
}

// tell yields what changed in the view, and reports whether anybody wants more.
func (v *view) tell(targets []nf.Change, yield func(nf.Health, error) bool) bool {
	changed, err := v.take()
	for _, t := range targets {
		if !changed[t.Key()] {
			continue
		}
		if h, ok := v.of(t); ok && h != v.told[t.Key()] {
			v.told[t.Key()] = h
			if !yield(h, nil) {
				return false
			}
		}
	}
	if err != nil {
		yield(nf.Health{}, err)
	}
	return err == nil
}
