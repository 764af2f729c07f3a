package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Lock is the part of a subject's record that says which operation changes the
// subject.
type Lock struct {
	Subject   nf.Subject
	Operation *string    // that changes the subject; empty: none
	Claim     *string    // token of the operation's claim
	Last      *string    // the last operation that was accepted
	Updated   *time.Time // when an operation was accepted or ended
}

// Free returns nf.Busy if an operation changes the subject.
func (l Lock) Free(verb string) error {
	if *l.Operation == "" {
		return nil
	}
	return &nf.Error{Kind: nf.Busy, Op: verb, Subject: l.Subject.Noun(), Operation: *l.Operation,
		Err: fmt.Errorf("operation %s is running on it", *l.Operation)}
}

// Take locks the subject by an operation.
func (l Lock) Take(op nf.Operation) {
	*l.Operation, *l.Claim, *l.Last, *l.Updated = op.ID, op.Claim, op.ID, op.Accepted
}

// release unlocks the subject.
func (l Lock) release(now time.Time) { *l.Operation, *l.Claim, *l.Updated = "", "", now }

// held returns ErrTaken unless the attempt holds the lock.
func (l Lock) held(a *Attempt) error {
	if *l.Operation != a.job.ID || *l.Claim != a.job.Token {
		return ErrTaken
	}
	return nil
}

// Locks are the locks of the subjects of one kind. Methods with an attempt work
// on the attempt's subject. They return ErrTaken if another operation or another
// claim holds its lock, or if the subject is another one with the same id.
type Locks[T any] struct {
	Subjects store.Table[T]
	Of       func(*T) Lock
}

// CreateOp returns the op that creates a subject. It returns nf.Exists if there is
// one with the id.
func (l Locks[T]) CreateOp(ctx context.Context, v T) (store.Op, error) {
	subject := l.Of(&v).Subject
	_, err := l.Subjects.Get(ctx, subject.ID)
	switch {
	case err == nil:
		return store.Op{}, nf.E(nf.Exists, "insert", subject.Noun(), nil)
	case nf.KindOf(err) != nf.NotFound:
		return store.Op{}, err
	}
	return l.Subjects.InsertOp(subject.ID, v)
}

// TakeOp returns the op that edits a subject and locks it by the operation. It
// returns nf.Busy if another operation changes the subject, and nf.Conflict if one
// has changed it since the request saw it.
func (l Locks[T]) TakeOp(ctx context.Context, op nf.Operation, seen T, edit func(*T) error) (store.Op, error) {
	v, read, err := l.Subjects.GetRevision(ctx, op.Subject.ID)
	if err != nil {
		return store.Op{}, err
	}
	lock, last := l.Of(&v), *l.Of(&seen).Last
	if err := lock.Free(string(op.Verb)); err != nil {
		return store.Op{}, err
	}
	if *lock.Last != last {
		return store.Op{}, nf.E(nf.Conflict, string(op.Verb), op.Subject.Noun(), fmt.Errorf("operation %s has changed it in the meantime", *lock.Last))
	}
	if err := edit(&v); err != nil {
		return store.Op{}, err
	}
	lock.Take(op)
	return l.Subjects.ReplaceOp(op.Subject.ID, v, read)
}

// Names reports whether an operation is the last one of its subject.
func (l Locks[T]) Names(ctx context.Context, op nf.Operation) (bool, error) {
	v, err := l.Subjects.Get(ctx, op.Subject.ID)
	return err == nil && *l.Of(&v).Last == op.ID, nf.IgnoreNotFound(err)
}

// Bind makes the lock this attempt's. It returns the subject, and whether the
// operation locks it. A subject that the operation does not lock stays as it is,
// and need not exist.
func (l Locks[T]) Bind(ctx context.Context, a *Attempt) (subject T, locked bool, err error) {
	subject, err = l.Subjects.Update(ctx, a.job.Subject.ID, func(v *T) (err error) {
		if lock := l.Of(v); *lock.Operation == a.job.ID {
			*lock.Claim, err = a.bind(ctx, *lock.Claim)
		}
		return err
	})
	return subject, err == nil && *l.Of(&subject).Operation == a.job.ID, nf.IgnoreNotFound(err)
}

