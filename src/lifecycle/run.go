package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// run is one operation being carried out by one worker.
type run struct {
	*Engine

	job      job
	op       nf.Operation // as last written
	cluster  Cluster
	plan     render.Plan // what the operation brings about; zero for terminate
	log      *slog.Logger
	patience *time.Timer           // ends a patient operation at its deadline; nil for others
	secrets  secrecy               // of the revision that it brings about, and of the one in force
	pending  []func(*nf.Operation) // edits that go into the next write
}

// step is one part of an operation. It may be begun again after a crash at any
// point, so doing it twice must be doing it once.
type step struct {
	name string
	do   func(context.Context) error
}

var (
	errCancelled = errors.New("it was cancelled")
	errDeadline  = errors.New("its deadline has passed")
	errUnheeded  = &nf.Error{Op: "accept", Subject: "the request", Reason: reasonUnheeded, Err: errors.New("it was never accepted")}
)

// reasonUnheeded marks what is left of a request that was never accepted.
const reasonUnheeded = "unheeded"

// unrecorded is a failure to write the operation's own record. Such an
// operation has not failed: it must be tried again.
type unrecorded struct{ error }

func (u unrecorded) Unwrap() error { return u.error }

// retryPause is how long an operation rests whose record could not be written.
const retryPause = 5 * time.Second

// proceed does the operation's steps and, when one fails, what the request
// asked for in that case. Somebody who cancels the operation ends the second
// context; the first ends only with the service.
func (r *run) proceed(ctx, cancellable context.Context) error {
	if r.op.Failure == nil {
		err := r.forward(cancellable)
		if r.unfinished(ctx, err) {
			return err
		}
		if err == nil {
			return r.conclude(ctx, nil)
		}
		if err := r.fail(ctx, err); err != nil {
			return err
		}
	}
	var err error
	if r.op.Undoing {
		err = r.backward(ctx)
		if r.unfinished(ctx, err) {
			return err
		}
	}
	return r.concludeFailure(ctx, err)
}

// unfinished reports whether the operation must be left as it is, to be resumed.
func (r *run) unfinished(ctx context.Context, err error) bool {
	u := unrecorded{}
	return errors.As(err, &u) || errors.Is(err, errTaken) || err != nil && ctx.Err() != nil
}

// forward does the verb's steps before the deadline.
func (r *run) forward(ctx context.Context) error {
	if r.op.Cancel {
		return nf.E(nf.Cancelled, string(r.op.Verb), "VNF instance "+r.op.Instance, errCancelled)
	}
	limited, cancel := r.limit(ctx, r.op.Deadline)
	defer cancel()
	steps, err := r.steps(limited)
	if err == nil {
		err = r.execute(limited, steps)
	}
	return r.elaborate(ctx, r.explain(limited, err))
}

// backward undoes, within as much time as the operation had, whether or not it
// was cancelled.
func (r *run) backward(ctx context.Context) error {
	limited, cancel := r.limit(ctx, r.op.UndoBy)
	defer cancel()
	steps, err := r.undoSteps(limited)
	if err == nil {
		err = r.execute(limited, steps)
	}
	return r.elaborate(ctx, r.explain(limited, err))
}

// explain gives an error that comes from the end of the context the reason why
// the context ended.
func (r *run) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	subject := "VNF instance " + r.op.Instance
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCancelled):
		return nf.E(nf.Cancelled, string(r.op.Verb), subject, errCancelled)
	case errors.Is(cause, errDeadline) && nf.KindOf(err) != nf.Timeout:
		// What it was at is known by its step; the error may speak of the store.
		r.log.WarnContext(ctx, "the deadline has passed", "step", r.current(), "error", r.secrets.error(err))
		if w := r.op.Waiting; w != nil {
			return &nf.Error{Kind: nf.Timeout, Op: string(r.op.Verb), Subject: subject, Reason: w.Reason,
				Err: fmt.Errorf("%w, while it waited for the cloud region: %s", r.timedOut(cause), w.For)}
		}
		return nf.E(nf.Timeout, string(r.op.Verb), subject, r.timedOut(cause))
	}
	return err
}

