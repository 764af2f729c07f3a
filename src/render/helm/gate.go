package helm

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const maxWait = 30 * time.Second

// gate limits how many charts are read or rendered at once, since each may take
// more than a hundred megabytes. The others wait, first come, first served.
type gate struct {
	places *semaphore.Weighted
	number int
	wait   time.Duration
}

func newGate(number int, wait time.Duration) *gate {
	return &gate{places: semaphore.NewWeighted(int64(number)), number: number, wait: wait}
}

// enter waits for a place; leave returns it. The error is of kind nf.TooMany when
// the wait takes too long, and nf.Cancelled or nf.Timeout when the context ends. A
// nil gate has no limit.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	waiting, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	if g.places.Acquire(waiting, 1) == nil {
		return func() { g.places.Release(1) }, nil
	}
	if ctx.Err() != nil {
		end := ended(ctx)
		return nil, nf.E(end.kind, "read", "package", end)
	}
	return nil, &nf.Error{
		Kind: nf.TooMany, Op: "read", Subject: "package", After: g.wait / 2,
		Err: fmt.Errorf("%d renderings of charts are under way; try again", g.number),
	}
}
