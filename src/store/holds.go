package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// holdsPrefix begins the keys of all holds.
const holdsPrefix = "holds/"

// Hold is a holder's hold on a thing, which is one of the records of a table.
type Hold struct {
	Table  string    `json:"table"` // "regions"
	Thing  string    `json:"thing"`
	Holder nf.Holder `json:"holder"`
}

// thing returns "<table>/<thing>".
func (h Hold) thing() string { return h.Table + "/" + h.Thing }

// group begins the ids of all holds on the thing by holders of the kind and the
// scope, and no others.
func (h Hold) group() string {
	group := h.thing() + "/" + string(h.Holder.Subject.Kind) + "/"
	if scope := h.Holder.Scope; scope != (nf.Scope{}) {
		group += scope.Project + "/" + scope.Region + "/"
	}
	return group
}

func (h Hold) id() string { return h.group() + h.Holder.Subject.ID }

// Holds are the holders of the things of one table. A holder of any kind can hold
// any thing. Each hold is a separate record, so a thing may have any number of
// holders, and the cost of adding one does not depend on their number. Kinds, scopes
// and ids of holders contain no "/", and all things of a table have the same number of
// parts between "/".
type Holds struct {
	all   Table[Hold] // of all tables
	table string
}

// NewHolds returns the holds on the records of the table whose keys begin with
// the prefix ("regions/").
func NewHolds(kv KV, prefix string) Holds {
	return Holds{all: allHolds(kv), table: strings.TrimSuffix(prefix, "/")}
}

func allHolds(kv KV) Table[Hold] { return NewTable[Hold](kv, holdsPrefix, "hold") }

// Held are the things that have a holder, of all tables, by Hold.thing.
type Held map[string]bool

// AbandonedHolds finds the holds, on the records of any table, of holders of a
// kind that do not need them. Needed reports whether one does: its holder exists, and
// uses the thing. It returns the holds by name, each with a function that carries out
// the op that drops it, by drop, and the things that have a holder, for
// SharedTable.Abandoned: so all holds are read once.
func AbandonedHolds(ctx context.Context, kv KV, kind nf.SubjectKind, needed func(Hold) bool, drop func(context.Context, Hold, Op) error) (map[string]func(context.Context) error, Held, error) {
	found, held, holds := map[string]func(context.Context) error{}, Held{}, allHolds(kv)
	for hold, err := range holds.All(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		held[hold.thing()] = true
		if hold.Holder.Subject.Kind == kind && !needed(hold) {
			found["hold "+hold.id()] = func(ctx context.Context) error {
				op, err := holds.DeleteOp(hold.id(), Any)
				if err != nil {
					return err
				}
				return drop(ctx, hold, op)
			}
		}
	}
	return found, held, nil
}

func (h Holds) hold(thing string, holder nf.Holder) Hold {
	return Hold{Table: h.table, Thing: thing, Holder: holder}
}

// Add records a hold. It is idempotent.
func (h Holds) Add(ctx context.Context, thing string, holder nf.Holder) error {
	hold := h.hold(thing, holder)
	_, err := h.all.Get(ctx, hold.id())
	if nf.KindOf(err) != nf.NotFound {
		return err
	}
	if err = h.all.Insert(ctx, hold.id(), hold); nf.KindOf(err) == nf.Exists {
		return nil
	}
	return err
}

// Has reports whether there is a hold.
func (h Holds) Has(ctx context.Context, thing string, holder nf.Holder) (bool, error) {
	_, err := h.all.Get(ctx, h.hold(thing, holder).id())
	return err == nil, nf.IgnoreNotFound(err)
}

// AddOp returns the op that records a hold. It need not be new.
func (h Holds) AddOp(thing string, holder nf.Holder) (Op, error) {
	hold := h.hold(thing, holder)
	return h.all.PutOp(hold.id(), hold)
}

