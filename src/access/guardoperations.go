package access

import (
	"context"
	"errors"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Operations gives access to operations on VNF instances with the permissions of
// the identity in the context.
type Operations struct {
	guard  *guard
	engine OperationEngine
	scoped ScopedRecords
}

var _ OperationEngine = (*Operations)(nil)

// Retry implements Recovery. It requires instance:change, and the permission
// for the operation's verb.
func (ops *Operations) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	own := map[nf.Verb]nf.Permission{nf.Instantiate: nf.CreateInstance, nf.Terminate: nf.RemoveInstance}
	return ops.begin(ctx, &opts, ops.remedied(ctx, operation, own), func() (nf.Operation, error) {
		return ops.engine.Retry(ctx, operation, opts)
	})
}

// Undo implements Recovery. It requires instance:change, and instance:terminate
// for an instantiation, whose instance it deletes.
func (ops *Operations) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	own := map[nf.Verb]nf.Permission{nf.Instantiate: nf.RemoveInstance}
	return ops.begin(ctx, &opts, ops.remedied(ctx, operation, own), func() (nf.Operation, error) {
		return ops.engine.Undo(ctx, operation, opts)
	})
}

// PreviewRetry implements Recovery. It requires instance:read.
func (ops *Operations) PreviewRetry(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	if _, err := ops.operation(ctx, operation); err != nil {
		return nf.Preview{}, err
	}
	preview, err := ops.engine.PreviewRetry(ctx, operation, opts)
	return ops.guard.previewed(ctx, preview, err)
}

// PreviewUndo implements Recovery. It requires instance:read.
func (ops *Operations) PreviewUndo(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	if _, err := ops.operation(ctx, operation); err != nil {
		return nf.Preview{}, err
	}
	preview, err := ops.engine.PreviewUndo(ctx, operation, opts)
	return ops.guard.previewed(ctx, preview, err)
}

// Cancel implements Recovery. It requires instance:change.
func (ops *Operations) Cancel(ctx context.Context, operation string) (nf.Operation, error) {
	if err := ops.remedied(ctx, operation, nil); err != nil {
		return nf.Operation{}, err
	}
	op, err := ops.engine.Cancel(ctx, operation)
	if err != nil {
		return nf.Operation{}, ops.guard.shown(ctx, err)
	}
	return ops.guard.mentions().operation(ctx, op)
}

// remedied is Instances.allowed for an operation. In addition to instance:change it
// requires the permission that own has for the operation's verb.
func (ops *Operations) remedied(ctx context.Context, operation string, own map[nf.Verb]nf.Permission) error {
	op, err := ops.operation(ctx, operation)
	if err != nil {
		return err
	}
	asked := []nf.Permission{nf.ChangeInstance}
	if p, ok := own[op.Verb]; ok {
		asked = append(asked, p)
	}
	for _, p := range asked {
		if err := ops.guard.may(ctx, p, operationScope(op), op.Subject.ID, operation); err != nil {
			return err
		}
	}
	return nil
}

// onlyAgain is the edit of a request that can only be a repetition.
func onlyAgain(*nf.Spec) error { return errors.New("only a repeated request is accepted") }