func (r *run) execute(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if r.done(s.name) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.enter(ctx, s.name); err != nil {
			return err
		}
		if err := r.perform(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// perform does one step, again and again while the region is away.
func (r *run) perform(ctx context.Context, s step) error {
	traced, end := r.cfg.Trace.Step(ctx, s.name)
	for n := 0; ; n++ {
		err := s.do(traced)
		if !away(err) {
			if err == nil {
				err = r.arrived(ctx)
			}
			end(err)
			return err
		}
		if err := r.wait(traced, n, err); err != nil {
			end(err)
			return err
		}
	}
}

func (r *run) done(name string) bool {
	for _, s := range r.op.Steps {
		if s.Name == name && !s.Finished.IsZero() {
			return true
		}
	}
	return false
}

// enter records, in one write, that the last step is finished and the named
// one begins.
func (r *run) enter(ctx context.Context, name string) error {
	r.log.DebugContext(ctx, "step begins", "step", name)
	return r.save(ctx, func(op *nf.Operation) {
		now := r.now()
		if n := len(op.Steps); n > 0 {
			if op.Steps[n-1].Name == name {
				return // resumed
			}
			if op.Steps[n-1].Finished.IsZero() {
				op.Steps[n-1].Finished = now
			}
		}
		op.Steps = append(op.Steps, nf.Step{Name: name, Started: now})
	})
}

// current returns the step that runs; only save may change it.
func (r *run) current() string {
	if n := len(r.op.Steps); n > 0 {
		return r.op.Steps[n-1].Name
	}
	return "begin"
}

// note changes the operation's record with the next write.
func (r *run) note(edit func(*nf.Operation)) { r.pending = append(r.pending, edit) }

// save writes the operation, whatever was noted included.
func (r *run) save(ctx context.Context, edit func(*nf.Operation)) error {
	op, err := r.operations.Update(ctx, r.op.ID, func(op *nf.Operation) error {
		if op.Claim != r.job.token {
			return errTaken
		}
		for _, noted := range r.pending {
			noted(op)
		}
		edit(op)
		return nil
	})
	if err != nil {
		return recordError(err)
	}
	r.pending, r.op = nil, op
	r.tell(op)
	return nil
}

// progress tells followers how far the current step is, without writing it.
func (r *run) progress(current, objects int, message string) {
	message = r.secrets.Text(message)
	edit := func(op *nf.Operation) {
		if n := len(op.Steps); n > 0 {
			op.Steps[n-1].Current, op.Steps[n-1].Objects, op.Steps[n-1].Message = current, objects, message
		}
	}
	r.op.Steps = append([]nf.Step(nil), r.op.Steps...) // followers hold the old slice
	edit(&r.op)
	r.feed.publish(r.op)
}

// fail records why the operation did not succeed, and whether it is undone.
func (r *run) fail(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx) // the deadline may be what failed
	failure := nf.FailureOf(r.current(), r.secrets.error(cause))
	r.log.WarnContext(ctx, "operation failed", "step", failure.Step, "kind", failure.Kind, "error", failure.Message, "on_failure", r.op.OnFailure)
	undo, err := r.undoable(ctx)
	if err != nil {
		return err
	}
	return r.save(ctx, func(op *nf.Operation) {
		op.Failure, op.Undoing, op.Waiting = failure, undo, nil
		r.markFailed(op, failure.Message)
		if undo {
			op.UndoBy = r.now().Add(op.Deadline.Sub(op.Accepted))
		}
	})
}

// markFailed ends the current step as one that failed.
func (r *run) markFailed(op *nf.Operation, message string) {
	if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
		step := &op.Steps[n-1]
		step.Finished, step.Failed, step.Message = r.now(), true, message
	}
}

// conclude writes the operation's end.
func (r *run) conclude(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	err := r.save(ctx, func(op *nf.Operation) {
		now := r.now()
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			op.Steps[n-1].Finished = now
		}
		op.Finished, op.Waiting = now, nil
		if cause != nil && op.Failure == nil {
			op.Failure = nf.FailureOf(r.current(), cause)
		}
		op.State = endOf(*op)
	})
	if err != nil {
		return err
	}
	r.cfg.Meter.Finished(r.op)
	r.log.InfoContext(ctx, "operation ended", "state", r.op.State, "seconds", r.op.Finished.Sub(r.op.Accepted).Seconds())
	return nil
}

func endOf(op nf.Operation) nf.OperationState {
	switch {
	case op.Failure == nil:
		return nf.Succeeded
	case op.Failure.Kind == nf.Cancelled:
		return nf.OperationCancelled
	}
	return nf.OperationFailed
}

// concludeFailure unlocks the instance of a failed operation, in a state that
// says what is left of it, and writes the operation's end.
func (r *run) concludeFailure(ctx context.Context, undoing error) error {
	ctx = context.WithoutCancel(ctx) // the operation's last word
	message := r.op.Failure.Message
	if undoing = r.secrets.error(undoing); undoing != nil {
		r.log.ErrorContext(ctx, "operation could not be undone", "step", r.current(), "error", undoing)
		message = fmt.Sprintf("%s; undoing it failed in step %q: %s", message, r.current(), undoing)
		r.note(func(op *nf.Operation) {
			op.Failure.Message = message
			r.markFailed(op, undoing.Error())
		})
	}
	err := r.unlock(ctx, func(in *nf.Instance) { in.State, in.Message = nf.Broken, message })
	if err := nf.UnlessGone(err); err != nil {
		return err
	}
	return r.conclude(ctx, nil)
}

// recordError marks an error of the store that will pass as one; others, such
// as a record that is too large, are failures like any.
func recordError(err error) error {
	if kind := nf.KindOf(err); kind == nf.Unreachable || kind == nf.Conflict {
		return unrecorded{err}
	}
	return err
}
