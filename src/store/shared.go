package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SharedTable stores things that exist as long as they have a user. A user
// enters a thing, which creates it if necessary. The last user to leave removes
// it.
//
// Order matters. A user's hold is written before the user checks whether the
// thing is being removed. It is dropped before the user checks for other users.
// A removal is marked before it looks for holds. So a thing is never removed
// while it has a user, and never remains without one, in any order of the calls.
// After a crash during Leave, the user must leave again, or enter.
type SharedTable[T Shared] struct {
	table Table[T]
	holds Holds
	mark  func(*T) *string
}

// Leaver is an attempt of a user to leave a thing. One that has stalled must not end the
// removal of its successor.
type Leaver struct {
	User  nf.Subject
	Token string                      // of the attempt
	Held  func(context.Context) error // returns an error if another attempt has replaced this one
}

// Shared is a record of a SharedTable.
type Shared interface {
	// ID returns the id of the record in the table.
	ID() string
}

// NewSharedTable returns the table whose keys begin with the prefix. Mark returns
// the field of a record for the user that is removing the thing, in the form of
// nf.Subject.String, with "/" and the token of a Leaver; the field is empty if there is none.
func NewSharedTable[T Shared](kv KV, prefix, noun string, mark func(*T) *string) SharedTable[T] {
	return SharedTable[T]{table: NewTable[T](kv, prefix, noun), holds: NewHolds(kv, prefix), mark: mark}
}

// Records returns the underlying table.
func (t SharedTable[T]) Records() Table[T] { return t.table }

// Enter adds a user to a thing, and returns its record. If there is no record,
// Enter inserts first. It returns nf.Busy while another user is
// removing the thing: the user must then enter again, or leave. A removal that the
// user itself has begun, and not completed, is over. It is idempotent.
func (t SharedTable[T]) Enter(ctx context.Context, user nf.Subject, first T) (T, error) {
	id := first.ID()
	if _, err := t.table.Get(ctx, id); nf.KindOf(err) == nf.NotFound {
		if err = t.create(ctx, user, first); nf.KindOf(err) != nf.Exists {
			return first, err
		}
	}
	if err := t.holds.Add(ctx, id, nf.Holder{Subject: user}); err != nil {
		return first, err
	}
	v, err := t.table.Get(ctx, id)
	switch mark := *t.mark(&v); {
	case nf.KindOf(err) == nf.NotFound:
		return v, t.busy(id, "it was just removed")
	case err != nil || mark == "":
		return v, err
	case marker(mark) != user:
		return v, t.busy(id, "it is being removed")
	default:
		return v, t.disclaim(ctx, id, mark)
	}
}

// markOf returns the mark of a thing that a user removes.
func markOf(user nf.Subject, token string) string {
	if token == "" {
		return user.String()
	}
	return user.String() + "/" + token
}

// marker returns the user of a mark.
func marker(mark string) nf.Subject {
	by := nf.SubjectOf(mark)
	by.ID, _, _ = strings.Cut(by.ID, "/")
	return by
}

// create inserts a thing, held by the user. It returns nf.Exists if another user has
// inserted it.
func (t SharedTable[T]) create(ctx context.Context, user nf.Subject, first T) error {
	hold, err := t.holds.AddOp(first.ID(), nf.Holder{Subject: user})
	if err != nil {
		return err
	}
	record, err := t.table.InsertOp(first.ID(), first)
	if err != nil {
		return err
	}
	_, err = Write(ctx, t.table.kv, []Op{hold, record})
	return err
}

func (t SharedTable[T]) busy(id, why string) error {
	return nf.E(nf.Busy, "use", t.table.noun+" "+id, errors.New(why))
}

