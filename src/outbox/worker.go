package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Feed is the source's part in one queue. Its methods are called one at a time.
// If one returns ErrOver, the queue's worker ends; after any other error,
// Forget is called, and the call is repeated later.
type Feed interface {
	// Next is called while no request is pending. It may put the next one. It
	// returns how long to wait for the next call, unless the queue is woken.
	Next(ctx context.Context) (time.Duration, error)
	// Prepare is called before each attempt, and returns the request to send. A
	// source that stores a record of its own after Put does so here if a crash
	// has prevented it: nothing is sent before Prepare has returned.
	Prepare(ctx context.Context, d Delivery) (Request, error)
	// Sent is called after the result of an attempt is stored.
	Sent(ctx context.Context, d Delivery) error
	// Forget drops cached records: another replica may have written.
	Forget()
	// Close is called at the end.
	Close()
}

// ErrOver says that this replica no longer serves a queue.
var ErrOver = errors.New("this replica no longer serves the queue")

var errAhead = errors.New("another replica has served the queue")

const (
	errorPause = time.Minute

	// recordTimeout limits the time to record the result of an attempt.
	recordTimeout = 5 * time.Second

	// longestLinger is how long a request that is under way may take when the worker is to
	// stop. It is also limited by the time after which another replica may send the request.
	longestLinger = 5 * time.Second

	// mostLoaded is the number of pending requests of a queue that are in memory.
	mostLoaded = 100

	// freshTime is how long a prepared request may wait for its target. After
	// that it is prepared again, because the source may have changed it.
	freshTime = time.Second
)

// worker serves one queue: it sends the first pending request until it is
// delivered or dead, and calls the feed if none is pending.
type worker struct {
	o     *Outbox
	queue Queue
	feed  Feed
	stop  context.CancelFunc
	over  atomic.Bool // run has returned

	wakeCh delay.Signal // holds a token when there may be work
	stale  atomic.Bool  // the stored requests may have changed elsewhere

	// Only turn and its callees use these.
	pending []Delivery    // the first ones
	more    bool          // there are pending requests after those
	held    *destination  // the breaker that holds the first of them; nil: none, or the source may have changed the target
	limit   time.Duration // the age of the first of them that its policy allows; 0: unknown
}

// review makes the worker reload its requests, or call the feed.
func (w *worker) review() {
	w.stale.Store(true)
	w.wakeCh.Send()
}

// run serves the queue until the context or the queue ends.
func (w *worker) run(ctx context.Context) {
	w.stale.Store(true)
	w.o.workers.Store(w.queue.Key, w)
	defer func() {
		w.o.workers.CompareAndDelete(w.queue.Key, w)
		w.feed.Close()
		w.over.Store(true)
	}()
	for failures := 0; ctx.Err() == nil; {
		wait, err := w.turn(ctx)
		switch {
		case errors.Is(err, ErrOver):
			return
		case err != nil && ctx.Err() == nil:
			failures++
			w.feed.Forget() // the write may have succeeded, or another replica may have written
			w.stale.Store(true)
			w.o.log.WarnContext(ctx, "failed to serve a queue of requests; will retry", "queue", w.queue.Name, "error", err)
			delay.For(ctx, min(Policy{}.pause(failures, random), errorPause), nil)
		default:
			failures = 0
			delay.For(ctx, wait, w.wakeCh)
		}
	}
}

// random returns a random duration in [0, d).
func random(d time.Duration) time.Duration { return rand.N(d) }

// turn performs the next action. It returns how long to wait for the next turn
// unless the worker is woken earlier.
func (w *worker) turn(ctx context.Context) (time.Duration, error) {
	if w.stale.Swap(false) {
		if err := w.load(ctx); err != nil {
			return 0, err
		}
	}
	if len(w.pending) == 0 {
		return w.feed.Next(ctx)
	}
	// A request that is due later than its policy allows was stored before the clock was set back.
	if wait := w.pending[0].Due.Sub(w.o.now()); wait > 0 && wait <= w.pending[0].Policy.longestPause() {
		return w.wait(ctx, w.pending[0], wait)
	}
	if w.held != nil {
		if wait := w.o.targets.wait(w.held, w.wakeCh); wait > 0 {
			return w.wait(ctx, w.pending[0], wait) // the source may send its signal often; nothing is read for it
		}
	}
	return w.attempt(ctx, w.pending[0])
}

// load reads the first pending requests of the queue.
func (w *worker) load(ctx context.Context) error {
	w.pending, w.more, w.held, w.limit = nil, false, nil, 0
	for d, err := range w.o.pending.All(store.Expecting(ctx, mostLoaded+1), w.queue.Key+"-") {
		switch {
		case err != nil:
			return err
		case d.Key != w.queue.Key: // another key may begin alike
			continue
		case len(w.pending) == mostLoaded:
			w.more = true
			return nil
		}
		w.pending = append(w.pending, d)
	}
	return nil
}