// DropOps returns the op that deletes a hold as it is now. There is none without the
// hold.
func (h Holds) DropOps(ctx context.Context, thing string, holder nf.Holder) ([]Op, error) {
	return h.all.DeleteWhereOps(ctx, h.hold(thing, holder).id(), func(Hold) bool { return true })
}

// Drop deletes a hold. It returns nil if there is none.
func (h Holds) Drop(ctx context.Context, thing string, holder nf.Holder) error {
	return nf.IgnoreNotFound(h.all.Delete(ctx, h.hold(thing, holder).id()))
}

// Holders yields the holders of a thing, or of all things of the table if that is
// empty, ordered by thing, kind, scope and id. It leaves out those that in reports
// false for, by kind and scope, and reads at most one hold of each such group. If in
// is nil, it yields all. An error ends the sequence.
func (h Holds) Holders(ctx context.Context, thing string, in func(nf.SubjectKind, nf.Scope) bool) iter.Seq2[nf.Holder, error] {
	return func(yield func(nf.Holder, error) bool) {
		for hold, err := range h.all.Without(ctx, h.prefix(thing), func(h Hold) string {
			if in == nil || in(h.Holder.Subject.Kind, h.Holder.Scope) {
				return ""
			}
			return h.group()
		}) {
			if !yield(hold.Holder, err) {
				return
			}
		}
	}
}

// HolderIDs yields the ids of those holders of Holders whose kinds and scopes in
// reports true for, in the order of the ids. An id is yielded once for each thing and
// scope.
func (h Holds) HolderIDs(ctx context.Context, thing string, in func(nf.SubjectKind, nf.Scope) bool, c nf.Cursor) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for hold, err := range h.all.Merged(ctx, h.prefix(thing), c, func(h Hold) string { return h.Holder.Subject.ID }, func(h Hold) (string, bool) {
			return h.group(), in(h.Holder.Subject.Kind, h.Holder.Scope)
		}) {
			if !yield(hold.Holder.Subject.ID, err) {
				return
			}
		}
	}
}

// prefix begins the ids of all holds on a thing, or on all things of the table if it
// is empty.
func (h Holds) prefix(thing string) string {
	if thing == "" {
		return h.table + "/"
	}
	return h.table + "/" + thing + "/"
}

// Used reports whether a thing has a holder.
func (h Holds) Used(ctx context.Context, thing string) (bool, error) {
	for _, err := range h.Holders(Expecting(ctx, 1), thing, nil) {
		return err == nil, err
	}
	return false, nil
}

// HeldTable is a table whose records cannot be removed while they are held.
//
// A removal first marks the record and then looks for holds. A hold is written
// first, and then looks for the mark. So at least one of them sees the other,
// in any order and even if a process crashes: a hold clears the mark, and a
// removal whose mark was cleared removes nothing.
type HeldTable[T any] struct {
	records Table[T]
	holds   Holds
	mark    func(*T) *string
}

// NewHeldTable returns the table whose keys begin with the prefix. Mark returns
// the field of a record for the mark of a removal; the field is empty without one.
func NewHeldTable[T any](kv KV, prefix, noun string, mark func(*T) *string) HeldTable[T] {
	return HeldTable[T]{records: NewTable[T](kv, prefix, noun), holds: NewHolds(kv, prefix), mark: mark}
}

// Get returns a record, or nf.NotFound.
func (t HeldTable[T]) Get(ctx context.Context, id string) (T, error) { return t.records.Get(ctx, id) }

// Insert creates a record. It returns nf.Exists if the record exists.
func (t HeldTable[T]) Insert(ctx context.Context, id string, v T) error {
	return t.records.Insert(ctx, id, v)
}

// Update edits a record as Table.Update does. It ignores a change of the mark.
func (t HeldTable[T]) Update(ctx context.Context, id string, edit func(*T) error) (T, error) {
	return t.records.Update(ctx, id, func(v *T) error {
		mark := *t.mark(v)
		err := edit(v)
		*t.mark(v) = mark
		return err
	})
}

