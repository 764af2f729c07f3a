package operation

import (
	"cmp"
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// errOver says that there is nothing left to do for an operation.
var errOver = errors.New("the operation is over")

// errAbsent says that an operation does not exist, and that its claim is deleted. If the
// operation is stored later all the same, its claim is, too.
var errAbsent = errors.New("the operation does not exist")

var errNotAccepted = &nf.Error{Op: "accept", Subject: "the request", Reason: nf.ReasonNotAccepted, Err: errors.New("it was never accepted")}

// begin reads the operation and marks it as running on this replica.
func (x *execution) begin(ctx context.Context) error {
	op, read, err := x.attempt.ledger.operations.GetRevision(ctx, x.attempt.job.ID)
	if err == nil && op.Attempts == 0 && op.State == nf.Queued && op.Claim == x.attempt.job.Token {
		return x.beginFirst(ctx, op, read)
	}
	resumed := false
	var ended nf.Operation
	op, err = x.attempt.ledger.operations.Update(ctx, x.attempt.job.ID, func(op *nf.Operation) (err error) {
		if op.State.Final() {
			ended = *op
			return errOver
		}
		x.attempt.initial = op.Attempts == 0
		if resumed = op.Attempts > 0 && op.Claim != x.attempt.job.Token; resumed || op.Attempts == 0 {
			op.Attempts++
		}
		if op.Claim, err = x.attempt.bind(ctx, op.Claim); err != nil {
			return err
		}
		if op.Started.IsZero() {
			op.Started = x.attempt.Now()
		}
		x.attempt.first = 0
		if x.restart && !op.Succeeding && op.Failure == nil {
			x.attempt.interrupt(op)
			x.attempt.first = len(op.Steps)
		}
		return op.Move(nf.Running)
	})
	if nf.KindOf(err) == nf.NotFound {
		return x.forget(ctx)
	}
	if errors.Is(err, errOver) && refused(ended) { // the process crashed while it removed the records
		return x.remove(ctx, ended)
	}
	if err != nil {
		return RecordError(err)
	}
	x.attempt.draft.reset(op, store.Absent)
	return x.proceedWith(ctx, op, resumed)
}

// forget removes what refers to an operation that does not exist. Either its request was
// refused, or it is unknown whether its records were written. In that case they may be
// written at any moment, and this or another replica must then find the claim.
func (x *execution) forget(ctx context.Context) error {
	j := x.attempt.job
	err := x.attempt.ledger.removeAbsent(ctx, listedOf(nf.Operation{ID: j.ID, Subject: j.Subject, Project: j.Project, Region: j.Region}))
	if nf.KindOf(err) == nf.Exists {
		return x.begin(ctx)
	}
	return cmp.Or(RecordError(err), errAbsent)
}

// beginFirst begins the first attempt at an operation that this replica has accepted.
// The begin is written with the first step.
func (x *execution) beginFirst(ctx context.Context, op nf.Operation, read store.Revision) error {
	x.attempt.draft.reset(op, read)
	x.attempt.initial = true
	now := x.attempt.Now()
	x.attempt.Note(func(op *nf.Operation) { op.Attempts, op.Started, op.State = 1, now, nf.Running })
	op, err := x.attempt.draft.current()
	if err != nil {
		return err
	}
	return x.proceedWith(ctx, op, false)
}

// proceedWith takes over the operation as this attempt begins it, and binds its
// subject.
func (x *execution) proceedWith(ctx context.Context, op nf.Operation, resumed bool) error {
	x.attempt.op = op
	x.attempt.log = x.attempt.log.With("verb", op.QualifiedVerb(), op.Subject.Kind.Key(), op.Subject.ID)
	if resumed {
		x.attempt.cfg.Meter.Resumed(op)
		x.attempt.log.InfoContext(ctx, "operation resumed", "attempt", op.Attempts)
	}
	x.attempt.ledger.feed.setRunning(op)
	locked, err := x.work.Bind(ctx)
	switch {
	case err != nil:
		return RecordError(err)
	case locked:
		return nil
	case len(op.Steps) == 0 && op.Failure == nil:
		// The process crashed between recording the operation and accepting it.
		return x.withdraw(ctx)
	default:
		// The operation has unlocked its subject, which another operation may use by
		// now. Only its end must be recorded.
		return cmp.Or(RecordError(x.attempt.conclude(ctx)), errOver)
	}
}

// withdraw removes the records of an operation whose request was never accepted.
func (x *execution) withdraw(ctx context.Context) error {
	// Order matters: only the replica that holds the claim may remove anything.
	err := x.attempt.Save(ctx, func(op *nf.Operation) {
		op.State, op.Finished, op.Failure = nf.OperationFailed, x.attempt.Now(), nf.FailureOf("", errNotAccepted)
	})
	if err != nil {
		return err
	}
	return x.remove(ctx, x.attempt.op)
}

// refused reports whether an operation was ended because its request was never
// accepted.
func refused(op nf.Operation) bool {
	return op.State.Final() && op.Failure != nil && op.Failure.Reason == nf.ReasonNotAccepted
}

// remove removes the records of an operation that was ended so.
func (x *execution) remove(ctx context.Context, op nf.Operation) error {
	if err := errors.Join(x.attempt.workers.kinds[op.Subject.Kind].Withdraw(ctx, op), x.attempt.workers.DeleteRequest(ctx, op.ID, op.Request)); err != nil {
		return RecordError(err)
	}
	return cmp.Or(RecordError(x.attempt.ledger.remove(ctx, listedOf(op))), errOver)
}
