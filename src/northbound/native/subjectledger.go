package native

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// KindOperations manages the operations on the subjects of one kind, such as sites,
// including those of removed subjects. An empty id of a subject stands for all of them.
type KindOperations interface {
	// Operation returns an operation, or nf.NotFound.
	Operation(ctx context.Context, subject, id string) (nf.Operation, error)
	// OperationsFrom yields the operations in the order of their acceptance.
	OperationsFrom(ctx context.Context, subject string, from nf.Cursor) iter.Seq2[nf.Operation, error]
	// Follow yields the events of an operation after the given number, and the
	// operation after each change, until it is final or the context ends.
	Follow(ctx context.Context, subject, id string, after int) iter.Seq2[nf.OperationUpdate, error]
	// Cancel cancels an operation. It returns nf.Conflict if the operation has ended.
	Cancel(ctx context.Context, subject, id string) (nf.Operation, error)
}

// subjectLedger is the operations of a subject, or of all if the id is empty.
type subjectLedger struct {
	operations KindOperations
	subject    string
}

var _ ledger = subjectLedger{}

func (l subjectLedger) get(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.Operation(ctx, l.subject, id)
	return subjectEntry(op), err
}

func (l subjectLedger) list(ctx context.Context, from nf.Cursor) iter.Seq2[entry, error] {
	return entries(l.operations.OperationsFrom(ctx, l.subject, from), subjectEntry)
}

func (l subjectLedger) follow(ctx context.Context, id string, after int) iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		for u, err := range l.operations.Follow(ctx, l.subject, id, after) {
			if !yield(subjectUpdate(u), err) {
				return
			}
		}
	}
}

func (l subjectLedger) cancel(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.Cancel(ctx, l.subject, id)
	return subjectEntry(op), err
}

func subjectEntry(op nf.Operation) entry {
	return entry{op, func() any { return wire.SubjectOperationOf(op) }}
}

func subjectUpdate(u nf.OperationUpdate) update {
	if u.Operation == nil {
		return update{log: u.Entry.Number, document: wire.SubjectEventOf(u.Entry)}
	}
	return update{document: wire.SubjectOperationOf(*u.Operation), final: u.Operation.State.Final()}
}
