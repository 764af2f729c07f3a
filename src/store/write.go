package store

import (
	"context"
	"errors"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Op is one entry in a list for Write: it puts a value, deletes a key, or only
// checks a key.
type Op struct {
	Key     string
	Value   []byte   // nil: delete the key; an empty value is not nil
	Expect  Revision // Absent (not for a deletion), Any, or the revision that the key must have
	Check   bool     // write nothing, and only compare the key's revision with Expect, which is not Any
	Subject string   // the record in errors, such as `VNF instance "x"`; empty: the key
}

// Writer is a KV that carries out several ops together. A KV without it carries
// them out one after the other.
type Writer interface {
	// Write carries out valid ops, as the function Write does. Its errors are those
	// of Carry.
	Write(ctx context.Context, ops []Op) ([]Revision, error)
}

// WriteError is the error of Write. It wraps its cause, and so has its kind.
type WriteError struct {
	Index int // of the op that failed
	Err   error
}

// Error returns the text of the cause, which names the record.
func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Write carries out the ops in their order, and stops at the first that fails.
// So an op is never written without all ops before it. A caller may rely only on
// this order: after an error, any number of the ops before the failed one may
// have been written, even none. If the kind is nf.Unreachable, so may the failed
// op and those after it. A check sees the state in which the ops before it were
// written.
//
// Write returns the new revision of each key that was put, and 0 for the other
// ops.
//
// Every error is a *WriteError. Its kind is nf.Exists if a key exists that must
// be absent. It is nf.Conflict if a key does not have the expected revision, or
// does not exist. To delete a key that does not exist is not an error if any
// revision is expected. Before anything is written, Write returns nf.Invalid for
// an invalid key, a key that occurs twice, a deletion that expects Absent, and a
// check that expects Any or has a value, and nf.TooLarge for a value of more than
// MaxValue bytes. Without ops, it does nothing.
func Write(ctx context.Context, kv KV, ops []Op) ([]Revision, error) {
	seen := make(map[string]bool, len(ops))
	for i, op := range ops {
		err := op.check()
		if err == nil && seen[op.Key] {
			err = nf.E(nf.Invalid, "write", op.key(), errors.New("it occurs twice in one list of writes"))
		}
		if err != nil {
			return nil, &WriteError{Index: i, Err: op.fail(err)}
		}
		seen[op.Key] = true
	}
	revisions, err := Carry(ctx, kv, ops)
	if failed, ok := errors.AsType[*WriteError](err); ok {
		return nil, &WriteError{Index: failed.Index, Err: ops[failed.Index].fail(failed.Err)}
	}
	return revisions, err
}

// Carry carries out ops for Write, which has checked them. Only a KV that passes
// ops on to another one calls it. The causes of its errors do not name the
// records.
func Carry(ctx context.Context, kv KV, ops []Op) ([]Revision, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	if w, ok := kv.(Writer); ok {
		return w.Write(ctx, ops)
	}
	revisions := make([]Revision, len(ops))
	for i, op := range ops {
		var err error
		if revisions[i], err = op.write(ctx, kv); err != nil {
			return nil, &WriteError{Index: i, Err: err}
		}
	}
	return revisions, nil
}

// check returns the error of an op that no KV accepts.
func (o Op) check() error {
	if err := CheckKey(o.Key); err != nil {
		return err
	}
	switch {
	case o.Check && (o.Expect == Any || o.Value != nil):
		return nf.E(nf.Invalid, "check", o.key(), errors.New("a check expects a revision, and writes nothing"))
	case !o.Check && o.Value == nil && o.Expect == Absent:
		return nf.E(nf.Invalid, "delete", o.key(), errors.New("the deletion expects that the key is absent"))
	}
	return CheckSize(o.Key, o.Value, MaxValue)
}

func (o Op) write(ctx context.Context, kv KV) (Revision, error) {
	switch {
	case o.Check:
		e, err := kv.Get(ctx, o.Key)
		if nf.IgnoreNotFound(err) == nil && e.Revision != o.Expect {
			err = o.Unexpected()
		}
		return 0, nf.IgnoreNotFound(err)
	case o.Value != nil:
		return kv.Put(ctx, o.Key, o.Value, o.Expect)
	}
	err := kv.Delete(ctx, o.Key, o.Expect)
	switch {
	case nf.KindOf(err) != nf.NotFound:
		return 0, err
	case o.Expect == Any:
		return 0, nil
	}
	return 0, o.Unexpected()
}

// Unexpected returns the error of an op whose key does not have the expected
// revision.
func (o Op) Unexpected() error {
	if o.Expect == Absent {
		return nf.E(nf.Exists, o.verb(), o.key(), nil)
	}
	return nf.E(nf.Conflict, o.verb(), o.key(), errors.New("it has another revision, or does not exist"))
}

// fail names the record in an error.
func (o Op) fail(err error) error {
	if o.Subject == "" {
		return err
	}
	return failed(o.verb(), o.Subject, err)
}

func (o Op) verb() string {
	switch {
	case o.Check:
		return "check"
	case o.Value == nil:
		return "delete"
	case o.Expect == Absent:
		return "insert"
	case o.Expect == Any:
		return "put"
	default:
		return "update"
	}
}

func (o Op) key() string { return "key " + strconv.Quote(o.Key) }

// failed returns the error of an action on a record. It drops the cause of
// nf.NotFound and nf.Exists, because the key adds nothing to the id.
func failed(action, subject string, err error) error {
	if err == nil {
		return nil
	}
	kind := nf.KindOf(err)
	if kind == nf.NotFound || kind == nf.Exists {
		err = nil
	}
	return nf.E(kind, action, subject, err)
}