// begin starts an operation by call, unless the identity is denied it. The key in
// the options becomes the identity's. If an object of the request does not exist
// or is hidden, the request may still be a repetition with the key of an earlier
// one. Then begin sets options that let the engine find that operation but start
// no new one.
func (ops *Operations) begin(ctx context.Context, opts *nf.Options, denied error, call func() (nf.Operation, error)) (nf.Operation, error) {
	if denied != nil && nf.KindOf(denied) != nf.NotFound {
		return nf.Operation{}, denied
	}
	if err := ops.guard.own(ctx, &opts.Key); err != nil {
		return nf.Operation{}, err
	}
	if denied == nil {
		op, err := call()
		if err != nil {
			return nf.Operation{}, ops.guard.shown(ctx, err)
		}
		if err := ops.reachable(ctx, opts.Key, op); err != nil {
			return nf.Operation{}, err
		}
		nf.TrailOf(ctx).Begin(op.ID)
		return ops.guard.mentions().operation(ctx, op) // a repeated request returns an earlier one
	}
	if opts.Key.Key == "" {
		return nf.Operation{}, denied
	}
	*opts = nf.Options{Key: opts.Key, Timeout: -1}
	op, err := call()
	if nf.ReasonOf(err) == nf.ReasonIdempotency || err != nil && nf.KindOf(err) == nf.Unreachable {
		return nf.Operation{}, err // about the key, or the store
	}
	if err != nil {
		return nf.Operation{}, denied // any other error would distinguish hidden from absent
	}
	if err := ops.guard.see(ctx, nf.ReadInstance, operationScope(op), denied); err != nil {
		return nf.Operation{}, err
	}
	nf.TrailOf(ctx).Begin(op.ID)
	return ops.guard.mentions().operation(ctx, op)
}

// reachable returns nf.Conflict if an operation is where the identity has no permission for
// instances. Only an earlier operation with the same key can be there.
func (ops *Operations) reachable(ctx context.Context, key nf.RequestKey, op nf.Operation) error {
	if key.Key == "" {
		return nil
	}
	for _, p := range []nf.Permission{nf.ReadInstance, nf.CreateInstance, nf.ChangeInstance, nf.RemoveInstance} {
		if can, err := ops.guard.could(ctx, p, operationScope(op)); can || err != nil {
			return err
		}
	}
	return nf.OtherRequest("repeat", "the request")
}

// Operation implements OperationRecords. It requires instance:read in the scope
// of the operation's instance, as all its methods do.
func (ops *Operations) Operation(ctx context.Context, id string) (nf.Operation, error) {
	op, err := ops.operation(ctx, id)
	if err != nil {
		return op, err
	}
	return ops.guard.mentions().operation(ctx, op)
}

func (ops *Operations) operation(ctx context.Context, id string) (nf.Operation, error) {
	gone := absent("operation", id)
	op, err := ops.engine.Operation(ctx, id)
	if err == nil {
		err = ops.guard.see(ctx, nf.ReadInstance, operationScope(op), gone)
	}
	if err != nil {
		return nf.Operation{}, orAbsent(err, gone)
	}
	return op, nil
}

// OperationsFrom implements OperationRecords.
func (ops *Operations) OperationsFrom(ctx context.Context, instance string, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	visible, err := ops.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.Operation](err)
	}
	from.In = visible
	all := ops.engine.OperationsFrom(ctx, instance, from)
	if instance == "" && visible != nil {
		all = ops.scoped.OperationsIn(ctx, from)
	}
	return list[nf.Operation]{all, operationScope, visible}.shown(ops.guard.mentions().shownIn(ctx))
}

// Changes implements OperationRecords.
func (ops *Operations) Changes(ctx context.Context, id string) ([]nf.Change, error) {
	if _, err := ops.operation(ctx, id); err != nil {
		return nil, err
	}
	changes, err := ops.engine.Changes(ctx, id)
	if err != nil {
		return nil, err
	}
	return filtered(ctx, ops.guard.mentions(), changes, ofChange)
}

// Follow implements OperationRecords. It checks the permission again on each
// change of the operation.
func (ops *Operations) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if _, err := ops.operation(ctx, id); err != nil {
			yield(nf.Operation{}, err)
			return
		}
		gone := absent("operation", id)
		for op, err := range ops.engine.Follow(ctx, id) {
			if err == nil {
				err = ops.guard.see(ctx, nf.ReadInstance, operationScope(op), gone)
			}
			if err == nil {
				op, err = ops.guard.mentions().operation(ctx, op)
			}
			if err != nil {
				yield(nf.Operation{}, orAbsent(err, gone))
				return
			}
			if !yield(op, nil) {
				return
			}
		}
	}
}
