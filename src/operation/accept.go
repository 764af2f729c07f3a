package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Acceptor accepts the requests of one kind: it records the operation of a
// prepared request, and makes it the one that changes its subject.
type Acceptor struct {
	workers *Workers
	kind    Kind
}

// Request is a prepared request: it has only to be recorded.
type Request struct {
	Operation nf.Operation
	// Store returns the ops that store what the operation refers to, and edits the
	// operation. They come before the operation. Content that does not fit into ops
	// is stored at once. Nil: there is nothing to store.
	Store func(ctx context.Context, op *nf.Operation) ([]store.Op, error)
	// Unstore deletes what Store has stored at once for the operation. Nil: there is
	// nothing.
	Unstore func(ctx context.Context, op nf.Operation) error
	// Lock returns the ops that store what refers to the operation. The last one makes
	// the subject name the operation: then the request is accepted. Lock reads what
	// the ops depend on. It is called again if that has changed before they were
	// written.
	Lock func(ctx context.Context, op nf.Operation) ([]store.Op, error)
}

// New returns the operation of a request that has just been prepared. The
// caller sets its verb, region and project, and what only its kind has.
func (ac *Acceptor) New(subject nf.Subject, timeout time.Duration) nf.Operation {
	now := ac.workers.cfg.Clock().UTC()
	if timeout <= 0 {
		timeout = ac.kind.Timeout
	}
	return nf.Operation{
		ID:      fmt.Sprintf("%012x-%s", now.UnixMilli(), ac.workers.cfg.NewID()),
		Subject: subject, State: nf.Queued, Steps: []nf.Step{}, Accepted: now, Deadline: now.Add(timeout), Claim: ac.workers.cfg.NewID(),
	}
}

// Accept prepares and records a request, unless it was already accepted under
// the same key. It returns the operation. Prepare writes nothing.
func (ac *Acceptor) Accept(ctx context.Context, k nf.RequestKey, prepare func() (Request, error)) (nf.Operation, error) {
	op, found, err := ac.repeated(ctx, k)
	if found || err != nil {
		return op, err
	}
	req, err := prepare()
	if err == nil {
		op, err = ac.record(ctx, k, req)
	}
	if err == nil || k.Key == "" {
		return op, err
	}
	// The conflict may be with a duplicate of this request, which came first.
	duplicate, found, lookupErr := ac.repeated(ctx, k)
	switch {
	case found:
		return duplicate, nil
	case lookupErr != nil:
		return op, lookupErr // a rejection would be final
	}
	return op, err
}

// repeated returns the operation that was accepted for a request with the same
// key, as Workers.Repeated does.
func (ac *Acceptor) repeated(ctx context.Context, k nf.RequestKey) (op nf.Operation, found bool, err error) {
	id, err := ac.workers.Repeated(ctx, k, ac.standing)
	if id == "" || err != nil {
		return op, false, err
	}
	op, err = ac.workers.ledger.Get(ctx, id)
	return op, err == nil, err
}

// standing tells what became of an operation. Its request was accepted if its
// subject names it, or if it has started.
func (ac *Acceptor) standing(ctx context.Context, id string) (Standing, error) {
	op, err := ac.workers.ledger.Get(ctx, id)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return Unknown, nil
	case err != nil:
		return "", err
	case refused(op):
		return Refused, nil
	case op.State.Final(), len(op.Steps) > 0:
		return Accepted, nil
	}
	named, err := ac.kind.Names(ctx, op)
	if named {
		return Accepted, err
	}
	return Pending, err
}

// record writes a request's records, until nothing that they depend on has changed
// in the meantime.
func (ac *Acceptor) record(ctx context.Context, k nf.RequestKey, req Request) (nf.Operation, error) {
	ctx, done := ac.workers.detached(ctx)
	defer done()
	req.Operation.Request = k
	for attempt := 0; ; attempt++ {
		op, err := ac.write(ctx, req)
		kind := nf.KindOf(err)
		if changed := errors.As(err, new(*store.WriteError)) && (kind == nf.Conflict || kind == nf.Exists); !changed {
			return op, err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return op, err
		}
	}
}

