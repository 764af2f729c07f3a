package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// errDeadline is the cause with which an operation is stopped at its deadline.
var errDeadline = errors.New("its deadline has passed")

// Expired says which time limit has passed, of an operation or a part of it.
type Expired struct{ Limit time.Duration }

func (e *Expired) Error() string { return fmt.Sprintf("timed out after %s", e.Limit) }

// TimedOut returns the cause of a context's end. For the operation's deadline,
// that is Expired with the operation's time limit.
func (a *Attempt) TimedOut(cause error) error {
	if errors.Is(cause, errDeadline) {
		return &Expired{a.op.Deadline.Sub(a.op.Accepted)} // an undo has as much time
	}
	return cause
}

// RegionAway is Waiter.WaitReason of work that waits for a cloud region: it returns
// what to wait for if the error is nf.Unreachable.
func RegionAway(err error) *nf.Wait {
	if nf.KindOf(err) != nf.Unreachable {
		return nil
	}
	cause := err
	if e, ok := errors.AsType[*nf.Error](err); ok {
		cause = cmp.Or(e.Err, err) // without the action that was attempted
	}
	said := nf.TextOf(cause)
	return &nf.Wait{Reason: nf.ReasonOf(err), For: said.Message, Mentions: said.Mentions}
}

const (
	firstWait = time.Second      // for something that is away; doubled after each failure
	lastWait  = 15 * time.Second // at most this
)

// waitFor returns the pause after the nth consecutive failure.
func waitFor(n int, cause error) time.Duration {
	if n == 0 && nf.ReasonOf(cause) == nf.ReasonReplaced {
		return 0
	}
	return min(cmp.Or(nf.RetryAfterOf(cause), delay.Doubled(firstWait, lastWait, n)), lastWait)
}

// limit returns a context that ends at the deadline. If the operation
// waits beyond its deadline (WaitForRegion), limit uses a timer instead of a
// context deadline; the timer is stopped during that wait.
func (x *execution) limit(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if !x.attempt.op.WaitForRegion {
		return context.WithDeadlineCause(ctx, deadline, errDeadline)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x.deadlineTimer = time.AfterFunc(delay.Positive(deadline.Sub(x.attempt.Now())), func() { cancel(errDeadline) })
	return ctx, func() {
		x.deadlineTimer.Stop()
		x.deadlineTimer = nil
		cancel(nil)
	}
}

// waitReason returns what a step that failed has to wait for, or nil.
func (x *execution) waitReason(err error) *nf.Wait {
	w, ok := x.work.(Waiter)
	if !ok || err == nil || IsStoreError(err) {
		return nil
	}
	return w.WaitReason(err)
}

// wait records that the operation waits, and why, and pauses. It returns the
// cause if the context ends first.
func (x *execution) wait(ctx context.Context, n int, w nf.Wait, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	now, pause := x.attempt.Now(), waitFor(n, cause)
	w.Since, w.Next = now, now.Add(pause)
	if err := x.recordWait(ctx, w); err != nil {
		return err
	}
	if x.deadlineTimer != nil {
		x.deadlineTimer.Stop()
	}
	x.yieldFor(ctx, pause)
	if x.deadlineTimer != nil {
		if err := x.extendDeadline(ctx, x.attempt.Now().Sub(now)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return cause
	}
	return x.work.(Waiter).Reopen(ctx)
}

// yieldFor pauses for d, and releases the operation's place in the meantime.
func (x *execution) yieldFor(ctx context.Context, d time.Duration) {
	defer x.attempt.Yield()()
	delay.For(ctx, d, nil)
}

// recordWait publishes the wait to followers, and stores it if the reason is new.
func (x *execution) recordWait(ctx context.Context, w nf.Wait) error {
	before := x.attempt.op.Waiting
	if before != nil {
		w.Since = before.Since
	}
	if before != nil && before.Reason == w.Reason {
		x.attempt.op.Waiting = &w
		x.attempt.ledger.feed.publish(x.attempt.op)
		return nil
	}
	x.attempt.log.WarnContext(ctx, "operation waits for its region", "region", x.attempt.op.Region, "reason", w.Reason, "error", w.Said().String())
	return x.attempt.Save(ctx, func(op *nf.Operation) { op.Waiting = &w })
}

// extendDeadline extends the deadlines of an operation by the time that it has
// waited (WaitForRegion).
func (x *execution) extendDeadline(ctx context.Context, waited time.Duration) error {
	err := x.attempt.Save(ctx, func(op *nf.Operation) {
		op.Deadline = op.Deadline.Add(waited)
		if !op.UndoBy.IsZero() {
			op.UndoBy = op.UndoBy.Add(waited)
		}
	})
	deadline := x.attempt.op.Deadline
	if x.attempt.op.Undoing {
		deadline = x.attempt.op.UndoBy
	}
	x.deadlineTimer.Reset(delay.Positive(deadline.Sub(x.attempt.Now())))
	return err
}

// endWait records that the operation no longer waits.
func (x *execution) endWait(ctx context.Context) error {
	if x.attempt.op.Waiting == nil {
		return nil
	}
	x.attempt.log.InfoContext(ctx, "the region is back", "region", x.attempt.op.Region, "seconds", x.attempt.Now().Sub(x.attempt.op.Waiting.Since).Seconds())
	return x.attempt.Save(ctx, func(op *nf.Operation) { op.Waiting = nil })
}
