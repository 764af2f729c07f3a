package operation

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// execution carries out an attempt: the operation's steps, their undo, and its
// end.
type execution struct {
	attempt       *Attempt
	work          Work
	restart       bool        // it repeats the steps of earlier attempts
	deadlineTimer *time.Timer // ends an operation that waits beyond the deadline (WaitForRegion); nil for others
}

// Performer returns Kind.Perform for operations whose work open returns. With
// restart, an attempt repeats the steps of earlier attempts, unless all of them
// had succeeded.
func (l *Ledger) Performer(restart bool, open func(*Attempt) Work) func(ctx, cancellable context.Context, j Job) error {
	return func(ctx, cancellable context.Context, j Job) error {
		defer l.feed.clearRunning(j.ID)
		cfg := &l.workers.cfg
		a := &Attempt{cfg: cfg, ledger: l, workers: l.workers, job: j, log: cfg.Logger.With("operation", j.ID), draft: newDraft()}
		a.atEnd = func(stop context.CancelCauseFunc) func() bool {
			return context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
		}
		x := &execution{attempt: a, work: open(a), restart: restart}
		if err := x.perform(ctx, cancellable); !errors.Is(err, errOver) {
			return err
		}
		return nil
	}
}

// perform reads the operation and runs it.
func (x *execution) perform(ctx, cancellable context.Context) error {
	defer x.attempt.draft.stop()
	if err := x.begin(ctx); err != nil {
		return err
	}
	ctx, end := x.attempt.cfg.Trace.Operation(ctx, x.attempt.op)
	stoppable, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(cancellable, func() { stop(context.Cause(cancellable)) })()
	err := x.proceed(ctx, stoppable)
	end(x.attempt.op, err)
	return err
}

// proceed runs the operation's steps. If one fails, it undoes or keeps the
// result, as requested. A cancellation of the operation ends only the second
// context; the first ends only with the service or this replica's lease.
func (x *execution) proceed(ctx, cancellable context.Context) error {
	if x.attempt.op.Failure == nil && !x.attempt.op.Succeeding {
		err := x.forward(cancellable)
		if x.unfinished(ctx, err) {
			return err
		}
		if err != nil {
			err = x.fail(ctx, err)
		} else if x.restart {
			err = x.succeed(ctx)
		}
		if err != nil {
			return err
		}
	}
	if x.attempt.op.Undoing && x.attempt.op.UndoFailure == nil {
		err := x.backward(ctx)
		if x.unfinished(ctx, err) {
			return err
		}
		if err := x.failUndo(ctx, err); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx) // must be recorded even if the context has ended
	if err := x.work.Release(ctx); err != nil {
		return err
	}
	return x.attempt.conclude(ctx)
}

// unfinished reports whether the operation must be left as it is, to be
// resumed.
func (x *execution) unfinished(ctx context.Context, err error) bool {
	return IsStoreError(err) || errors.Is(err, ErrTaken) || err != nil && ctx.Err() != nil
}

// forward runs the operation's steps until the deadline.
func (x *execution) forward(ctx context.Context) error {
	if x.attempt.op.Cancel {
		return x.cancelled()
	}
	limited, cancel := x.limit(ctx, x.attempt.op.Deadline)
	defer cancel()
	steps, err := x.work.Steps(limited)
	if err == nil {
		err = x.execute(limited, steps)
	}
	return x.explain(limited, err)
}

// backward undoes the operation, whether or not it was cancelled. It has as
// much time as the operation had.
func (x *execution) backward(ctx context.Context) error {
	limited, cancel := x.limit(ctx, x.attempt.op.UndoBy)
	defer cancel()
	steps, err := x.work.(Undoer).UndoSteps(limited)
	if err == nil {
		err = x.execute(limited, steps)
	}
	return x.explain(limited, err)
}

