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
	return e.acceptor.accept(ctx, opts.Key, func() (request, error) {
		in, failed, err := e.failedOperation(ctx, "retry", operation, opts)
		if err != nil {
			return request{}, err
		}
		if opts.OnFailure == "" && !failed.Undoing {
			opts.OnFailure = nf.Keep
		}
		if failed.Verb == nf.Terminate {
			req := nf.TerminateRequest{Orphan: failed.Instance.Orphan, Claims: nf.ClaimsKeep, Cascade: failed.Instance.Cascade, Options: opts}
			if failed.Instance.Volumes {
				req.Claims = nf.ClaimsDelete
			}
			return e.acceptor.termination(in, req, operation), nil
		}
		if failed.Verb == nf.Adopt {
			return request{}, nf.E(nf.Conflict, "retry", "operation "+operation, errors.New("a failed adoption releases its objects; adopt them again"))
		}
		if isAct(failed.Verb) {
			return e.acceptor.actAgain(in, failed, opts, false), nil
		}
		p, rev, err := e.preparer.again(ctx, in, failed.Instance.Target)
		if err != nil {
			return request{}, err
		}
		return e.change(ctx, in, p, revised{verb: failed.Verb, rev: rev, opts: opts, repeats: operation})
	})
}

// Undo accepts the undo of an operation that failed and was kept, and returns
// the operation that does it: a rollback to the revision in force, the removal of
// an instance that never had one, or the reverse of an action.
func (e *Engine) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.acceptor.accept(ctx, opts.Key, func() (request, error) {
		in, failed, err := e.failedOperation(ctx, "undo", operation, opts)
		if err != nil {
			return request{}, err
		}
		if failed.Verb == nf.Terminate {
			return request{}, nf.E(nf.Conflict, "undo", "operation "+operation, fmt.Errorf("deleted objects cannot be restored; roll the instance back instead"))
		}
		if in.Revision == 0 {
			return e.acceptor.termination(in, nf.TerminateRequest{Claims: nf.ClaimsKeep, Options: opts}, ""), nil
		}
		if isAct(failed.Verb) && len(reversed(failed.Instance.Settings)) == 0 {
			return request{}, nf.E(nf.Conflict, "undo", "operation "+operation, errors.New("the restart of a virtual machine has no undo; retry it"))
		}
		if isAct(failed.Verb) {
			return e.acceptor.actAgain(in, failed, opts, true), nil
		}
		previous, err := e.records.revision(ctx, in.ID, in.Revision)
		if err != nil {
			return request{}, err
		}
		p, rev, err := e.preparer.again(ctx, in, previous)
		if err != nil {
			return request{}, err
		}
		rev.Restores = previous.Number
		return e.change(ctx, in, p, revised{verb: nf.Rollback, rev: rev, opts: opts})
	})
}

// failedOperation returns a failed operation and its instance. It returns nf.Conflict
// if the operation did not fail, was undone, or was followed by another one.
func (e *Engine) failedOperation(ctx context.Context, verb, operation string, opts nf.Options) (nf.Instance, nf.Operation, error) {
	op, err := e.Operation(ctx, operation)
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
	case nf.Heal, nf.Correct:
		return refuse("what it has healed stays; heal the instance again")
	case nf.Migrate:
		return refuse("a migration has no undo, and the virtual machine runs; migrate it again")
	default:
	}
	if err := opts.Validate(); err != nil {
		return nf.Instance{}, op, err
	}
	in, err := e.records.instances.Get(ctx, op.Subject.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return refuse("it was undone: VNF instance %s was deleted", op.Subject.ID)
	case err != nil:
		return in, op, err
	}
	if err := lockOf(&in).Free(verb); err != nil {
		return in, op, err
	}
	if in.LastOperation != operation {
		return refuse("operation %s came after it", in.LastOperation)
	}
	if in.State != nf.Broken {
		return refuse("it was undone: VNF instance %s is %s", in.ID, in.State)
	}
	return in, op, nil
}

// Cancel requests that a running operation stop; see operation.Ledger.
func (e *Engine) Cancel(ctx context.Context, id string) (nf.Operation, error) {
	if op, err := e.Operation(ctx, id); err != nil {
		return op, err
	}
	return e.records.ledger.Cancel(ctx, id)
}
