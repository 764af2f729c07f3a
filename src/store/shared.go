package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SharedTable keeps what exists for as long as somebody uses it: who needs it
// enters, which makes it if need be, and the last one to leave removes it.
//
// A user's hold is written before he looks whether it is being removed, and
// dropped before he looks whether another uses it; a removal says that it is
// under way before it looks for holds. So a thing is never removed under a
// user, and never left over, whatever the order of their calls. Whoever dies
// while leaving leaves again.
type SharedTable[T Shared] struct {
	table Table[T]
	holds Holds
	mark  func(*T) *string
}

// Shared is a record of a SharedTable.
type Shared interface {
	// ID returns the id under which the record is kept.
	ID() string
}

// NewSharedTable returns the table whose keys begin with the prefix, and whose
// holds are kept under "holds/" and the prefix. Mark returns where a record
// names the user that is removing the thing, a text that is empty otherwise.
func NewSharedTable[T Shared](kv KV, prefix, noun string, mark func(*T) *string) SharedTable[T] {
	return SharedTable[T]{table: NewTable[T](kv, prefix, noun), holds: NewHolds(kv, "holds/"+prefix), mark: mark}
}

// Records returns the table itself.
func (t SharedTable[T]) Records() Table[T] { return t.table }

// Holds returns the holds on the table's things.
func (t SharedTable[T]) Holds() Holds { return t.holds }

// Enter makes somebody a user of a thing, whose record is made of first when
// there is none, and returns the record. It is nf.Busy while another one is
// removing the thing: the user is to enter again, or to leave. Entering twice is
// entering once.
func (t SharedTable[T]) Enter(ctx context.Context, user string, first T) (T, error) {
	id := first.ID()
	if err := t.holds.Add(ctx, id, user); err != nil {
		return first, err
	}
	err := t.table.Insert(ctx, id, first)
	if nf.KindOf(err) != nf.Exists {
		return first, err
	}
	v, err := t.table.Get(ctx, id)
	switch by := *t.mark(&v); {
	case nf.KindOf(err) == nf.NotFound:
		return v, t.busy(id, "it has just been removed")
	case err == nil && by != "" && by != user:
		return v, t.busy(id, by+" is removing it")
	}
	return v, err
}

func (t SharedTable[T]) busy(id, why string) error {
	return nf.E(nf.Busy, "use", t.table.noun+" "+id, errors.New(why))
}

// Leave ends a user's use of a thing. The last user removes it, by the function,
// and then its record; when the function fails, so does Leave, and the thing
// stays for whoever enters. A user that never entered leaves without an error.
func (t SharedTable[T]) Leave(ctx context.Context, id, user string, remove func(context.Context) error) error {
	if err := t.holds.Drop(ctx, id, user); err != nil {
		return err
	}
	for {
		mine, err := t.claim(ctx, id, user)
		if err != nil || !mine {
			return err
		}
		used, err := t.holds.Used(ctx, id)
		if err == nil && !used {
			if err = remove(ctx); err == nil {
				return t.forget(ctx, id, user)
			}
		}
		// Even though the context may have ended: nobody could enter.
		if e := t.disclaim(context.WithoutCancel(ctx), id, user); err != nil || e != nil {
			return errors.Join(err, e)
		}
		// Whoever has left since then has seen that it is being removed, and gone.
		if used, err = t.holds.Used(ctx, id); err != nil || used {
			return err
		}
	}
}

// claim says that the user is removing the thing, unless another one is.
func (t SharedTable[T]) claim(ctx context.Context, id, user string) (mine bool, err error) {
	v, err := t.table.Update(ctx, id, func(v *T) error {
		if mark := t.mark(v); *mark == "" {
			*mark = user
		}
		return nil
	})
	// When there is no record, it was never entered, or has been removed.
	return err == nil && *t.mark(&v) == user, nf.UnlessGone(err)
}

// disclaim takes the user's claim back.
func (t SharedTable[T]) disclaim(ctx context.Context, id, user string) error {
	_, err := t.table.Update(ctx, id, func(v *T) error {
		if mark := t.mark(v); *mark == user {
			*mark = ""
		}
		return nil
	})
	return nf.UnlessGone(err)
}

// forget removes the record of a thing that the user has removed.
func (t SharedTable[T]) forget(ctx context.Context, id, user string) error {
	err := t.table.DeleteIf(ctx, id, func(v T) error {
		if *t.mark(&v) != user {
			return errClaimed
		}
		return nil
	})
	if errors.Is(err, errClaimed) {
		return nil
	}
	return nf.UnlessGone(err)
}

var errClaimed = errors.New("another one removes it by now")

// Abandoned finds what users have left that exist no more: holds, claims, and
// records that nobody uses. Alive are the users that exist; busy are the things
// that one of them may be about to enter or to leave. It returns what was found,
// by name, with what removes it; that does nothing for what is in use again.
func (t SharedTable[T]) Abandoned(ctx context.Context, alive, busy map[string]bool) (map[string]func(context.Context) error, error) {
	found, used := map[string]func(context.Context) error{}, map[string]bool{}
	for hold, err := range t.holds.All(ctx) {
		if err != nil {
			return nil, err
		}
		used[hold.Thing] = true
		if !alive[hold.User] {
			found[fmt.Sprintf("place of %s in %s %s", hold.User, t.table.noun, hold.Thing)] = func(ctx context.Context) error {
				return t.holds.Drop(ctx, hold.Thing, hold.User)
			}
		}
	}
	for v, err := range t.table.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		id, by := v.ID(), *t.mark(&v)
		switch {
		case busy[id], alive[by]:
		case !used[id]:
			found[fmt.Sprintf("record of %s %s", t.table.noun, id)] = func(ctx context.Context) error { return t.drop(ctx, id, by) }
		case by != "":
			found[fmt.Sprintf("removal of %s %s by %s", t.table.noun, id, by)] = func(ctx context.Context) error { return t.disclaim(ctx, id, by) }
		}
	}
	return found, nil
}

// drop removes the record of a thing that nobody uses, in the name of a user
// that is dead.
func (t SharedTable[T]) drop(ctx context.Context, id, by string) error {
	if by == "" {
		by = "nobody"
	}
	if mine, err := t.claim(ctx, id, by); err != nil || !mine {
		return err
	}
	used, err := t.holds.Used(ctx, id)
	if err != nil || used {
		return errors.Join(err, t.disclaim(ctx, id, by))
	}
	return t.forget(ctx, id, by)
}
