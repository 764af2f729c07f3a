package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const (
	uploadMemory = 256 << 20        // bytes that all uploads together may use
	uploadWait   = 10 * time.Second // how long an upload waits for memory
	firstBuffer  = 64 << 10         // bytes of the first buffer of an upload
)

// budget limits the memory of all uploads together. Uploads reserve memory as their
// bytes arrive, so a slow client reserves little.
//
// Uploads that each have a part of what they need could wait for each other forever.
// A request is therefore granted only if the free memory still covers what the
// largest reservation may need to finish. Once that upload has finished, the same
// holds for the next.
type budget struct {
	most int64 // that one upload may reserve

	mu           sync.Mutex
	free         int64
	reservations map[*reservation]struct{}
	changed      chan struct{} // closed when memory is released
}

// reservation is the memory that one upload has reserved.
type reservation struct {
	budget *budget
	bytes  int64
}

// newBudget returns the budget for uploads within limits. An upload needs most when
// its buffer is copied into one of twice the size, or when its files are unpacked.
func newBudget(l render.Limits) *budget {
	largest := l.Archive + 1
	most := largest + max(largest/2, l.Unpacked)
	return &budget{most: most, free: max(uploadMemory, most), reservations: map[*reservation]struct{}{}, changed: make(chan struct{})}
}

// open returns an empty reservation.
func (b *budget) open() *reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &reservation{budget: b}
	b.reservations[r] = struct{}{}
	return r
}

// close releases the whole reservation.
func (r *reservation) close() {
	r.release(r.bytes)
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	delete(r.budget.reservations, r)
}

// release releases some bytes of the reservation.
func (r *reservation) release(n int64) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.bytes -= n
	r.budget.free += n
	close(r.budget.changed)
	r.budget.changed = make(chan struct{})
}

// reserve adds bytes to the reservation, and waits until they are free. It returns
// nf.TooMany if that takes too long, and nf.Cancelled if the context ends.
func (r *reservation) reserve(ctx context.Context, n int64) error {
	timeout := time.NewTimer(uploadWait)
	defer timeout.Stop()
	for {
		reserved, changed := r.try(n)
		if reserved {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nf.E(nf.Cancelled, "wait for", "memory", context.Cause(ctx))
		case <-timeout.C:
			return &nf.Error{Kind: nf.TooMany, Op: "reserve", Subject: "memory", After: uploadWait,
				Err: errors.New("other uploads use all memory that uploads may use; try again later")}
		}
	}
}

// try reserves bytes if they are free. Otherwise it returns a channel that is closed
// when memory is released.
func (r *reservation) try(n int64) (reserved bool, changed <-chan struct{}) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	largest := r.bytes + n
	for other := range b.reservations {
		largest = max(largest, other.bytes)
	}
	if b.free-n < b.most-largest {
		return false, b.changed
	}
	r.bytes += n
	b.free -= n
	return true, nil
}