// List returns the records whose ids begin with the prefix, ordered by id.
func (t HeldTable[T]) List(ctx context.Context, prefix string) ([]T, error) {
	return t.records.List(ctx, prefix)
}

// After yields the records after the cursor, ordered by id. If the store has an index,
// it leaves out those that do not meet the conditions of the cursor.
func (t HeldTable[T]) After(ctx context.Context, c nf.Cursor) iter.Seq2[T, error] {
	if found, ok := t.records.Find(ctx, c); ok {
		return found
	}
	return t.records.After(ctx, "", c)
}

// Holds returns the holds on the table's records.
func (t HeldTable[T]) Holds() Holds { return t.holds }

// Hold prevents the removal of a record until the holder releases it. It returns
// nf.NotFound if there is no record. It is idempotent.
func (t HeldTable[T]) Hold(ctx context.Context, id string, holder nf.Holder) error {
	if err := t.holds.Add(ctx, id, holder); err != nil {
		return err
	}
	v, err := t.records.Get(ctx, id)
	if err == nil && *t.mark(&v) != "" {
		_, err = t.records.Update(ctx, id, func(v *T) error { *t.mark(v) = ""; return nil })
	}
	if nf.KindOf(err) == nf.NotFound && err != nil {
		return errors.Join(err, t.holds.Drop(ctx, id, holder))
	}
	return err
}

// HoldOps returns the ops of Hold: the hold, and then a look for the mark of a
// removal. They fail if the record has changed since. HoldOps returns nf.NotFound
// if there is no record.
func (t HeldTable[T]) HoldOps(ctx context.Context, id string, holder nf.Holder) ([]Op, error) {
	v, read, err := t.records.GetRevision(ctx, id)
	if err != nil {
		return nil, err
	}
	hold, err := t.holds.AddOp(id, holder)
	if err != nil {
		return nil, err
	}
	look, err := t.records.CheckOp(id, read)
	if *t.mark(&v) != "" {
		*t.mark(&v) = ""
		look, err = t.records.ReplaceOp(id, v, read)
	}
	return []Op{hold, look}, err
}

// Release ends a hold. It returns nil if there is none.
func (t HeldTable[T]) Release(ctx context.Context, id string, holder nf.Holder) error {
	return t.holds.Drop(ctx, id, holder)
}

// Remove removes a record and returns its last value. It returns nf.NotFound if
// there is none. It returns nf.Conflict with the reason "held" if the record is
// held, or is held during the removal.
func (t HeldTable[T]) Remove(ctx context.Context, id string) (T, error) {
	var none T
	attempt := rand.Text()
	if _, err := t.records.Update(ctx, id, func(v *T) error { *t.mark(v) = attempt; return nil }); err != nil {
		return none, err
	}
	used, err := t.holds.Used(ctx, id)
	if err == nil && used {
		err = t.held(id)
	}
	if err != nil {
		return none, errors.Join(err, t.unmark(ctx, id, attempt))
	}
	var removed T
	err = t.records.DeleteIf(ctx, id, func(v T) error {
		removed = v
		if *t.mark(&v) != attempt {
			return t.held(id)
		}
		return nil
	})
	if err != nil {
		return none, err
	}
	*t.mark(&removed) = ""
	return removed, nil
}

func (t HeldTable[T]) held(id string) error {
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: fmt.Sprintf("%s %q", t.records.noun, id), Reason: nf.ReasonHeld, Err: errors.New("it is in use")}
}

// unmark clears the mark of a removal, unless it belongs to another removal.
func (t HeldTable[T]) unmark(ctx context.Context, id, attempt string) error {
	_, err := t.records.Update(ctx, id, func(v *T) error {
		if *t.mark(v) == attempt {
			*t.mark(v) = ""
		}
		return nil
	})
	return nf.IgnoreNotFound(err)
}
