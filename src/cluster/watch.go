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
// stops answering after it once did is waited for. When the sequence has ended,
// nothing of it is left running.
func (c *Cluster) Watch(ctx context.Context, owner string, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		v := newView(owner)
		streams, err := c.streams(ctx, owner, targets, v)
		if err != nil {
			yield(nf.Health{}, err)
			return
		}
		v.follow(ctx, streams, targets, yield)
	}
}

// follow runs the view's streams for as long as somebody listens.
func (v *view) follow(ctx context.Context, streams []*stream, targets []nf.Change, yield func(nf.Health, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, s := range streams {
		running.Go(func() { s.run(ctx) })
	}
	v.tell(ctx, targets, yield)
}

// tell yields what changes in the view until nobody listens.
func (v *view) tell(ctx context.Context, targets []nf.Change, yield func(nf.Health, error) bool) {
	last := map[string]nf.Health{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
		changed, err := v.take()
		for _, t := range targets {
			if !changed[t.Key()] {
				continue
			}
			if h, ok := v.of(t); ok && h != last[t.Key()] {
				last[t.Key()] = h
				if !yield(h, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nf.Health{}, err)
			return
		}
	}
}