// Get returns the subject.
func (l Locks[T]) Get(ctx context.Context, a *Attempt) (T, error) {
	v, err := l.Subjects.Get(ctx, a.job.Subject.ID)
	if err == nil {
		err = l.Of(&v).held(a)
	}
	return v, err
}

// Edit edits the subject, and returns it.
func (l Locks[T]) Edit(ctx context.Context, a *Attempt, edit func(*T)) (T, error) {
	v, err := l.Subjects.Update(ctx, a.job.Subject.ID, func(v *T) error {
		if err := l.Of(v).held(a); err != nil {
			return err
		}
		edit(v)
		return nil
	})
	return v, RecordError(err)
}

// Release edits the subject and unlocks it, with the next write of the operation's
// record. It does nothing if another operation locks the subject then, or none, or if
// the subject does not exist. Only the first call of Release or Delete in an attempt
// has an effect.
func (l Locks[T]) Release(a *Attempt, edit func(*T)) {
	l.leave(a, func(v T, read store.Revision) (store.Op, error) {
		edit(&v)
		l.Of(&v).release(a.Now())
		return l.Subjects.ReplaceOp(a.job.Subject.ID, v, read)
	})
}

// Delete deletes the subject, with the next write of the operation's record. The
// subject need not exist.
func (l Locks[T]) Delete(a *Attempt) {
	l.leave(a, func(_ T, read store.Revision) (store.Op, error) { return l.Subjects.DeleteOp(a.job.Subject.ID, read) })
}

// leave adds the op that ends the lock, once.
func (l Locks[T]) leave(a *Attempt, build func(v T, read store.Revision) (store.Op, error)) {
	if a.leaving {
		return
	}
	a.leaving = true
	a.Also(func(ctx context.Context) ([]store.Op, error) {
		v, read, err := l.Subjects.GetRevision(ctx, a.job.Subject.ID)
		switch {
		case err != nil:
			return nil, nf.IgnoreNotFound(err)
		case *l.Of(&v).Operation != a.job.ID:
			return nil, nil
		}
		if err := l.Of(&v).held(a); err != nil {
			return nil, err
		}
		op, err := build(v, read)
		return []store.Op{op}, err
	})
}

// Named is what subjects say about operations.
type Named struct {
	last  map[string]bool     // the last operation of each subject
	locks map[string]heldLock // by the operation that holds each
}

// heldLock is the lock of one subject.
type heldLock struct {
	what    string
	release func(ctx context.Context, now time.Time) error
}

// Scan calls each for every subject, and records what the subject names. GiveUp
// edits a subject before it is unlocked because its operation has ended or does
// not exist: the store may apply a lock late, after the request was withdrawn.
func (l Locks[T]) Scan(ctx context.Context, named Named, each func(T), giveUp func(context.Context, *T) error) error {
	for v, err := range l.Subjects.All(ctx, "") {
		if err != nil {
			return err
		}
		each(v)
		lock := l.Of(&v)
		subject, holder := lock.Subject, *lock.Operation
		named.last[*lock.Last] = true
		if holder == "" {
			continue
		}
		named.locks[holder] = heldLock{"lock of " + subject.Noun() + " by " + holder, func(ctx context.Context, now time.Time) error {
			return l.giveUp(ctx, subject.ID, holder, now, giveUp)
		}}
	}
	return nil
}

// giveUp unlocks a subject that an operation still locks.
func (l Locks[T]) giveUp(ctx context.Context, id, holder string, now time.Time, edit func(context.Context, *T) error) error {
	_, err := l.Subjects.Update(ctx, id, func(v *T) error {
		lock := l.Of(v)
		if *lock.Operation != holder {
			return nil
		}
		if err := edit(ctx, v); err != nil {
			return err
		}
		lock.release(now)
		return nil
	})
	return nf.IgnoreNotFound(err)
}
