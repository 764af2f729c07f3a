package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstWait = time.Second      // for a region that is away; twice as long each time
	lastWait  = 15 * time.Second // and no longer than this
)

// away reports whether a step failed because the region does not answer. What
// the store does not answer is marked as something else.
func away(err error) bool {
	if u := (unrecorded{}); errors.As(err, &u) {
		return false
	}
	return nf.KindOf(err) == nf.Unreachable
}

// limit returns a context that ends at the deadline. That of a patient
// operation stands still while it waits for its region, so it is no deadline of
// the context itself.
func (r *run) limit(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if !r.op.Patient {
		return context.WithDeadlineCause(ctx, deadline, errDeadline)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.patience = time.AfterFunc(deadline.Sub(r.now()), func() { cancel(errDeadline) })
	return ctx, func() {
		r.patience.Stop()
		r.patience = nil
		cancel(nil)
	}
}

// wait records that the operation waits for its region, and why, and waits a
// while. It returns the cause when the context ends first.
func (r *run) wait(ctx context.Context, n int, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	now, pause := r.now(), waitFor(n, cause)
	w := nf.Wait{Since: now, Reason: nf.ReasonOf(cause), For: r.secrets.Text(whatIsAway(cause)), Next: now.Add(pause)}
	if err := r.tellWait(ctx, w); err != nil {
		return err
	}
	if r.patience != nil {
		r.patience.Stop()
	}
	err := r.rest(ctx, pause)
	if r.patience != nil {
		if err := r.prolong(ctx, r.now().Sub(now)); err != nil {
			return err
		}
	}
	if err != nil {
		return cause
	}
	// The region may have come back with another kubeconfig.
	r.cluster, err = r.cfg.Open(ctx, r.op.Region, nf.ProjectOf(r.op.Project))
	return recordError(err)
}

// whatIsAway says what does not answer, without what was wanted of it.
func whatIsAway(cause error) string {
	if e, ok := errors.AsType[*nf.Error](cause); ok && e.Err != nil {
		return e.Err.Error()
	}
	return cause.Error()
}

// tellWait tells followers what is waited for, and records it if that is new.
func (r *run) tellWait(ctx context.Context, w nf.Wait) error {
	before := r.op.Waiting
	if before != nil {
		w.Since = before.Since
	}
	if before != nil && before.Reason == w.Reason {
		r.op.Waiting = &w
		r.feed.publish(r.op)
		return nil
	}
	r.log.WarnContext(ctx, "operation waits for its region", "region", r.op.Region, "reason", w.Reason, "error", w.For)
	return r.save(ctx, func(op *nf.Operation) { op.Waiting = &w })
}

// waitFor returns how long to wait after the nth failure in a row.
func waitFor(n int, cause error) time.Duration {
	if n == 0 && nf.ReasonOf(cause) == reasonReplaced {
		return 0
	}
	return min(cmp.Or(nf.AfterOf(cause), firstWait<<min(n, 10)), lastWait)
}

// reasonReplaced is the reason of an Unreachable region whose kubeconfig has been
// changed: it need only be opened again.
const reasonReplaced = "replaced"

// prolong moves the deadlines of a patient operation by the time that it has
// waited.
func (r *run) prolong(ctx context.Context, waited time.Duration) error {
	err := r.save(ctx, func(op *nf.Operation) {
		op.Deadline = op.Deadline.Add(waited)
		if !op.UndoBy.IsZero() {
			op.UndoBy = op.UndoBy.Add(waited)
		}
	})
	deadline := r.op.Deadline
	if r.op.Undoing {
		deadline = r.op.UndoBy
	}
	r.patience.Reset(deadline.Sub(r.now()))
	return err
}

// arrived records that the operation does not wait any more.
func (r *run) arrived(ctx context.Context) error {
	if r.op.Waiting == nil {
		return nil
	}
	r.log.InfoContext(ctx, "the region is back", "region", r.op.Region, "seconds", r.now().Sub(r.op.Waiting.Since).Seconds())
	return r.save(ctx, func(op *nf.Operation) { op.Waiting = nil })
}
