package northbound

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Applied reports whether an operation has applied all objects and is not being
// undone.
func Applied(op nf.Operation) bool { return !op.Applied.IsZero() && !op.Undoing }

// Ended reports whether an operation has ended.
func Ended(op nf.Operation) bool { return op.State.Final() }

// Await follows an operation until done returns true, the operation has ended,
// or the context ends. It returns the latest state of the operation, and false
// if the context ended first. An error is one of follow; whether the operation
// succeeded is in its state.
func Await(ctx context.Context, op nf.Operation, follow func(ctx context.Context, id string) iter.Seq2[nf.Operation, error], done func(nf.Operation) bool) (nf.Operation, bool, error) {
	if ctx.Err() != nil {
		return op, false, nil
	}
	for latest, err := range follow(ctx, op.ID) {
		if err != nil && ctx.Err() != nil {
			return op, false, nil
		}
		if err != nil {
			return op, false, err
		}
		if op = latest; op.State.Final() || done(op) {
			return op, true, nil
		}
	}
	return op, false, nil
}
