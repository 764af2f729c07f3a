package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Retry accepts another attempt at an operation that failed and was not undone,
// and returns the new operation, which uses the failed one's plan, even if its
// package was disabled or replaced since. If it fails too, its result is kept, unless the options say otherwise or the failed
// operation was to be undone and could not be. It returns nf.Conflict if there
// is nothing to retry, and otherwise fails as Upgrade does.
func (e *Engine) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, opts.Key, func() (request, error) {
		r, err := q.retrying(ctx, operation, opts)
		if err != nil {
			return request{}, err
		}
		return q.repairing(ctx, r)
	})
}

// Undo accepts the undo of an operation that failed and was kept, and returns
// the operation that does it: a rollback to the revision in force, the removal of
// an instance that never had one, or the reverse of an action.
func (e *Engine) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, opts.Key, func() (request, error) {
		r, err := q.undoing(ctx, operation, opts)
		if err != nil {
			return request{}, err
		}
		return q.repairing(ctx, r)
	})
}

// PreviewRetry returns the changes that Retry would make in the region, or fails as it
// would.
func (e *Engine) PreviewRetry(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	r, err := q.retrying(ctx, operation, opts)
	if err != nil {
		return nf.Preview{}, err
	}
	return q.previewRepair(ctx, r)
}

// PreviewUndo returns the changes that Undo would make in the region, or fails as it
// would.
func (e *Engine) PreviewUndo(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	r, err := q.undoing(ctx, operation, opts)
	if err != nil {
		return nf.Preview{}, err
	}
	return q.previewRepair(ctx, r)
}

// repair is a retry or an undo that is prepared: a termination, an action, or a change
// to a target.
type repair struct {
	in      nf.Instance
	failed  nf.Operation
	opts    nf.Options
	undo    bool
	removal *nf.TerminateRequest // nil: no termination
	target  *prepared            // nil: no change
	change  revised              // to the target
}

// retrying prepares a retry.
func (q *requester) retrying(ctx context.Context, operation string, opts nf.Options) (r repair, err error) {
	if r.in, r.failed, err = q.failedOperation(ctx, "retry", operation, opts); err != nil {
		return r, err
	}
	if opts.OnFailure == "" && !r.failed.Undoing {
		opts.OnFailure = nf.Keep
	}
	r.opts = opts
	switch {
	case r.failed.Verb == nf.Terminate:
		r.removal = &nf.TerminateRequest{Orphan: r.failed.Instance.Orphan, Claims: nf.ClaimsKeep, Cascade: r.failed.Instance.Cascade, Grace: r.failed.Instance.Grace, Options: opts}
		if r.failed.Instance.Volumes {
			r.removal.Claims = nf.ClaimsDelete
		}
		return r, nil
	case r.failed.Verb == nf.Adopt:
		return r, nf.E(nf.Conflict, "retry", "operation "+operation, errors.New("a failed adoption releases its objects; adopt them again"))
	case isAct(r.failed.Verb):
		return r, nil
	}
	r.change = revised{verb: r.failed.Verb, opts: opts, repeats: operation}
	r.target, r.change.rev, err = q.preparer.again(ctx, r.in, r.failed.Instance.Target)
	return r, err
}

// undoing prepares an undo.
func (q *requester) undoing(ctx context.Context, operation string, opts nf.Options) (r repair, err error) {
	r.opts, r.undo = opts, true
	if r.in, r.failed, err = q.failedOperation(ctx, "undo", operation, opts); err != nil {
		return r, err
	}
	switch {
	case r.failed.Verb == nf.Terminate:
		return r, nf.E(nf.Conflict, "undo", "operation "+operation, fmt.Errorf("deleted objects cannot be restored; roll the instance back instead"))
	case r.in.Revision == 0:
		r.removal = &nf.TerminateRequest{Claims: nf.ClaimsKeep, Options: opts}
		return r, q.preparer.unowned(ctx, "undo", r.in.ID, nf.Subject{})
	case isAct(r.failed.Verb) && len(reversed(r.failed.Instance.Settings)) == 0:
		return r, nf.E(nf.Conflict, "undo", "operation "+operation, errors.New("the restart of a virtual machine has no undo; retry it"))
	case isAct(r.failed.Verb):
		return r, nil
	}
	previous, err := q.records.revision(ctx, r.in.ID, r.in.Revision)
	if err != nil {
		return r, err
	}
	r.change = revised{verb: nf.Rollback, opts: opts}
	r.target, r.change.rev, err = q.preparer.again(ctx, r.in, previous)
	r.change.rev.Restores = previous.Number
	return r, err
}