// wait returns how long the first pending request waits for its next attempt. If it is too
// old for its policy, it is given up instead.
func (w *worker) wait(ctx context.Context, d Delivery, pause time.Duration) (time.Duration, error) {
	left := w.limit - d.age(w.o.now())
	switch {
	case w.limit == 0: // known after the request was prepared
		return pause, nil
	case left > 0:
		return min(pause, left), nil
	}
	d.LastError = cmp.Or(d.LastError, "its target did not respond")
	if err := w.abandon(ctx, d); err != nil || d.Attempts == 0 {
		return 0, err
	}
	return 0, w.feed.Sent(ctx, d)
}

// attempt delivers the first pending request, once its target admits it. Otherwise
// it returns how long to wait, unless the worker is woken earlier.
func (w *worker) attempt(ctx context.Context, d Delivery) (time.Duration, error) {
	prepared := w.o.now()
	r, err := w.feed.Prepare(ctx, d)
	if err != nil {
		return 0, err
	}
	w.limit = r.Policy.age()
	v := w.o.targets.visit(targetOf(r.URL))
	defer v.leave()
	w.held = nil
	if wait, err := v.enter(ctx, w.wakeCh); err != nil || wait > 0 {
		w.held = v.at
		if err != nil {
			return 0, err
		}
		return w.wait(ctx, d, wait)
	}
	if w.o.now().Sub(prepared) > freshTime {
		if r, err = w.feed.Prepare(ctx, d); err != nil || targetOf(r.URL) != v.at.name {
			return 0, err // the next turn visits the new target
		}
	}
	return 0, w.deliver(ctx, d, r, v)
}

// deliver sends the first pending request and stores the result.
func (w *worker) deliver(ctx context.Context, d Delivery, r Request, v *visit) error {
	started := w.o.now()
	// To end a request that is under way would make another replica send it twice.
	sending, done := delay.Linger(ctx, min(w.o.cfg.Lease/4, longestLinger))
	defer done()
	status, err := w.o.send(sending, d.ID, r)
	if err != nil && sending.Err() != nil {
		return sending.Err() // the request was interrupted; not a failed attempt
	}
	v.end(ctx, err == nil || status > 0)
	// Record the result even if the process is stopping, so that a delivered
	// request is not sent twice.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	d.Attempts++
	if d.Started.IsZero() {
		d.Started = started
	}
	d.LastStatus, d.LastError = status, ""
	if err != nil {
		status = 0
		d.LastStatus, d.LastError = http.StatusInternalServerError, nf.Clip(err.Error(), longestError)
	}
	if err := w.record(ctx, d, r.Policy, status); err != nil {
		return err
	}
	return w.feed.Sent(ctx, d)
}

// record stores the result of sending the first pending request. The status is
// 0 if there was no response.
func (w *worker) record(ctx context.Context, d Delivery, p Policy, status int) error {
	due := w.o.now().Add(p.pause(d.Attempts, random))
	switch {
	case p.succeeds(status):
		if err := nf.IgnoreNotFound(w.o.pending.Delete(ctx, d.ID)); err != nil {
			return err
		}
		w.o.cfg.Observe(Delivered)
		w.next()
		return nil
	case !p.retries(d, status, due):
		return w.abandon(ctx, d)
	default:
		d.Due = due
		_, err := w.o.pending.Update(ctx, d.ID, func(kept *Delivery) error { *kept = d; return nil })
		if nf.KindOf(err) == nf.NotFound {
			return errAhead
		}
		if err != nil {
			return err
		}
		w.pending[0] = d
		w.o.cfg.Observe(Deferred)
		w.log(d).InfoContext(ctx, "failed to deliver a request; will retry", "error", d.LastError, "next", d.Due)
		return nil
	}
}

// abandon makes the first pending request a dead letter.
func (w *worker) abandon(ctx context.Context, d Delivery) error {
	if err := w.o.giveUp(ctx, d); err != nil {
		return err
	}
	w.o.cfg.Observe(GivenUp)
	w.log(d).ErrorContext(ctx, "request abandoned", "error", d.LastError)
	w.next()
	return nil
}

// next removes the first pending request, which has ended.
func (w *worker) next() {
	w.pending, w.held, w.limit = w.pending[1:], nil, 0
	if len(w.pending) == 0 && w.more {
		w.stale.Store(true)
	}
}

func (w *worker) log(d Delivery) *slog.Logger {
	return w.o.log.With("queue", w.queue.Name, "request", d.ID, "attempts", d.Attempts, "status", d.LastStatus)
}
