// Package delay holds goroutines back: for a time, until a signal, or for longer
// after each failure.
//
// It does not retry: the caller decides which errors pass, and when to give up.
package delay

import (
	"context"
	"time"
)

// For waits until d has passed, the context ends, or woken receives a value or
// is closed. It reports whether woken did. A nil channel never does.
func For(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(Positive(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-woken:
		return true
	}
	return false
}

// Linger returns a context that ends d after ctx, for work that is better finished than
// interrupted. The caller must call the function at the end of the work.
func Linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		For(out, d, nil)
		cancel()
	})
	return out, func() {
		stop()
		cancel()
	}
}

// Positive returns d, or the shortest time if d is not positive. A timer that may
// be started when its time has passed needs it: the race detector of Go 1.26
// crashes when two goroutines of a synctest bubble start such timers at once.
func Positive(d time.Duration) time.Duration { return max(d, time.Nanosecond) }

// Doubled returns the pause after n failures: first, doubled n times, but at
// most longest.
func Doubled(first, longest time.Duration, n int) time.Duration {
	for ; n > 0 && first < longest; n-- {
		first *= 2
	}
	return min(first, longest)
}

// Signal wakes one goroutine. It holds at most one value, so a signal that is
// sent before the goroutine waits is not lost, and several of them wake it once.
type Signal chan struct{}

// NewSignal returns a signal that has not been sent.
func NewSignal() Signal { return make(Signal, 1) }

// Send sends the signal. It does not block.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}
