package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// job is an operation that this replica has claimed.
type job struct {
	id, region string
	token      string
}

// queue hands out jobs, first in first out, as far as there are places. A
// region may not take the last quarter of them from the others: one that does
// not answer would hold them all.
//
// A place is for an operation that acts. One that only waits gives it back.
type queue struct {
	places int

	mu      sync.Mutex
	jobs    []job
	callers []caller       // operations that want a place again; they come before new ones
	active  map[string]int // places taken, by region
	taken   int
	changed chan struct{} // holds a token when something may be handed out
}

type caller struct {
	region string
	called chan struct{} // closed when it has the place
}

func newQueue(places int) *queue {
	return &queue{places: places, active: map[string]int{}, changed: make(chan struct{}, 1)}
}

func (q *queue) push(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, j)
	q.signal()
}

// crowded reports whether a further job of the region would have to wait. Jobs
// that are in the queue, and about to be handed out, take their places first.
func (q *queue) crowded(region string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, active := q.taken, maps.Clone(q.active)
	for _, j := range q.jobs {
		switch {
		case q.room(taken, active[j.region]):
			taken++
			active[j.region]++
		case j.region == region:
			return true
		}
	}
	return !q.room(taken, active[region])
}

// depth returns how many jobs wait for a place.
func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

// next waits for a job that may begin, and takes a place for it, until the
// context ends.
func (q *queue) next(ctx context.Context) (job, error) {
	for {
		if ctx.Err() != nil {
			return job{}, ctx.Err()
		}
		if j, ok := q.pop(); ok {
			return j, nil
		}
		select {
		case <-ctx.Done():
			return job{}, ctx.Err()
		case <-q.changed:
		}
	}
}

func (q *queue) pop() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.jobs, func(j job) bool { return q.fits(j.region) })
	if at < 0 {
		return job{}, false
	}
	j := q.jobs[at]
	q.jobs = slices.Delete(q.jobs, at, at+1)
	q.grant(j.region)
	q.signal() // there may be more than one
	return j, true
}

// fits reports whether a region may have another place.
func (q *queue) fits(region string) bool { return q.room(q.taken, q.active[region]) }

// room reports whether a region that has some of the taken places may have
// another.
func (q *queue) room(taken, active int) bool {
	reserve := q.places / 4
	free := q.places - taken
	return free > reserve || free > 0 && active < max(reserve, 1)
}

func (q *queue) grant(region string) {
	q.active[region]++
	q.taken++
}

// give gives a place back.
func (q *queue) give(region string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if q.active[region]--; q.active[region] == 0 {
		delete(q.active, region)
	}
	q.callers = slices.DeleteFunc(q.callers, func(c caller) bool {
		if !q.fits(c.region) {
			return false
		}
		q.grant(c.region)
		close(c.called)
		return true
	})
	q.signal()
}

// regain takes a place for an operation that has given its own back. It does
// not fail: an operation whose context has ended needs a place to say so.
func (q *queue) regain(region string) {
	q.mu.Lock()
	if q.fits(region) {
		q.grant(region)
		q.mu.Unlock()
		return
	}
	c := caller{region: region, called: make(chan struct{})}
	q.callers = append(q.callers, c)
	q.mu.Unlock()
	<-c.called
}

// clear forgets the jobs that have not begun.
func (q *queue) clear() []job {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.jobs
	q.jobs = nil
	return out
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}
