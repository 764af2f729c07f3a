package operation

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

// queue hands out jobs in FIFO order, as far as places are free. No
// region may take the last quarter of the slots from the others: an unreachable
// region would occupy them all.
//
// Only an operation that acts needs a slot. One that waits gives its slot back.
type queue struct {
	places int
	wake   delay.Signal // receives a token when an operation that was left can have a slot

	mu      sync.Mutex
	jobs    []Job
	waiters []slotWaiter   // operations that want a slot again; they precede new ones
	active  map[string]int // slots taken, by region
	taken   int
	left    map[string]bool // regions of operations that were left to any replica, for lack of a slot
	before  map[string]bool // left before the list of work that is being read
	changed delay.Signal    // holds a token when a job may be handed out
}

type slotWaiter struct {
	region  string
	granted chan struct{} // closed when it has the slot
}

func newQueue(places int, wake delay.Signal) *queue {
	return &queue{places: places, wake: wake, active: map[string]int{}, left: map[string]bool{}, before: map[string]bool{}, changed: delay.NewSignal()}
}

func (q *queue) push(j Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, j)
	q.changed.Send()
}

// isFull reports whether another job of the region would have to wait. Queued
// jobs that are about to start take their slots first.
func (q *queue) isFull(region string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, active := q.taken, maps.Clone(q.active)
	for _, j := range q.jobs {
		switch {
		case q.room(taken, active[j.Region]):
			taken++
			active[j.Region]++
		case j.Region == region:
			return true
		}
	}
	return !q.room(taken, active[region])
}

// leave records that an operation of the region was left to any replica.
func (q *queue) leave(region string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left[region] = true
}

// leaves reports whether an operation of the region must be left to any replica, for
// lack of a slot.
func (q *queue) leaves(region string) bool {
	if !q.isFull(region) {
		return false
	}
	q.leave(region)
	return q.isFull(region) // still: a slot that becomes free from now on causes a scan
}

// hasLeft reports whether operations of the region may have been left, and not been
// taken since. A new one must not overtake them.
func (q *queue) hasLeft(region string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left[region] || q.before[region]
}

// beginScan is called before the list of work is read, which shows what is left.
func (q *queue) beginScan() {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.Copy(q.before, q.left)
	clear(q.left)
}

// endScan is called when all that the list of work shows was left again, or taken.
func (q *queue) endScan() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.before)
}

// depth returns how many jobs wait for a slot.
func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

// next waits for a job that may start, and takes a slot for it. It fails when
// the context ends.
func (q *queue) next(ctx context.Context) (Job, error) {
	for {
		if ctx.Err() != nil {
			return Job{}, ctx.Err()
		}
		if j, ok := q.pop(); ok {
			return j, nil
		}
		select {
		case <-ctx.Done():
			return Job{}, ctx.Err()
		case <-q.changed:
		}
	}
}

func (q *queue) pop() (Job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.jobs, func(j Job) bool { return q.fits(j.Region) })
	if at < 0 {
		return Job{}, false
	}
	j := q.jobs[at]
	q.jobs = slices.Delete(q.jobs, at, at+1)
	q.grant(j.Region)
	q.changed.Send() // there may be more than one
	return j, true
}

// fits reports whether a region may have another slot.
func (q *queue) fits(region string) bool { return q.room(q.taken, q.active[region]) }

// room reports whether a region with active slots may have another, if taken
// slots are in use in total.
func (q *queue) room(taken, active int) bool {
	reserve := q.places / 4
	free := q.places - taken
	return free > reserve || free > 0 && active < max(reserve, 1)
}

func (q *queue) grant(region string) {
	q.active[region]++
	q.taken++
}

// releaseSlot gives a slot back.
func (q *queue) releaseSlot(region string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if q.active[region]--; q.active[region] == 0 {
		delete(q.active, region)
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(c slotWaiter) bool {
		if !q.fits(c.region) {
			return false
		}
		q.grant(c.region)
		close(c.granted)
		return true
	})
	q.changed.Send()
	for _, left := range [...]map[string]bool{q.left, q.before} {
		for region := range left {
			if q.fits(region) {
				q.wake.Send()
			}
		}
	}
}

// reacquireSlot waits for a slot for an operation that has given its own back. It does
// not fail: an operation whose context has ended needs a slot to record that.
func (q *queue) reacquireSlot(region string) {
	q.mu.Lock()
	if q.fits(region) {
		q.grant(region)
		q.mu.Unlock()
		return
	}
	c := slotWaiter{region: region, granted: make(chan struct{})}
	q.waiters = append(q.waiters, c)
	q.mu.Unlock()
	<-c.granted
}

// clear removes the jobs that have not started.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = nil
}
