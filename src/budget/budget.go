// Package budget limits the memory that all requests together use for the files
// of archives, or for the plans of instances.
//
// Guarantees: requests together never reserve more than the budget, and never
// deadlock: a request that waits fails with nf.TooManyRequests after 10 seconds.
//
// It does not measure memory. Code that holds such files or a plan must reserve as many
// bytes.
package budget

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	leastTotal = 256 << 20        // bytes of a budget
	patience   = 10 * time.Second // how long a request waits for memory
)

// Budget is an amount of memory that requests share. It is safe for concurrent
// use.
//
// Requests that each hold a part of what they need could wait for each other
// forever. Memory is therefore granted only if all requests can still finish, one
// after the other, in some order.
type Budget struct {
	mu      sync.Mutex
	free    int64
	holders map[*Share]struct{} // that have reserved something
	changed chan struct{}       // closed when memory is released
}

// New returns a budget for requests that each need at most the given number of
// bytes. Its size is 256 MiB, or what one request needs if that is more.
func New(most int64) *Budget {
	return &Budget{free: max(leastTotal, most), holders: map[*Share]struct{}{}, changed: make(chan struct{})}
}

// Open returns an empty share for a request that holds at most the given number of
// bytes at a time. The caller must close it.
func (b *Budget) Open(most int64) *Share { return &Share{budget: b, most: most} }

// reserve reserves bytes for a request once they are free.
func (b *Budget) reserve(ctx context.Context, r *Share, n int64) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		reserved, changed := b.try(r, n)
		if reserved {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nf.E(nf.Cancelled, "wait for", "memory", context.Cause(ctx))
		case <-timeout.C:
			return Taken(patience)
		}
	}
}

// Taken returns the error of a request that gets no memory.
func Taken(retryAfter time.Duration) error {
	return &nf.Error{Kind: nf.TooManyRequests, Op: "reserve", Subject: "memory", RetryAfter: retryAfter,
		Err: errors.New("other requests use all memory for packages and plans; try again later")}
}

// try reserves bytes if they are free. Otherwise it returns a channel that is closed
// when memory is released.
func (b *Budget) try(r *Share, n int64) (reserved bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < n {
		return false, b.changed
	}
	_, before := b.holders[r]
	b.holders[r] = struct{}{}
	b.free -= n
	r.reserved += n
	if b.safe() {
		return true, nil
	}
	b.free += n
	r.reserved -= n
	if !before {
		delete(b.holders, r)
	}
	return false, b.changed
}

// safe reports whether all holders can finish one after the other (the banker's
// algorithm). Each may use what is free and what the ones before it have
// released.
func (b *Budget) safe() bool {
	most := int64(0)
	for r := range b.holders {
		most = max(most, r.most-r.reserved)
	}
	if most <= b.free {
		return true
	}
	holders := slices.SortedFunc(maps.Keys(b.holders), func(x, y *Share) int {
		return cmp.Compare(x.most-x.reserved, y.most-y.reserved)
	})
	free := b.free
	for _, r := range holders {
		if r.most-r.reserved > free {
			return false
		}
		free += r.reserved
	}
	return true
}

// release returns n reserved bytes to the budget.
func (b *Budget) release(r *Share, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.reserved -= n
	b.free += n
	if r.reserved == 0 {
		delete(b.holders, r)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}
