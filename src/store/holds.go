package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Hold says that a user uses a thing.
type Hold struct {
	Thing string `json:"thing"`
	User  string `json:"user"`
}

// Holds are the users of things. Each hold is a record of its own, so a thing
// may have any number of users, and what it costs to add one does not depend on
// how many there are. Neither users nor the last part of a thing have a "/".
type Holds struct{ table Table[Hold] }

// NewHolds returns the holds whose keys begin with the prefix
// ("holds/regions/").
func NewHolds(kv KV, prefix string) Holds {
	return Holds{table: NewTable[Hold](kv, prefix, "hold")}
}

func (h Hold) id() string { return h.Thing + "/" + h.User }

// Add records a hold. Adding it again changes nothing.
func (h Holds) Add(ctx context.Context, thing, user string) error {
	hold := Hold{Thing: thing, User: user}
	err := h.table.Insert(ctx, hold.id(), hold)
	if nf.KindOf(err) == nf.Exists {
		return nil
	}
	return err
}

// Drop removes a hold. That there is none is no error.
func (h Holds) Drop(ctx context.Context, thing, user string) error {
	return nf.UnlessGone(h.table.Delete(ctx, Hold{Thing: thing, User: user}.id()))
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

// HeldTable is a table whose records are not removed while they are held.
//
// A removal first marks the record and then looks for holds; a hold is written
// first, and then looks for the mark. So one of them sees the other, whatever
// their order, and whichever of them dies: a hold takes the mark off, and a
// removal whose mark is gone removes nothing.
type HeldTable[T any] struct {
	Table[T]

	holds Holds
	mark  func(*T) *string
}

// NewHeldTable returns the table whose keys begin with the prefix, and whose
// holds are kept under "holds/" and the prefix. Mark returns where a record
// keeps the mark of a removal, a text that is empty otherwise.
func NewHeldTable[T any](kv KV, prefix, noun string, mark func(*T) *string) HeldTable[T] {
	return HeldTable[T]{Table: NewTable[T](kv, prefix, noun), holds: NewHolds(kv, "holds/"+prefix), mark: mark}
}

// Holds returns the holds on the table's records.
func (t HeldTable[T]) Holds() Holds { return t.holds }

// Hold keeps a record from being removed for as long as the user holds it, or
// fails with nf.NotFound. Holding twice is holding once.
func (t HeldTable[T]) Hold(ctx context.Context, id, user string) error {
	if err := t.holds.Add(ctx, id, user); err != nil {
		return err
	}
	v, err := t.Get(ctx, id)
	if err == nil && *t.mark(&v) != "" {
		_, err = t.Update(ctx, id, func(v *T) error { *t.mark(v) = ""; return nil })
	}
	if nf.KindOf(err) == nf.NotFound && err != nil {
		return errors.Join(err, t.holds.Drop(ctx, id, user))
	}
	return err
}

// Release ends a hold. That there is none is no error.
func (t HeldTable[T]) Release(ctx context.Context, id, user string) error {
	return t.holds.Drop(ctx, id, user)
}

// Remove removes a record and returns it as it was. It is nf.NotFound when there
// is none, and nf.Conflict with the reason "held" while it is held, or when a
// user has come meanwhile.
func (t HeldTable[T]) Remove(ctx context.Context, id string) (T, error) {
	var none T
	attempt := rand.Text()
	if _, err := t.Update(ctx, id, func(v *T) error { *t.mark(v) = attempt; return nil }); err != nil {
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
	err = t.DeleteIf(ctx, id, func(v T) error {
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

// ReasonHeld is the reason of an nf.Conflict with the users of a record.
const ReasonHeld = "held"

func (t HeldTable[T]) held(id string) error {
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: fmt.Sprintf("%s %q", t.noun, id), Reason: ReasonHeld, Err: errors.New("it is in use")}
}

// unmark takes the mark of a removal off, unless another one's is there.
func (t HeldTable[T]) unmark(ctx context.Context, id, attempt string) error {
	_, err := t.Update(ctx, id, func(v *T) error {
		if *t.mark(v) == attempt {
			*t.mark(v) = ""
		}
		return nil
	})
	return nf.UnlessGone(err)
}

// SpreadUsers gives each user that is listed in the records under a prefix a
// hold of its own, under "holds/" and the prefix, and takes the lists out of the
// records: it is the migration from version 2 of the store. It may be cut, and
// repeated. IDField, unless it is empty, is a field in which each record is to
// have its own id, and which the oldest of them lack.
func SpreadUsers(ctx context.Context, kv KV, prefix, idField string) error {
	records := NewTable[map[string]json.RawMessage](kv, prefix, "record")
	holds := NewHolds(kv, "holds/"+prefix)
	for e, err := range kv.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("cannot list the records under %s: %w", prefix, err)
		}
		var listed struct {
			Users []string `json:"users"`
		}
		if err := json.Unmarshal(e.Value, &listed); err != nil {
			return fmt.Errorf("cannot read the record %q: %w", e.Key, err)
		}
		thing := strings.TrimPrefix(e.Key, prefix) // ids of these records have no characters that a key escapes
		for _, user := range listed.Users {
			if err := holds.Add(ctx, thing, user); err != nil {
				return err
			}
		}
		_, err := records.Update(ctx, thing, func(record *map[string]json.RawMessage) error {
			delete(*record, "users")
			if idField == "" {
				return nil
			}
			id, err := json.Marshal(thing)
			(*record)[idField] = id
			return err
		})
		if nf.UnlessGone(err) != nil {
			return err
		}
	}
	return nil
}