// Leave ends a user's use of a thing. The last user removes the thing by
// calling remove, and then its record. If remove fails, so does Leave, and the
// thing stays for later users. It returns nil for a user that never entered.
func (t SharedTable[T]) Leave(ctx context.Context, id string, by Leaver, remove func(context.Context) error) error {
	if err := t.holds.Drop(ctx, id, nf.Holder{Subject: by.User}); err != nil {
		return err
	}
	mark := markOf(by.User, by.Token)
	for {
		mine, err := t.claim(ctx, id, mark, by.Held)
		if err != nil || !mine {
			return err
		}
		used, err := t.holds.Used(ctx, id)
		if err == nil && !used {
			if err = remove(ctx); err == nil {
				return t.forget(ctx, id, mark)
			}
		}
		// Without the context, which may have ended: otherwise no user could enter.
		if e := t.disclaim(context.WithoutCancel(ctx), id, mark); err != nil || e != nil {
			return errors.Join(err, e)
		}
		// Users that have left since the claim saw it, and did not remove the thing.
		if used, err = t.holds.Used(ctx, id); err != nil || used {
			return err
		}
	}
}

// claim sets the mark of a thing, unless another user is removing it.
func (t SharedTable[T]) claim(ctx context.Context, id, own string, held func(context.Context) error) (mine bool, err error) {
	v, err := t.table.Update(ctx, id, func(v *T) error {
		mark := t.mark(v)
		if *mark == own || *mark != "" && marker(*mark) != marker(own) {
			return nil
		}
		*mark = own
		return held(ctx) // between the read and the write: the mark may be that of a successor
	})
	// Without a record, the thing was never entered, or has been removed.
	return err == nil && *t.mark(&v) == own, nf.IgnoreNotFound(err)
}

// disclaim clears a mark, unless another attempt has set its own.
func (t SharedTable[T]) disclaim(ctx context.Context, id, own string) error {
	_, err := t.table.Update(ctx, id, func(v *T) error {
		if mark := t.mark(v); *mark == own {
			*mark = ""
		}
		return nil
	})
	return nf.IgnoreNotFound(err)
}

// forget deletes the record of a thing that was removed under a mark.
func (t SharedTable[T]) forget(ctx context.Context, id, own string) error {
	return t.table.DeleteWhere(ctx, id, func(v T) bool { return *t.mark(&v) == own })
}

// Abandoned finds what users of a kind have left: the claims of those that no longer
// exist, or do nothing, and records without a user. For their holds, and for held, see
// AbandonedHolds. Alive are the ids of the users that exist. Busy are the things that a
// user of any kind may be about to enter or leave. It returns the stale records by name, each with a
// function that removes it. The function does nothing if the thing is in use again.
func (t SharedTable[T]) Abandoned(ctx context.Context, kind nf.SubjectKind, held Held, alive, busy map[string]bool) (map[string]func(context.Context) error, error) {
	found := map[string]func(context.Context) error{}
	for v, err := range t.table.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		id, mark := v.ID(), *t.mark(&v)
		by := marker(cmp.Or(mark, string(kind))) // without an id: no user
		switch {
		case busy[id], by.Kind != kind:
		case !alive[by.ID] && !held[t.holds.hold(id, nf.Holder{}).thing()]:
			found[fmt.Sprintf("record of %s %s", t.table.noun, id)] = func(ctx context.Context) error { return t.drop(ctx, id, markOf(by, "")) }
		case mark != "":
			found[fmt.Sprintf("removal of %s %s by %s", t.table.noun, id, mark)] = func(ctx context.Context) error { return t.disclaim(ctx, id, mark) }
		}
	}
	return found, nil
}

// drop removes the record of a thing without users, in the name of a user that
// does not exist.
func (t SharedTable[T]) drop(ctx context.Context, id, mark string) error {
	unfenced := func(context.Context) error { return nil } // no attempt has the mark
	if mine, err := t.claim(ctx, id, mark, unfenced); err != nil || !mine {
		return err
	}
	used, err := t.holds.Used(ctx, id)
	if err != nil || used {
		return errors.Join(err, t.disclaim(ctx, id, mark))
	}
	return t.forget(ctx, id, mark)
}
