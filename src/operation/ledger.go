package operation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Ledger has the records of the operations of every kind. It is safe for
// concurrent use.
type Ledger struct {
	kv         store.KV
	operations store.Table[nf.Operation] // by id, which is the order of acceptance
	bySubject  store.Table[listed]       // the ids of each subject's operations
	byScope    store.Table[listed]       // the ids of the operations of each kind and scope
	changes    store.Table[[]nf.Change]  // by operation and step
	entries    store.Table[batch]        // of each operation's log
	workers    *Workers
	feed       *feed
}

// listed names an operation among those of its subject, and among those of its kind
// and scope. Both entries are stored before the operation, and deleted before it.
type listed struct {
	Subject   nf.Subject `json:"subject"`
	Operation string     `json:"operation"`
	Scope     nf.Scope   `json:"scope"`
}

func listedOf(op nf.Operation) listed {
	return listed{op.Subject, op.ID, nf.Scope{Project: nf.ProjectOf(op.Project), Region: op.Region}}
}

// scopeKey begins the keys of all entries of the kind and the scope.
func (e listed) scopeKey() string {
	return string(e.Subject.Kind) + "/" + e.Scope.Project + "/" + e.Scope.Region + "/"
}

func newLedger(kv store.KV, w *Workers) *Ledger {
	return &Ledger{
		kv:         kv,
		operations: store.NewTable[nf.Operation](kv, "operations/", "operation"),
		bySubject:  store.NewTable[listed](kv, "operationsof/", "entry of operation"),
		byScope:    store.NewTable[listed](kv, "operationsin/", "entry of operation"),
		changes:    store.NewTable[[]nf.Change](kv, changesPrefix, "changes of operation"),
		entries:    store.NewTable[batch](kv, logPrefix, "log of operation"),
		workers:    w,
		feed:       newFeed(),
	}
}

// entryKey returns the key of an operation among those of its subject.
func entryKey(subject nf.Subject, id string) string { return subject.String() + "/" + id }

// Get returns an operation, or nf.NotFound.
func (l *Ledger) Get(ctx context.Context, id string) (nf.Operation, error) {
	return l.operations.Get(ctx, id)
}

// Of returns an operation of a subject, or of any of its kind if the subject has
// no id. It returns nf.NotFound for the operation of another one.
func (l *Ledger) Of(ctx context.Context, of nf.Subject, id string) (nf.Operation, error) {
	op, err := l.Get(ctx, id)
	if err == nil && (op.Subject.Kind != of.Kind || of.ID != "" && op.Subject.ID != of.ID) {
		err = nf.E(nf.NotFound, "get", "operation "+strconv.Quote(id)+" of "+strings.TrimSpace(of.Noun()), nil)
	}
	if err != nil {
		return nf.Operation{}, err
	}
	return op, nil
}

// All yields the operations of all kinds in the order of their acceptance.
func (l *Ledger) All(ctx context.Context) iter.Seq2[nf.Operation, error] {
	return l.operations.All(ctx, "")
}

// List returns the operations of From.
func (l *Ledger) List(ctx context.Context, of nf.Subject) ([]nf.Operation, error) {
	var all []nf.Operation
	for op, err := range l.From(ctx, of, nf.Cursor{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, op)
	}
	return all, nil
}

// From yields the operations of a subject, or of a whole kind if the subject has no
// id, after the cursor and in the order of their acceptance. For a whole kind it also
// reads the operations of the other kinds; see In. If the store has an index, From leaves
// out the operations that do not meet the conditions of the cursor.
func (l *Ledger) From(ctx context.Context, of nf.Subject, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	if found, ok := l.find(ctx, of, from); ok {
		return found
	}
	if of.ID != "" {
		return l.named(ctx, l.bySubject.After(ctx, of.String()+"/", from))
	}
	return func(yield func(nf.Operation, error) bool) {
		for op, err := range l.operations.After(ctx, "", from) {
			if (err != nil || op.Subject.Kind == of.Kind) && !yield(op, err) {
				return
			}
		}
	}
}

// In yields the operations of a kind in the scopes of the cursor, after it and in the
// order of their acceptance. It does not read the others. It uses an index as From does.
func (l *Ledger) In(ctx context.Context, kind nf.SubjectKind, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	if found, ok := l.find(ctx, nf.Subject{Kind: kind}, from); ok {
		return found
	}
	return l.named(ctx, l.byScope.Merged(ctx, string(kind)+"/", from, func(e listed) string { return e.Operation }, func(e listed) (string, bool) {
		return e.scopeKey(), from.In == nil || from.In(e.Scope)
	}))
}

// find yields the operations of a subject, or of a whole kind, that meet the conditions of
// the cursor. It returns false without conditions, because the store has an index of the
// subjects, and without an index of the conditions.
func (l *Ledger) find(ctx context.Context, of nf.Subject, from nf.Cursor) (iter.Seq2[nf.Operation, error], bool) {
	if !from.Selective() {
		return nil, false
	}
	return l.operations.Find(ctx, from.And(nf.Attribute{Name: nf.AttributeSubject, Value: of.String()}))
}

