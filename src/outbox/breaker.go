package outbox

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstClosure   = time.Second // how long a breaker stays open; doubled each time the probe fails
	longestClosure = time.Minute
)

// breaker is the circuit breaker of a target. It is closed while the target
// responds, whatever the status. It opens after some consecutive requests
// without a response; requests then wait. After a pause, one request is sent as
// a probe (half-open), and its result closes or reopens the breaker.
type breaker struct {
	state    nf.BreakerState
	failures int                       // since the last response
	probes   int                       // of these, those of probes
	until    time.Time                 // when the probe may be sent
	waiting  map[delay.Signal]struct{} // of the requests that wait
}

func newBreaker() breaker {
	return breaker{state: nf.BreakerClosed, waiting: map[delay.Signal]struct{}{}}
}

// admit returns 0 if a request may be sent; it may be the probe. Otherwise it
// returns how long to wait, and sends the signal at the next change.
func (b *breaker) admit(now time.Time, wakeCh delay.Signal) time.Duration {
	wait := b.wait(now, wakeCh)
	if wait == 0 && b.state == nf.BreakerOpen {
		b.state = nf.BreakerHalfOpen
	}
	return wait
}

// wait returns what admit would return.
func (b *breaker) wait(now time.Time, wakeCh delay.Signal) time.Duration {
	wait := max(0, b.until.Sub(now))
	switch {
	case b.state == nf.BreakerClosed || b.state == nf.BreakerOpen && wait == 0:
		return 0
	case b.state == nf.BreakerHalfOpen:
		wait = longestClosure // the result of the probe comes earlier
	}
	b.waiting[wakeCh] = struct{}{}
	return wait
}

// responded records a response.
func (b *breaker) responded() {
	b.state, b.failures, b.probes = nf.BreakerClosed, 0, 0
	b.changed()
}

// failed records a request without a response. Requests that were sent before
// the breaker opened do not make it stay open longer.
func (b *breaker) failed(now time.Time, probe bool, most int) {
	b.failures++
	switch {
	case probe && b.state == nf.BreakerHalfOpen:
		b.probes++
	case b.state != nf.BreakerClosed || b.failures < most:
		return
	}
	b.state, b.until = nf.BreakerOpen, now.Add(delay.Doubled(firstClosure, longestClosure, b.probes))
	b.changed()
}

// abandoned records that the probe ended without a result. The next request
// becomes the probe.
func (b *breaker) abandoned() {
	if b.state == nf.BreakerHalfOpen {
		b.state = nf.BreakerOpen
		b.changed()
	}
}

// changed wakes the requests that wait.
func (b *breaker) changed() {
	for wakeCh := range b.waiting {
		wakeCh.Send()
	}
	clear(b.waiting)
}
