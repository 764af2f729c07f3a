// Package breaker provides the circuit breaker that stops requests to a peer
// which does not respond: the API server of a cloud region, or the target of
// notifications.
//
// It sends nothing, waits for nothing and does not retry. What counts as a
// response is its user's decision.
package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	// FirstPause is how long a breaker stays open at most. The time is doubled each
	// time the probe fails.
	FirstPause = time.Second

	// LongestPause is the limit of that.
	LongestPause = time.Minute

	// probeTime is when a request may be tried again while the probe is under way.
	probeTime = 100 * time.Millisecond
)

// Config describes a breaker.
type Config struct {
	Clock    func() time.Time
	Failures int           // consecutive requests without a response that open it
	Silence  time.Duration // minimum time without a response before it opens
}

// Breaker is a circuit breaker. It is closed while the peer responds. It opens
// after some consecutive requests without a response; requests are then
// rejected. After a pause, one request is admitted as a probe (half-open), and
// its result closes or reopens the breaker. It is safe for concurrent use.
type Breaker struct {
	cfg Config

	mu       sync.Mutex
	state    nf.BreakerState
	heard    time.Time // time of the last response
	failures int       // since then
	silence  time.Time // start of the earliest of these failures
	probes   int       // failed since the breaker opened
	retry    time.Time // when the probe may be sent
	cause    string    // the last failure
}

// Ticket is the permission to send one request.
type Ticket struct {
	Began time.Time
	Probe bool // the result decides the state of the breaker
}

// OpenError is the error of a request that a breaker rejects.
type OpenError struct {
	After time.Duration // until the next request may be admitted
	Cause string        // only the text, so that the error does not match errors of a sent request
}

// Error returns, for example, "no request is sent for 3s; the last failure was:
// connection refused".
func (e *OpenError) Error() string {
	return fmt.Sprintf("no request is sent for %v; the last failure was: %s", e.After.Round(time.Millisecond), e.Cause)
}

// New returns a closed breaker.
func New(cfg Config) *Breaker { return &Breaker{cfg: cfg, state: nf.BreakerClosed} }

// Admit returns a ticket, or an *OpenError. The caller must report the result
// of the request by one of Responded, Failed and Abandoned. A request that may
// be silent although its peer works, for example a watch, must not be a probe.
func (b *Breaker) Admit(mayProbe bool) (Ticket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Clock()
	wait := b.retry.Sub(now)
	switch {
	case b.state == nf.BreakerClosed:
		return Ticket{Began: now}, nil
	case b.state == nf.BreakerOpen && wait <= 0 && mayProbe:
		b.state = nf.BreakerHalfOpen
		return Ticket{Began: now, Probe: true}, nil
	}
	return Ticket{}, &OpenError{After: max(wait, probeTime), Cause: b.cause}
}

// Responded records a response of any status, and closes the breaker.
func (b *Breaker) Responded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.heard, b.failures, b.probes = nf.BreakerClosed, b.cfg.Clock(), 0, 0
}

// Failed records a request without a response, and reports whether the breaker
// is now not closed. A request that began before the breaker opened does not
// make it stay open longer.
func (b *Breaker) Failed(t Ticket, cause string) (open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause = cause
	switch {
	case b.state == nf.BreakerClosed:
		b.count(t)
	case b.state == nf.BreakerHalfOpen && t.Probe:
		b.probes++
		b.open()
	}
	return b.state != nf.BreakerClosed
}

func (b *Breaker) count(t Ticket) {
	began := t.Began
	if began.Before(b.heard) {
		began = b.heard
	}
	if b.failures++; b.failures == 1 || began.Before(b.silence) {
		b.silence = began
	}
	if b.failures >= b.cfg.Failures && b.cfg.Clock().Sub(b.silence) >= b.cfg.Silence {
		b.open()
	}
}

func (b *Breaker) open() {
	pause := delay.Doubled(FirstPause, LongestPause, b.probes)
	// The random part keeps replicas from probing at the same time.
	b.state, b.retry = nf.BreakerOpen, b.cfg.Clock().Add(pause-rand.N(pause/4))
}

// Abandoned records that a request ended without a conclusion, for example
// because its caller cancelled it. If it was the probe, the next request
// becomes the probe.
func (b *Breaker) Abandoned(t Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Probe && b.state == nf.BreakerHalfOpen {
		b.state = nf.BreakerOpen
	}
}

// State returns the state. If it is not closed, it also returns when the next
// request is admitted.
func (b *Breaker) State() (nf.BreakerState, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nf.BreakerClosed {
		return b.state, time.Time{}
	}
	return b.state, b.retry
}
