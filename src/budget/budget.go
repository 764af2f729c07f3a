// Package budget limits the memory that all requests together use for archives.
//
// Guarantees: the buffers of a budget together never hold more than the budget,
// and requests never deadlock: a request that waits fails with nf.TooManyRequests after
// 10 seconds.
//
// It does not measure memory. Code that holds an archive, or the files of one,
// must reserve as many bytes first.
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
// Memory is reserved as the bytes of an archive arrive, so a slow client
// reserves little. Requests that each hold a part of what they need could wait
// for each other forever. Memory is therefore granted only if all requests can
// still finish, one after the other, in some order.
type Budget struct {
	archive  int64 // bytes of the largest archive
	unpacked int64 // bytes of its files

	mu      sync.Mutex
	free    int64
	holders map[*Buffer]struct{} // buffers that have reserved something
	changed chan struct{}        // closed when memory is released
}

// New returns a budget for archives of at most archive bytes that unpack to at
// most unpacked bytes. Its size is 256 MiB, or what the largest archives need
// if that is more.
func New(archive, unpacked int64) *Budget {
	b := &Budget{archive: archive, unpacked: unpacked}
	b.free = max(leastTotal, b.needs(2*unpacked)) // a package can be composed of the files of two archives
	b.holders, b.changed = map[*Buffer]struct{}{}, make(chan struct{})
	return b
}

// needs returns the maximum number of bytes that an upload holds at a time.
// Until its files are unpacked, it also holds the given number of other bytes.
func (b *Budget) needs(besides int64) int64 {
	largest := b.archive + 1
	growing := largest + largest/2 // when the buffer is copied into a larger one
	return max(besides+growing, largest+b.unpacked)
}

// Open returns an empty buffer for a request that holds at most the given
// number of bytes at a time. The caller must close it.
func (b *Budget) Open(most int64) *Buffer { return &Buffer{budget: b, most: most} }

// Upload returns an empty buffer for an archive that is uploaded and unpacked
// for checking. The request also reserves the given number of other bytes,
// which it must release before unpacking. The caller must close the buffer.
func (b *Budget) Upload(besides int64) *Buffer { return b.Open(b.needs(besides)) }

// reserve reserves bytes for a buffer once they are free.
func (b *Budget) reserve(ctx context.Context, r *Buffer, n int64) error {
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
			return &nf.Error{Kind: nf.TooManyRequests, Op: "reserve", Subject: "memory", RetryAfter: patience,
				Err: errors.New("other requests use all memory for packages; try again later")}
		}
	}
}

// try reserves bytes if they are free. Otherwise it returns a channel that is closed
// when memory is released.
func (b *Budget) try(r *Buffer, n int64) (reserved bool, changed <-chan struct{}) {
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
	holders := slices.SortedFunc(maps.Keys(b.holders), func(x, y *Buffer) int {
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

// release returns n reserved bytes of a buffer to the budget.
func (b *Budget) release(r *Buffer, n int64) {
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
