package operation

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// OfKind are the operations on the subjects of one kind. An empty id of a subject
// stands for all subjects of the kind. Operations on a subject that no longer exists
// are kept for Kind.Retention.
type OfKind struct {
	ledger *Ledger
	kind   nf.SubjectKind
}

// OfKind returns the operations on the subjects of a kind.
func (l *Ledger) OfKind(kind nf.SubjectKind) OfKind { return OfKind{l, kind} }

func (o OfKind) subject(id string) nf.Subject { return nf.Subject{Kind: o.kind, ID: id} }

// Operation returns an operation on a subject. It returns nf.NotFound if there is none.
func (o OfKind) Operation(ctx context.Context, subject, id string) (nf.Operation, error) {
	return o.ledger.Of(ctx, o.subject(subject), id)
}

// OperationsFrom yields the operations on a subject after the cursor, in the order in
// which they were accepted.
func (o OfKind) OperationsFrom(ctx context.Context, subject string, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	if subject == "" {
		return o.ledger.In(ctx, o.kind, from) // few of all operations
	}
	return o.ledger.From(ctx, o.subject(subject), from)
}

// Cancel requests that an operation stop. It returns nf.Conflict if the outcome of
// the operation is already decided.
func (o OfKind) Cancel(ctx context.Context, subject, id string) (nf.Operation, error) {
	if op, err := o.Operation(ctx, subject, id); err != nil {
		return op, err
	}
	return o.ledger.Cancel(ctx, id)
}

// Stop requests that an operation stop before its next step. It fails as Cancel does.
func (o OfKind) Stop(ctx context.Context, subject, id string) (nf.Operation, error) {
	if op, err := o.Operation(ctx, subject, id); err != nil {
		return op, err
	}
	return o.ledger.Stop(ctx, id)
}

// Follow yields the events of an operation after the given number, and the operation
// whenever it changes. It ends when the operation is final, the loop stops, the
// context ends (which is not an error), or the workers have stopped. The final state
// comes after the last event.
func (o OfKind) Follow(ctx context.Context, subject, id string, after int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		if _, err := o.Operation(ctx, subject, id); err != nil {
			yield(nf.OperationUpdate{}, err)
			return
		}
		o.ledger.Updates(ctx, id, after)(yield)
	}
}
