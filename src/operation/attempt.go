package operation

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Attempt is this replica's attempt to run an operation. It writes the
// operation's record, and its token fences every write: after another replica
// has claimed the operation, writes return ErrTaken. It is not safe for
// concurrent use.
type Attempt struct {
	cfg     *Config
	ledger  *Ledger
	workers *Workers
	job     Job

	op    nf.Operation // as followers see it
	first int          // index of the first step of this attempt
	begun bool         // a step of this attempt has begun
	// leaving: the subject is unlocked or deleted by now, or will be with the next write.
	leaving bool
	initial bool // no attempt has begun before this one
	// atEnd has a function called with the cause when the service or this replica's lease
	// ends.
	atEnd func(context.CancelCauseFunc) (forget func() bool)
	log   *slog.Logger
	draft *draft
}

// Job returns the operation as the list of work has it.
func (a *Attempt) Job() Job { return a.job }

// Op returns the operation. Its contents must not be changed.
func (a *Attempt) Op() nf.Operation { return a.op }

// Log returns a logger for messages about the operation.
func (a *Attempt) Log() *slog.Logger { return a.log }

// Initial reports whether this is the operation's first attempt: neither this
// process nor another one has run any of its steps before.
func (a *Attempt) Initial() bool { return a.initial }

// Now returns the time, in UTC, as it will be read from a record.
func (a *Attempt) Now() time.Time { return a.cfg.Clock().UTC().Round(0) }

// Yield releases the operation's place while the operation only waits.
func (a *Attempt) Yield() (resume func()) { return a.workers.Yield(a.job) }

// bind returns the claim to store in a record that has the given one, so that the
// record is this attempt's. It must be called between the read and the write of
// the record's revision.
func (a *Attempt) bind(ctx context.Context, claim string) (string, error) {
	if claim == a.job.Token {
		return claim, nil
	}
	return a.job.Token, a.workers.Held(ctx, a.job)
}

// interrupt ends the step that an earlier process has left open.
func (a *Attempt) interrupt(op *nf.Operation) {
	if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
		last := &op.Steps[n-1]
		last.Finished, last.Failed = a.Now(), true
		last.Report("the run was interrupted; it starts again")
	}
}

// Note edits the operation's record with the next write. Edit may run several
// times, each time on a fresh value.
func (a *Attempt) Note(edit func(*nf.Operation)) { a.draft.note(edit) }

// Also adds ops to the next write of the operation's record, before that record.
// Build may run several times, and reads what the ops depend on each time.
func (a *Attempt) Also(build func(context.Context) ([]store.Op, error)) { a.draft.also(build) }

// Save writes the operation with what was noted and added.
func (a *Attempt) Save(ctx context.Context, edit func(*nf.Operation)) error {
	return a.save(ctx, edit)
}

func (a *Attempt) save(ctx context.Context, edit func(*nf.Operation), after ...store.Op) error {
	op, err := a.draft.write(ctx, a, edit, after...)
	if err != nil {
		return err
	}
	a.op = op
	a.ledger.feed.setRunning(op)
	return nil
}

// Progress publishes the current step's progress to followers, without storing
// it.
func (a *Attempt) Progress(edit func(*nf.Step)) {
	a.op.Steps = slices.Clone(a.op.Steps) // followers hold the old slice
	if n := len(a.op.Steps); n > 0 {
		edit(&a.op.Steps[n-1])
	}
	a.ledger.feed.publish(a.op)
}

// Held returns ErrTaken if another replica has claimed the operation. A step calls
// it between two changes outside the operation's own records, so that a replica
// that has stalled completes at most one of them.
func (a *Attempt) Held(ctx context.Context) error { return RecordError(a.workers.Held(ctx, a.job)) }

// KeepChanges records what the current step has changed, with the next write of the
// operation's record.
func (a *Attempt) KeepChanges(changes []nf.Change) {
	if len(changes) > 0 {
		a.draft.change(len(a.op.Steps)-1, changes)
	}
}

