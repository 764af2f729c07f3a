package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	leastSilence  = 3 * time.Second // without any answer, before a breaker opens
	firstClosure  = time.Second     // how long a breaker stays open; doubled each time the probe fails
	longestClosed = time.Minute
)

// breaker keeps requests away from a region that gives no answer. It is closed
// while answers come. When enough requests in a row had none, and for long
// enough, it opens: requests fail at once. After a pause one request goes
// through, the probe, and what becomes of it decides.
type breaker struct {
	clock     func() time.Time
	threshold int // failures in a row that open it

	mu       sync.Mutex
	state    nf.BreakerState
	heard    time.Time     // when the last answer came
	failures int           // since then
	silence  time.Time     // when the earliest of the failures began
	pause    time.Duration // the last one, without its random part
	retry    time.Time     // when the probe may go
	cause    error         // the last failure
}

// ticket is the leave to send one request.
type ticket struct {
	began time.Time
	probe bool
}

// shut is the error of a request that an open breaker held back.
type shut struct {
	after time.Duration // until the next probe
	cause string        // the text alone: nobody is to take it for a failed request
}

func (s *shut) Error() string {
	return fmt.Sprintf("no request is sent for %v; the last failure was: %s", s.after.Round(time.Millisecond), s.cause)
}

// admit lets a request through or returns a shut. A watch is no probe: it may
// be silent for long without being dead.
func (b *breaker) admit(watch bool) (ticket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	wait := b.retry.Sub(now)
	switch {
	case b.state == nf.BreakerClosed:
		return ticket{began: now}, nil
	case b.state == nf.BreakerOpen && wait <= 0 && !watch:
		b.state = nf.BreakerHalfOpen
		return ticket{began: now, probe: true}, nil
	}
	return ticket{}, &shut{after: max(wait, firstPause), cause: b.cause.Error()}
}

// answered records that a request had an answer, whatever it said.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.heard, b.failures, b.pause = nf.BreakerClosed, b.clock(), 0, 0
}

// failed records that a request had no answer, and reports whether the breaker
// is open now.
func (b *breaker) failed(t ticket, cause error) (open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause = cause
	switch {
	case b.state == nf.BreakerClosed:
		b.count(t)
	case b.state == nf.BreakerHalfOpen && t.probe:
		b.open()
	}
	return b.state != nf.BreakerClosed
}

func (b *breaker) count(t ticket) {
	began := t.began
	if began.Before(b.heard) {
		began = b.heard
	}
	if b.failures++; b.failures == 1 || began.Before(b.silence) {
		b.silence = began
	}
	if b.failures >= b.threshold && b.clock().Sub(b.silence) >= leastSilence {
		b.open()
	}
}

func (b *breaker) open() {
	b.state = nf.BreakerOpen
	b.pause = min(max(2*b.pause, firstClosure), longestClosed)
	// A random part, so that replicas do not come together.
	b.retry = b.clock().Add(b.pause - rand.N(b.pause/4))
}

// abandoned records that a request's caller did not wait for what comes of it.
// If it was the probe, the next request is.
func (b *breaker) abandoned(t ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.probe && b.state == nf.BreakerHalfOpen {
		b.state = nf.BreakerOpen
	}
}

// now returns the state, and when an open breaker lets the next request through.
func (b *breaker) now() (nf.BreakerState, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nf.BreakerClosed {
		return b.state, time.Time{}
	}
	return b.state, b.retry
}