// write writes a request's records in one list: those that the operation refers
// to, the operation, and then its subject. None has an effect before the subject
// names the operation. Its error is a store.WriteError if what the records depend
// on has changed.
func (ac *Acceptor) write(ctx context.Context, req Request) (nf.Operation, error) {
	op := req.Operation
	ops, err := ac.ops(ctx, &op, req)
	if err != nil { // none of the ops was carried out
		ac.unstore(ctx, op, req)
		return nf.Operation{}, err
	}
	err = ac.workers.Reserve(ctx, jobOf(op), op.Request, ops...)
	switch {
	case nf.ReasonOf(err) == nf.ReasonIdempotency: // nothing was written
		return nf.Operation{}, err
	case err != nil && nf.KindOf(err) != nf.Unreachable:
		ac.discard(ctx, op)
		return nf.Operation{}, err
	}
	// If it is unknown whether the records were written, the operation is queued
	// too: the attempt finds out whether the subject names it.
	ac.workers.Start(ctx, jobOf(op))
	if err != nil {
		return nf.Operation{}, err
	}
	ac.workers.cfg.Logger.InfoContext(ctx, "operation accepted", slog.String("operation", op.ID), slog.Any("verb", op.QualifiedVerb()),
		slog.String(op.Subject.Kind.Key(), op.Subject.ID), slog.String("region", op.Region), slog.String("deadline", op.Deadline.Format(time.RFC3339)))
	return op, nil
}

// ops returns the ops of a request, except those of the list of work.
func (ac *Acceptor) ops(ctx context.Context, op *nf.Operation, req Request) ([]store.Op, error) {
	var stored []store.Op
	var err error
	if req.Store != nil {
		if stored, err = req.Store(ctx, op); err != nil {
			return nil, err
		}
	}
	inserted, err := ac.workers.ledger.insertOps(*op)
	if err != nil {
		return nil, err
	}
	locked, err := req.Lock(ctx, *op)
	return slices.Concat(stored, inserted, locked), err
}

const discardTime = 5 * time.Second

// discard removes the records of a request that was not accepted. It is best
// effort: records that it cannot remove now are never used.
func (ac *Acceptor) discard(ctx context.Context, op nf.Operation) {
	ac.cleanUp(ctx, op, func(ctx context.Context) error {
		err := ac.kind.Withdraw(ctx, op)
		if err == nil { // otherwise the replica that takes the operation over withdraws it again
			err = errors.Join(ac.workers.ledger.remove(ctx, listedOf(op)), ac.workers.Drop(ctx, op.ID))
		}
		return errors.Join(err, ac.workers.abandon(ctx, jobOf(op), op.Request))
	})
}

// unstore removes what was stored for a request before its records. It is best effort,
// as discard is.
func (ac *Acceptor) unstore(ctx context.Context, op nf.Operation, req Request) {
	if req.Unstore != nil {
		ac.cleanUp(ctx, op, func(ctx context.Context) error { return req.Unstore(ctx, op) })
	}
}

// cleanUp removes something of a request that was not accepted.
func (ac *Acceptor) cleanUp(ctx context.Context, op nf.Operation, remove func(context.Context) error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), discardTime) // the request's own deadline may have passed
	defer done()
	if err := remove(ctx); err != nil {
		ac.workers.cfg.Logger.WarnContext(ctx, "failed to delete the records of a rejected request", "operation", op.ID, "error", err)
	}
}

// jobOf returns an operation as the list of work has it.
func jobOf(op nf.Operation) Job {
	return Job{ID: op.ID, Subject: op.Subject, Project: op.Project, Region: op.Region, Token: op.Claim}
}