// overwrite writes a record that another attempt may have written: an earlier
// one, or a later one if this one is stale. It returns ErrTaken if another replica
// has claimed the operation.
func overwrite[T any](ctx context.Context, a *Attempt, t store.Table[T], key string, v T) error {
	held := func() error { return a.workers.Held(ctx, a.job) }
	if err := held(); err != nil {
		return err
	}
	err := t.Insert(ctx, key, v)
	if nf.KindOf(err) == nf.Exists {
		_, err = t.Update(ctx, key, func(stored *T) error {
			*stored = v
			return held()
		})
	}
	return err
}

// ChangesOf returns what a step of the operation has changed. It returns
// nf.NotFound if no changes were kept.
func (a *Attempt) ChangesOf(ctx context.Context, id nf.StepID) ([]nf.Change, error) {
	at := slices.IndexFunc(a.op.Steps, func(s nf.Step) bool { return s.StepID == id })
	if changes := a.draft.changesOf(at); changes != nil {
		return changes, nil
	}
	changes, err := a.ledger.changes.Get(ctx, changesKey(a.op.ID, at))
	return changes, RecordError(err)
}

// beginStep records the end of the last step and the start of the next one. It writes
// the first step of an attempt, and those that must be recorded before they run. The
// others are written with the next write, which comes within flushSteps.
func (a *Attempt) beginStep(ctx context.Context, next Step) error {
	a.log.DebugContext(ctx, "step begins", "step", next.Title())
	now := a.Now()
	edit := func(op *nf.Operation) {
		if n := len(op.Steps); n > a.first {
			if op.Steps[n-1].StepID == next.StepID {
				return // resumed
			}
			if op.Steps[n-1].Finished.IsZero() {
				op.Steps[n-1].Finished = now
			}
		}
		step := next.Step
		step.Started = now
		op.Steps = append(op.Steps, step)
	}
	if !a.begun || next.Recorded {
		a.begun = true
		return a.Save(ctx, edit)
	}
	if err := a.Held(ctx); err != nil { // as the write would have found out
		return err
	}
	a.Note(edit)
	op, err := a.draft.current()
	if err != nil {
		return err
	}
	a.op = op
	a.ledger.feed.setRunning(a.op)
	a.draft.flushSoon(ctx, a)
	return nil
}

// done reports whether a step was finished, in this attempt if the kind restarts.
func (a *Attempt) done(id nf.StepID) bool {
	return slices.ContainsFunc(a.op.Steps[a.first:], func(s nf.Step) bool { return s.StepID == id && !s.Finished.IsZero() })
}

// Current returns the title of the running step.
func (a *Attempt) Current() string {
	if n := len(a.op.Steps); n > a.first {
		return a.op.Steps[n-1].Title()
	}
	return "begin"
}

// markFailed ends the current step as failed, with the message of a failure that
// the operation's failure contains.
func (a *Attempt) markFailed(op *nf.Operation, failure *nf.Failure) {
	if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
		step := &op.Steps[n-1]
		step.Finished, step.Failed, step.InFailure = a.Now(), true, true
		step.Report(failure.Message, failure.Mentions...)
	}
}

// conclude records the operation's end, and removes it from the list of work.
func (a *Attempt) conclude(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	dropped, err := a.workers.claims.DeleteOp(a.job.ID, store.Any)
	if err != nil {
		return err
	}
	now := a.Now()
	err = a.save(ctx, func(op *nf.Operation) {
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			op.Steps[n-1].Finished = now
		}
		op.Finished, op.Waiting, op.Succeeding = now, nil, false
		op.State = endOf(*op)
	}, dropped)
	if err != nil {
		return err
	}
	a.cfg.Meter.Finished(a.op)
	a.log.InfoContext(ctx, "operation ended", "state", a.op.State, "seconds", a.op.Finished.Sub(a.op.Accepted).Seconds())
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