// named yields the operations that entries name. The others are being stored or
// deleted.
func (l *Ledger) named(ctx context.Context, entries iter.Seq2[listed, error]) iter.Seq2[nf.Operation, error] {
	return l.operations.Existing(ctx, func(yield func(string, error) bool) {
		for entry, err := range entries {
			if !yield(entry.Operation, err) {
				return
			}
		}
	})
}

// Running returns the operations that run here and have not ended, as they were
// last written.
func (l *Ledger) Running() []nf.Operation { return l.feed.running() }

// Cancel requests that an operation stop. What the operation has done is then undone or kept, as its request said. Cancel is
// idempotent. It returns nf.Conflict if the outcome is decided.
func (l *Ledger) Cancel(ctx context.Context, id string) (nf.Operation, error) {
	return l.end(ctx, id, l.workers.Cancel)
}

// Stop requests that an operation stop before its next step: what the present one has
// begun is completed, unless the process ends in the meantime. A step that only waits until
// objects are ready ends at once. Otherwise, Stop does what Cancel does. Cancel can follow.
func (l *Ledger) Stop(ctx context.Context, id string) (nf.Operation, error) {
	return l.end(ctx, id, l.workers.Stop)
}

// end records that an operation was cancelled, and lets the workers stop it.
func (l *Ledger) end(ctx context.Context, id string, stop func(ctx context.Context, id string) error) (nf.Operation, error) {
	op, err := l.operations.Update(ctx, id, func(op *nf.Operation) error {
		if why := decided(*op); why != nil {
			return nf.E(nf.Conflict, "cancel", "operation "+id, why)
		}
		op.Cancel = true
		return nil
	})
	if err != nil {
		return op, err
	}
	l.feed.publish(op)
	return op, stop(ctx, id)
}

// decided returns why an operation cannot be cancelled, or nil if it can.
func decided(op nf.Operation) error {
	switch {
	case op.State.Final():
		return fmt.Errorf("it has ended: %s", op.State)
	case op.Undoing:
		return errors.New("it is being undone already")
	case op.Failure != nil || op.Succeeding: // it may still have to update its subject
		return fmt.Errorf("its outcome is decided: %s", endOf(op))
	}
	return nil
}

// insertOps returns the ops that store a new operation, after its entries: a list
// that has an entry passes over an operation that does not exist.
func (l *Ledger) insertOps(op nf.Operation) ([]store.Op, error) {
	e := listedOf(op)
	ofSubject, err := l.bySubject.PutOp(entryKey(e.Subject, e.Operation), e)
	if err != nil {
		return nil, err
	}
	inScope, err := l.byScope.PutOp(e.scopeKey()+e.Operation, e)
	if err != nil {
		return nil, err
	}
	record, err := l.operations.InsertOp(op.ID, op)
	return []store.Op{ofSubject, inScope, record}, err
}

// remove deletes an operation and its entries, none of which need exist.
func (l *Ledger) remove(ctx context.Context, e listed) error {
	entries, err := l.entriesOps(e)
	if err != nil {
		return err
	}
	record, err := l.operations.DeleteOp(e.Operation, store.Any)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, l.kv, append(entries, record)) // the entries are found through the operation
	return err
}

// removeAbsent deletes the entries and the claim of an operation that does not exist.
// It returns nf.Exists, and deletes nothing, if the operation exists all the same: a
// write whose outcome was unknown can take effect after the operation was looked for.
func (l *Ledger) removeAbsent(ctx context.Context, e listed) error {
	absent, err := l.operations.CheckOp(e.Operation, store.Absent)
	if err != nil {
		return err
	}
	entries, err := l.entriesOps(e)
	if err != nil {
		return err
	}
	claimed, err := l.workers.claims.DeleteOp(e.Operation, store.Any)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, l.kv, slices.Concat([]store.Op{absent}, entries, []store.Op{claimed}))
	return err
}

// entriesOps returns the ops that delete the entries of an operation.
func (l *Ledger) entriesOps(e listed) ([]store.Op, error) {
	ofSubject, err := l.bySubject.DeleteOp(entryKey(e.Subject, e.Operation), store.Any)
	if err != nil {
		return nil, err
	}
	inScope, err := l.byScope.DeleteOp(e.scopeKey()+e.Operation, store.Any)
	return []store.Op{ofSubject, inScope}, err
}

// deleteRecords deletes an ended operation with its details, and the record of
// its key.
func (l *Ledger) deleteRecords(ctx context.Context, op nf.Operation) error {
	if err := l.deleteDetails(ctx, op.ID); err != nil {
		return err
	}
	return errors.Join(l.workers.DeleteRequest(ctx, op.ID, op.Request), l.remove(ctx, listedOf(op)))
}

// changesKey returns the key of the changes of a step.
func changesKey(operation string, step int) string { return fmt.Sprintf("%s/%04d", operation, step) }

// Changes returns the changes that an operation has made to objects so far, by
// step.
func (l *Ledger) Changes(ctx context.Context, id string) ([]nf.Change, error) {
	steps, err := l.changes.List(ctx, id+"/")
	if err != nil {
		return nil, fmt.Errorf("cannot read the changes of operation %s: %w", id, err)
	}
	return slices.Concat(steps...), nil
}
