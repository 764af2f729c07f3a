package store

import (
	"context"
	"errors"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Op is one write in a list for Write: it puts a value, or deletes a key.
type Op struct {
	Key     string
	Value   []byte   // nil: delete the key; an empty value is not nil
	Expect  Revision // Absent (not for a deletion), Any, or the revision that the key must have
	Subject string   // the record in errors, such as `VNF instance "x"`; empty: the key
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
// op and those after it.
//
// Every error is a *WriteError. Its kind is nf.Exists if a key exists that must
// be absent. It is nf.Conflict if a key does not have the expected revision, or
// does not exist. To delete a key that does not exist is not an error if any
// revision is expected. Before anything is written, Write returns nf.Invalid for
// an invalid key, a key that occurs twice, and a deletion that expects Absent,
// and nf.TooLarge for a value of more than MaxValue bytes. Without ops, it does
// nothing.
func Write(ctx context.Context, kv KV, ops []Op) error {
	seen := make(map[string]bool, len(ops))
	for i, op := range ops {
		err := op.check()
		if err == nil && seen[op.Key] {
			err = nf.E(nf.Invalid, "write", op.key(), errors.New("it occurs twice in one list of writes"))
		}
		if err != nil {
			return &WriteError{Index: i, Err: op.fail(err)}
		}
		seen[op.Key] = true
	}
	for i, op := range ops {
		if err := op.write(ctx, kv); err != nil {
			return &WriteError{Index: i, Err: op.fail(err)}
		}
	}
	return nil
}

// check returns the error of an op that no KV accepts.
func (o Op) check() error {
	if err := CheckKey(o.Key); err != nil {
		return err
	}
	if o.Value == nil && o.Expect == Absent {
		return nf.E(nf.Invalid, "delete", o.key(), errors.New("the deletion expects that the key is absent"))
	}
	return CheckSize(o.Key, o.Value, MaxValue)
}

func (o Op) write(ctx context.Context, kv KV) error {
	if o.Value != nil {
		_, err := kv.Put(ctx, o.Key, o.Value, o.Expect)
		return err
	}
	err := kv.Delete(ctx, o.Key, o.Expect)
	switch {
	case nf.KindOf(err) != nf.NotFound:
		return err
	case o.Expect == Any:
		return nil
	default:
		return nf.E(nf.Conflict, "delete", o.key(), errors.New("it does not exist"))
	}
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