// repairing returns the request for a repair.
func (q *requester) repairing(ctx context.Context, r repair) (request, error) {
	switch {
	case r.removal != nil:
		return q.acceptor.termination(r.in, *r.removal, r.repeats()), nil
	case r.target == nil:
		return q.acceptor.actAgain(r.in, r.failed, r.opts, r.undo), nil
	default:
		return q.change(ctx, r.in, r.target, r.change)
	}
}

// repeats returns the operation that a repair retries; an undo retries none.
func (r repair) repeats() string {
	if r.undo {
		return ""
	}
	return r.failed.ID
}

// previewRepair returns what a repair would change. The failed operation need not have
// created all objects of the inventory, so those to be removed are looked for.
func (q *requester) previewRepair(ctx context.Context, r repair) (p nf.Preview, err error) {
	switch {
	case r.removal != nil:
		p = q.preparer.previewTermination(ctx, r.in, *r.removal)
	case r.target == nil:
		return q.previewSettings(ctx, r.in, q.acceptor.actAgain(r.in, r.failed, r.opts, r.undo).op.Instance.Settings)
	default:
		retune(&r.target.plan, r.in, r.change.verb, r.change.rev.Inputs)
		if p, err = q.preparer.preview(ctx, r.in, r.target); err != nil {
			return p, err
		}
	}
	if !q.findRemoved(ctx, r.in, p.Changes) {
		p.Warnings = append(p.Warnings, "some of the objects may not exist: the region could not be read")
	}
	return p, nil
}

// failedOperation returns a failed operation and its instance. It returns nf.Conflict
// if the operation did not fail, was undone, or was followed by another one.
func (q *requester) failedOperation(ctx context.Context, verb, operation string, opts nf.Options) (nf.Instance, nf.Operation, error) {
	op, err := q.records.ledger.Of(ctx, subjectOf(""), operation)
	if err != nil {
		return nf.Instance{}, op, err
	}
	refuse := func(format string, args ...any) (nf.Instance, nf.Operation, error) {
		return nf.Instance{}, op, nf.E(nf.Conflict, verb, "operation "+operation, fmt.Errorf(format, args...))
	}
	if !op.State.Final() || op.State == nf.Succeeded {
		return refuse("it is %s", op.State)
	}
	switch op.Verb {
	case nf.Test:
		return refuse("it has changed nothing; run the tests again")
	case nf.Heal, nf.Correct:
		return refuse("what it has healed stays; heal the instance again")
	case nf.Migrate:
		return refuse("a migration has no undo, and the virtual machine runs; migrate it again")
	default:
	}
	if err := opts.Validate(); err != nil {
		return nf.Instance{}, op, err
	}
	in, err := q.records.instances.Get(ctx, op.Subject.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return refuse("it was undone: VNF instance %s was deleted", op.Subject.ID)
	case err != nil:
		return in, op, err
	}
	if err := lockOf(&in).Free(verb); err != nil {
		return in, op, err
	}
	last, err := q.records.lastChange(ctx, in)
	if err != nil {
		return in, op, err
	}
	if last != operation {
		return refuse("operation %s came after it", last)
	}
	if in.State != nf.Broken {
		return refuse("it was undone: VNF instance %s is %s", in.ID, in.State)
	}
	return in, op, nil
}

// lastChange returns the last operation of a failed instance that is no test.
func (s *records) lastChange(ctx context.Context, in nf.Instance) (string, error) {
	op, err := s.ledger.Get(ctx, in.LastOperation)
	if err == nil && op.Verb == nf.Test && op.Instance.After != "" {
		return op.Instance.After, nil
	}
	return in.LastOperation, nf.IgnoreNotFound(err)
}

// Cancel requests that a running operation stop; see operation.Ledger.
func (e *Engine) Cancel(ctx context.Context, id string) (nf.Operation, error) {
	if op, err := e.Operation(ctx, id); err != nil {
		return op, err
	}
	return e.records.ledger.Cancel(ctx, id)
}

// Stop requests that a running operation stop before its next step; see operation.Ledger.
func (e *Engine) Stop(ctx context.Context, id string) (nf.Operation, error) {
	if op, err := e.Operation(ctx, id); err != nil {
		return op, err
	}
	return e.records.ledger.Stop(ctx, id)
}
