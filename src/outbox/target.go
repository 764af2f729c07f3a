package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Pace limits the requests of one replica to one target: a scheme, host and
// port. A field that is zero has its default.
type Pace struct {
	Parallel int     // maximum number of concurrent requests; default 16
	Rate     float64 // maximum number of requests per second, with bursts of one second; default 50
	Failures int     // consecutive requests without a response that open the target's circuit breaker; default 5
}

func (p Pace) filled() Pace {
	p.Parallel = cmp.Or(max(p.Parallel, 0), 16)
	p.Rate = cmp.Or(max(p.Rate, 0), 50)
	p.Failures = cmp.Or(max(p.Failures, 0), 5)
	return p
}

const (
	// idleTime is how long an unused target is kept. In this time, its rate limit
	// has recovered.
	idleTime = 10 * time.Minute

	// silentTime is how long an unused target is kept that does not respond. It is
	// longer than the pauses between the attempts of a request.
	silentTime = 3 * time.Hour
)

// targets holds the targets that this replica sends to.
type targets struct {
	pace   Pace
	clock  func() time.Time
	log    *slog.Logger
	shared chan struct{} // holds one token for each request beyond the first of its target

	mu  sync.Mutex
	all map[string]*destination
}

// destination is one target. A slow one holds its first place and some of the
// shared ones, so it never keeps the first place of another target.
type destination struct {
	name   string
	places chan struct{} // holds one token for each visit that has a place
	first  chan struct{} // holds a token while the first place is taken
	pace   *rate.Limiter

	// The mutex of targets guards these.
	visits  int
	used    time.Time
	breaker *breaker.Breaker
	waiting map[delay.Signal]struct{} // of the requests that wait for the breaker
}

func newTargets(cfg Config) *targets {
	return &targets{
		pace: cfg.Pace.filled(), clock: cfg.Clock, log: cfg.Logger.With("requests", cfg.Noun), shared: make(chan struct{}, cfg.Parallel),
		all: map[string]*destination{},
	}
}

// targetOf returns the target of a request's URL; all invalid URLs have one.
func targetOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return target(u)
}

// visit is one request to a target, which waits or is under way.
type visit struct {
	targets *targets
	at      *destination
	held    []chan struct{} // channels with a token of this visit
	ticket  breaker.Ticket
	left    bool
}

// visit returns a visit, which the caller must leave. It drops unused targets.
func (ts *targets) visit(name string) *visit {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	at := ts.all[name]
	if at == nil {
		maps.DeleteFunc(ts.all, func(_ string, d *destination) bool { return ts.idle(d) })
		burst := max(1, int(ts.pace.Rate))
		at = &destination{
			name: name, places: make(chan struct{}, ts.pace.Parallel), first: make(chan struct{}, 1),
			pace: rate.NewLimiter(rate.Limit(ts.pace.Rate), burst), waiting: map[delay.Signal]struct{}{},
			breaker: breaker.New(breaker.Config{Clock: ts.clock, Failures: ts.pace.Failures}),
		}
		ts.all[name] = at
	}
	at.visits++
	return &visit{targets: ts, at: at}
}

// idle reports whether a target is no longer used.
func (ts *targets) idle(d *destination) bool {
	most := idleTime
	if state, _ := d.breaker.State(); state != nf.BreakerClosed {
		most = silentTime
	}
	return d.visits == 0 && ts.clock().Sub(d.used) > most
}

// wait returns how long the breaker of a target holds requests, as enter does.
func (ts *targets) wait(d *destination, wakeCh delay.Signal) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return d.wait(ts.clock(), wakeCh)
}

// wait returns how long the breaker holds requests, and sends the signal when
// the breaker changes.
func (d *destination) wait(now time.Time, wakeCh delay.Signal) time.Duration {
	state, retry := d.breaker.State()
	wait := max(0, retry.Sub(now))
	switch {
	case state == nf.BreakerClosed || state == nf.BreakerOpen && wait == 0:
		return 0
	case state == nf.BreakerHalfOpen:
		wait = breaker.LongestPause // the result of the probe comes earlier
	}
	d.waiting[wakeCh] = struct{}{}
	return wait
}

// wake wakes the requests that wait for the breaker.
func (d *destination) wake() {
	for wakeCh := range d.waiting {
		wakeCh.Send()
	}
	clear(d.waiting)
}

// states returns the number of targets in each state of their breaker.
func (ts *targets) states() map[nf.BreakerState]int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	numbers := map[nf.BreakerState]int{nf.BreakerClosed: 0, nf.BreakerHalfOpen: 0, nf.BreakerOpen: 0}
	for _, d := range ts.all {
		if !ts.idle(d) {
			state, _ := d.breaker.State()
			numbers[state]++
		}
	}
	return numbers
}

// enter waits until the request may be sent. If the target's breaker is open, it
// returns at once how long the caller should wait before the next visit, and
// sends the signal when the breaker changes.
func (v *visit) enter(ctx context.Context, wakeCh delay.Signal) (time.Duration, error) {
	if err := v.take(ctx, v.at.places); err != nil {
		return 0, err
	}
	if wait := v.admit(wakeCh); wait > 0 {
		return wait, nil
	}
	if err := v.at.pace.Wait(ctx); err != nil {
		return 0, err
	}
	select {
	case v.at.first <- struct{}{}:
		v.held = append(v.held, v.at.first)
		return 0, nil
	default:
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case v.at.first <- struct{}{}:
		v.held = append(v.held, v.at.first)
	case v.targets.shared <- struct{}{}:
		v.held = append(v.held, v.targets.shared)
	}
	return 0, nil
}

// take puts a token of the visit into a channel, once there is room.
func (v *visit) take(ctx context.Context, places chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case places <- struct{}{}:
		v.held = append(v.held, places)
		return nil
	}
}

// admit asks the breaker. It returns how long to wait, or 0.
func (v *visit) admit(wakeCh delay.Signal) time.Duration {
	v.targets.mu.Lock()
	defer v.targets.mu.Unlock()
	ticket, err := v.at.breaker.Admit(true)
	if err != nil {
		return delay.Positive(v.at.wait(v.targets.clock(), wakeCh))
	}
	v.ticket = ticket
	return 0
}

// end records whether the target responded, and leaves.
func (v *visit) end(ctx context.Context, responded bool) {
	ts := v.targets
	ts.mu.Lock()
	before, _ := v.at.breaker.State()
	if responded {
		v.at.breaker.Responded()
	} else {
		v.at.breaker.Failed(v.ticket, "")
	}
	after, until := v.at.breaker.State()
	if after != before {
		v.at.wake()
	}
	v.ticket.Probe = false
	ts.mu.Unlock()
	switch {
	case before == nf.BreakerClosed && after == nf.BreakerOpen:
		ts.log.WarnContext(ctx, "a target does not respond; its requests wait", "target", v.at.name, "next", until)
	case before != nf.BreakerClosed && after == nf.BreakerClosed:
		ts.log.InfoContext(ctx, "a target responds again", "target", v.at.name)
	}
	v.leave()
}

// leave gives up the places of the visit. After the first call, it does nothing.
func (v *visit) leave() {
	if v.left {
		return
	}
	v.left = true
	for _, ch := range v.held {
		<-ch
	}
	ts := v.targets
	ts.mu.Lock()
	defer ts.mu.Unlock()
	v.at.visits--
	v.at.used = ts.clock()
	if v.ticket.Probe {
		v.at.breaker.Abandoned(v.ticket)
		v.at.wake()
	}
}