// explain replaces an error caused by the end of the context with the reason
// why the context ended.
func (x *execution) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	verb, subject := string(x.attempt.op.Verb), x.attempt.op.Subject.Noun()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrCancelled):
		return x.cancelled()
	case errors.Is(cause, errDeadline) && nf.KindOf(err) != nf.Timeout:
		// The step says what the operation was doing; the error may be the store's.
		interrupted := x.work.Failure(ctx, x.attempt.Current(), err)
		x.attempt.log.WarnContext(ctx, "the deadline has passed", "step", interrupted.Step, "error", interrupted.Said().String())
		if w := x.attempt.op.Waiting; w != nil {
			return &nf.Error{Kind: nf.Timeout, Op: verb, Subject: subject, Reason: w.Reason,
				Err: nf.Errorf("%w: %s", x.attempt.TimedOut(cause), w.Said())}
		}
		return nf.E(nf.Timeout, verb, subject, x.attempt.TimedOut(cause))
	}
	return err
}

// cancelled returns the error of an operation that was cancelled.
func (x *execution) cancelled() error {
	return nf.E(nf.Cancelled, string(x.attempt.op.Verb), x.attempt.op.Subject.Noun(), ErrCancelled)
}

func (x *execution) execute(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		if x.attempt.done(s.StepID) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if x.stopping() {
			return x.cancelled()
		}
		s.Recorded = s.Recorded || x.restart
		if err := x.attempt.beginStep(ctx, s); err != nil {
			return err
		}
		if err := x.runStep(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// runStep runs one step, and repeats it after each wait.
func (x *execution) runStep(ctx context.Context, s Step) error {
	traced, end := x.attempt.cfg.Trace.Step(ctx, s.Step)
	for n := 0; ; n++ {
		if n > 0 && x.stopping() {
			err := x.cancelled()
			end(err)
			return err
		}
		err := x.do(traced, s)
		reason := x.waitReason(err)
		if reason == nil {
			if err == nil {
				err = x.endWait(ctx)
			}
			end(cut(ctx, err))
			return err
		}
		if err := x.wait(traced, n, *reason, err); err != nil {
			end(cut(ctx, err))
			return err
		}
	}
}

// cut returns a step's error for the trace: a step that the end of the context
// has interrupted did not fail by itself.
func cut(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), errDeadline):
		return &nf.Error{Kind: nf.Timeout, Err: err}
	}
	return &nf.Error{Kind: nf.Cancelled, Err: err}
}

// succeed records that every step has succeeded, so that no attempt repeats them.
func (x *execution) succeed(ctx context.Context) error {
	return x.attempt.Save(context.WithoutCancel(ctx), func(op *nf.Operation) {
		op.Succeeding = true
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			op.Steps[n-1].Finished = x.attempt.Now()
		}
	})
}

// fail records why the operation failed, and whether it is undone.
func (x *execution) fail(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx) // the deadline may be what failed
	failure := x.work.Failure(ctx, x.attempt.Current(), cause)
	x.attempt.log.WarnContext(ctx, "operation failed", "step", failure.Step, "kind", failure.Kind, "error", failure.Said().String(), "on_failure", x.attempt.op.OnFailure)
	undo := false
	if u, ok := x.work.(Undoer); ok {
		var err error
		if undo, err = u.Undoable(ctx); err != nil {
			return err
		}
	}
	return x.attempt.Save(ctx, func(op *nf.Operation) {
		op.Failure, op.Undoing, op.Waiting = failure, undo, nil
		x.attempt.markFailed(op, failure)
		if undo {
			op.UndoBy = x.attempt.Now().Add(op.Deadline.Sub(op.Accepted))
		}
	})
}

// failUndo records why the undo failed, if it did. Afterwards, no replica undoes
// the operation again.
func (x *execution) failUndo(ctx context.Context, cause error) error {
	if cause == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // the deadline may be what failed
	failure := x.work.Failure(ctx, x.attempt.Current(), cause)
	x.attempt.log.ErrorContext(ctx, "failed to undo operation", "step", failure.Step, "error", failure.Said().String())
	return x.attempt.Save(ctx, func(op *nf.Operation) {
		op.UndoFailure = failure
		whole := *op.Failure // followers hold the old one
		said := nf.Textf("%s; undoing it failed in step %q: %s", whole.Said(), failure.Step, failure.Said())
		whole.Message, whole.Mentions = said.Message, said.Mentions
		op.Failure = &whole
		x.attempt.markFailed(op, failure)
	})
}
