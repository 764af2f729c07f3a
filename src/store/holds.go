package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Hold is one user's hold on a thing.
type Hold struct {
	Thing string `json:"thing"`
	User  string `json:"user"`
}

// Holds are the users of things. Each hold is a separate record, so a thing may
// have any number of users, and the cost of adding one does not depend on their
// number. Users, and the last part of a thing, do not contain "/".
type Holds struct{ table Table[Hold] }

// NewHolds returns the holds whose keys begin with the prefix
// ("holds/regions/").
func NewHolds(kv KV, prefix string) Holds {
	return Holds{table: NewTable[Hold](kv, prefix, "hold")}
}

func (h Hold) id() string { return h.Thing + "/" + h.User }

// Add records a hold. It is idempotent.
func (h Holds) Add(ctx context.Context, thing, user string) error {
	hold := Hold{Thing: thing, User: user}
	err := h.table.Insert(ctx, hold.id(), hold)
	if nf.KindOf(err) == nf.Exists {
		return nil
	}
	return err
}

// Drop deletes a hold. It returns nil if there is none.
func (h Holds) Drop(ctx context.Context, thing, user string) error {
	return nf.IgnoreNotFound(h.table.Delete(ctx, Hold{Thing: thing, User: user}.id()))
}

// Users yields the users of a thing, ordered by id. An error ends the sequence.
func (h Holds) Users(ctx context.Context, thing string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for hold, err := range h.table.All(ctx, thing+"/") {
			if !yield(hold.User, err) {
				return
			}
		}
	}
}

// All yields every hold, ordered by thing and user. An error ends the sequence.
func (h Holds) All(ctx context.Context) iter.Seq2[Hold, error] { return h.table.All(ctx, "") }

// Used reports whether a thing has a user.
func (h Holds) Used(ctx context.Context, thing string) (bool, error) {
	for _, err := range h.Users(ctx, thing) {
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

// NewHeldTable returns the table whose keys begin with the prefix. Its holds
// are stored under "holds/" and the prefix. Mark returns the field of a record
// for the mark of a removal; the field is empty without one.
func NewHeldTable[T any](kv KV, prefix, noun string, mark func(*T) *string) HeldTable[T] {
	return HeldTable[T]{records: NewTable[T](kv, prefix, noun), holds: NewHolds(kv, "holds/"+prefix), mark: mark}
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

// Holds returns the holds on the table's records.
func (t HeldTable[T]) Holds() Holds { return t.holds }

// Hold prevents the removal of a record until the user releases it. It returns
// nf.NotFound if there is no record. It is idempotent.
func (t HeldTable[T]) Hold(ctx context.Context, id, user string) error {
	if err := t.holds.Add(ctx, id, user); err != nil {
		return err
	}
	v, err := t.records.Get(ctx, id)
	if err == nil && *t.mark(&v) != "" {
		_, err = t.records.Update(ctx, id, func(v *T) error { *t.mark(v) = ""; return nil })
	}
	if nf.KindOf(err) == nf.NotFound && err != nil {
		return errors.Join(err, t.holds.Drop(ctx, id, user))
	}
	return err
}

// Release ends a hold. It returns nil if there is none.
func (t HeldTable[T]) Release(ctx context.Context, id, user string) error {
	return t.holds.Drop(ctx, id, user)
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
