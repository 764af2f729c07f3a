package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	leastSilence  = 3 * time.Second // minimum time without a response before a breaker opens
	firstClosure  = time.Second     // how long a breaker stays open; doubled each time the probe fails
	longestClosed = time.Minute
)

// breaker is the circuit breaker of a region. It is closed while the region
// responds. It opens after threshold consecutive requests without a response,
// if the silence has lasted at least leastSilence; requests then fail at once.
// After a pause, one request is sent as a probe (half-open), and its result
// closes or reopens the breaker.
type breaker struct {
	clock     func() time.Time
	threshold int // consecutive failures that open it

	mu       sync.Mutex
	state    nf.BreakerState
	heard    time.Time     // time of the last response
	failures int           // since then
	silence  time.Time     // start of the earliest of these failures
	pause    time.Duration // the last pause, without its random part
	retry    time.Time     // when the probe may be sent
	cause    string        // the last failure
}

// ticket is the permission to send one request.
type ticket struct {
	began time.Time
	probe bool
}

// breakerOpenError is the error of a request that an open breaker rejected.
type breakerOpenError struct {
	after time.Duration // until the next probe
	cause string        // only the text, so that the error does not match errors of a sent request
}

func (s *breakerOpenError) Error() string {
	return fmt.Sprintf("no request is sent for %v; the last failure was: %s", s.after.Round(time.Millisecond), s.cause)
}

// admit returns a ticket, or a *breakerOpenError. A watch cannot be the probe,
// because a working one may be silent for long.
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
	return ticket{}, &breakerOpenError{after: max(wait, firstPause), cause: b.cause}
}

// answered records a response of any status, and closes the breaker.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.heard, b.failures, b.pause = nf.BreakerClosed, b.clock(), 0, 0
}

// failed records a request without a response, and reports whether the breaker
// is now not closed.
func (b *breaker) failed(t ticket, cause error) (open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause = outbound.Plain(cause).Error()
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
	// The random part keeps replicas from probing at the same time.
	b.retry = b.clock().Add(b.pause - rand.N(b.pause/4))
}

// abandoned records that a request ended without a conclusion, for example
// because its caller cancelled it. If it was the probe, the next request
// becomes the probe.
func (b *breaker) abandoned(t ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.probe && b.state == nf.BreakerHalfOpen {
		b.state = nf.BreakerOpen
	}
}

// now returns the state, and when an open breaker admits the next request.
func (b *breaker) now() (nf.BreakerState, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nf.BreakerClosed {
		return b.state, time.Time{}
	}
	return b.state, b.retry
}
