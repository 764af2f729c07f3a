package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Retry accepts another attempt at an operation that failed and was not undone,
// and returns the new operation: it does what the failed one was to do, from its
// plan. If it fails too, what it did is kept, unless the options say otherwise or
// the failed operation was to be undone and could not be. It is nf.Conflict when
// there is nothing to try again, and fails as Upgrade does.
func (e *Engine) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.once(ctx, opts.Key, func() (nf.Operation, error) { return e.retry(ctx, operation, opts) })
}

func (e *Engine) retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	in, failed, err := e.leftover(ctx, "retry", operation, opts)
	if err != nil {
		return nf.Operation{}, err
	}
	if opts.OnFailure == "" && !failed.Undoing {
		opts.OnFailure = nf.Keep
	}
	switch failed.Verb {
	case nf.Terminate:
		return e.terminate(ctx, in, nf.TerminateRequest{Orphan: failed.Orphan, Volumes: failed.Volumes, Options: opts}, operation)
	case nf.Adopt:
		return nf.Operation{}, nf.E(nf.Conflict, "retry", "operation "+operation, errors.New("what could not be adopted is let go of, and can be adopted again"))
	case nf.Instantiate, nf.Upgrade, nf.Rollback, nf.Configure, nf.Test:
	}
	p, rev, err := e.prepareAgain(ctx, in, failed.Target)
	if err != nil {
		return nf.Operation{}, err
	}
	return e.change(ctx, in, p, revised{verb: failed.Verb, rev: rev, opts: opts, repeats: operation})
}

// Undo accepts the return to what was before an operation that failed and was
// kept, and returns the operation that does it: a rollback to the revision in
// force, or the removal of an instance that never had one.
func (e *Engine) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.once(ctx, opts.Key, func() (nf.Operation, error) { return e.undo(ctx, operation, opts) })
}

func (e *Engine) undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	in, failed, err := e.leftover(ctx, "undo", operation, opts)
	if err != nil {
		return nf.Operation{}, err
	}
	if failed.Verb == nf.Terminate {
		return nf.Operation{}, nf.E(nf.Conflict, "undo", "operation "+operation, fmt.Errorf("what was deleted cannot be brought back; roll the instance back instead"))
	}
	if in.Revision == 0 {
		return e.terminate(ctx, in, nf.TerminateRequest{Options: opts}, "")
	}
	former, err := e.Revision(ctx, in.ID, in.Revision)
	if err != nil {
		return nf.Operation{}, err
	}
	p, rev, err := e.prepareAgain(ctx, in, former)
	if err != nil {
		return nf.Operation{}, err
	}
	rev.Restores = former.Number
	return e.change(ctx, in, p, revised{verb: nf.Rollback, rev: rev, opts: opts})
}

// leftover returns a failed operation and the instance that it has left as it
// was; nf.Conflict when it did not fail, was undone, or another came after it.
func (e *Engine) leftover(ctx context.Context, verb, operation string, opts nf.Options) (nf.Instance, nf.Operation, error) {
	op, err := e.operations.Get(ctx, operation)
	if err != nil {
		return nf.Instance{}, op, err
	}
	refuse := func(format string, args ...any) (nf.Instance, nf.Operation, error) {
		return nf.Instance{}, op, nf.E(nf.Conflict, verb, "operation "+operation, fmt.Errorf(format, args...))
	}
	if !op.State.Final() || op.State == nf.Succeeded {
		return refuse("it is %s", op.State)
	}
	if err := opts.Validate(); err != nil {
		return nf.Instance{}, op, err
	}
	in, err := e.instances.Get(ctx, op.Instance)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return refuse("it was undone: VNF instance %s is gone", op.Instance)
	case err != nil:
		return in, op, err
	}
	if err := free(verb, in); err != nil {
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
