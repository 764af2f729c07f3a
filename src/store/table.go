package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Table stores records of one type in a KV, each under an id, as JSON. An id is
// any non-empty text that fits into a key. An id of several parts joins them
// with "/", so that List can select by the first part. A number in a field of
// type any is read as float64, as encoding/json does it.
//
// Errors have the kinds of KV, or nf.Internal if a record cannot be encoded or
// decoded. They name the record by the table's noun.
type Table[T any] struct {
	kv     KV
	prefix string
	noun   string
}

// NewTable returns the table whose keys begin with the prefix ("instances/").
// The noun is the name of a record in errors ("VNF instance").
func NewTable[T any](kv KV, prefix, noun string) Table[T] {
	return Table[T]{kv: kv, prefix: prefix, noun: noun}
}

// Get returns the record, or nf.NotFound.
func (t Table[T]) Get(ctx context.Context, id string) (T, error) {
	v, _, err := t.read(ctx, "get", id)
	return v, err
}

// GetRevision returns the record and its revision, or nf.NotFound.
func (t Table[T]) GetRevision(ctx context.Context, id string) (T, Revision, error) {
	v, e, err := t.read(ctx, "get", id)
	return v, e.Revision, err
}

// Insert creates the record. It returns nf.Exists if the record exists.
func (t Table[T]) Insert(ctx context.Context, id string, v T) error {
	return t.write(ctx, id, v, Absent)
}

// Put writes the record unconditionally. It is for records with a single
// writer, and for those that are the same for every writer; for others use
// Insert and Update.
func (t Table[T]) Put(ctx context.Context, id string, v T) error {
	return t.write(ctx, id, v, Any)
}

// Update edits the record and returns the result. It reads the record, calls
// edit, and writes the result. If another caller has written in the meantime,
// it starts again, until the context ends (nf.Unreachable). So edit may run
// several times, each time on a fresh value. If edit returns an error, Update
// writes nothing and returns that error unchanged. It also writes nothing if
// edit changes nothing.
func (t Table[T]) Update(ctx context.Context, id string, edit func(*T) error) (T, error) {
	return t.change(ctx, "update", id, func(v *T) (bool, error) { return false, edit(v) })
}

// Delete removes the record. It returns nf.NotFound if there is none.
func (t Table[T]) Delete(ctx context.Context, id string) error {
	key, err := t.key(id)
	if err == nil {
		err = t.kv.Delete(ctx, key, Any)
	}
	return t.fail("delete", id, err)
}

// DeleteIf removes the record if cond returns nil for the removed value.
// Otherwise it returns cond's error unchanged. Cond may run several times.
func (t Table[T]) DeleteIf(ctx context.Context, id string, cond func(T) error) error {
	_, err := t.change(ctx, "delete", id, func(v *T) (bool, error) { return true, cond(*v) })
	return err
}

// DeleteWhere removes the record if it matches. It returns nil if there is no
// record, or if it does not match. Match may run several times.
func (t Table[T]) DeleteWhere(ctx context.Context, id string, match func(T) bool) error {
	err := t.DeleteIf(ctx, id, func(v T) error {
		if !match(v) {
			return errNoMatch
		}
		return nil
	})
	if errors.Is(err, errNoMatch) {
		return nil
	}
	return nf.IgnoreNotFound(err)
}

// DeleteWhereOps returns the op of DeleteWhere, which fails if the record has changed.
// There is none if there is no record, or if it does not match.
func (t Table[T]) DeleteWhereOps(ctx context.Context, id string, match func(T) bool) ([]Op, error) {
	v, read, err := t.GetRevision(ctx, id)
	if err != nil || !match(v) {
		return nil, nf.IgnoreNotFound(err)
	}
	op, err := t.DeleteOp(id, read)
	return []Op{op}, err
}

var errNoMatch = errors.New("the record does not match")

// InsertOp returns the op that creates the record. The methods that end in Op
// return nf.Invalid for an empty id and nf.TooLarge for a record above the
// limit. See Write.
func (t Table[T]) InsertOp(id string, v T) (Op, error) { return t.op(id, v, Absent) }

// PutOp returns the op that writes the record unconditionally, as Put does.
func (t Table[T]) PutOp(id string, v T) (Op, error) { return t.op(id, v, Any) }

// ReplaceOp returns the op that replaces the record, if it still has the
// revision that GetRevision returned.
func (t Table[T]) ReplaceOp(id string, v T, read Revision) (Op, error) { return t.op(id, v, read) }

// CheckOp returns the op that checks that the record still has the revision that
// GetRevision returned.
func (t Table[T]) CheckOp(id string, read Revision) (Op, error) {
	op, err := t.DeleteOp(id, read)
	op.Check = err == nil
	return op, err
}

// WriteIfAbsent carries out ops that delete what refers to a record, which did not exist when
// they were read. It does nothing if the record exists now, or if something that they delete
// has changed: a request that creates the record also writes what refers to it. A store
// without transactions can create the record between the check and the ops.
func (t Table[T]) WriteIfAbsent(ctx context.Context, id string, ops ...Op) error {
	if len(ops) == 0 {
		return nil
	}
	absent, err := t.CheckOp(id, Absent)
	if err != nil {
		return err
	}
	_, err = Write(ctx, t.kv, append([]Op{absent}, ops...))
	if kind := nf.KindOf(err); kind == nf.Exists || kind == nf.Conflict {
		return nil
	}
	return err
}

// DeleteOp returns the op that deletes the record, if it has the expected
// revision. With Any, the record need not exist.
func (t Table[T]) DeleteOp(id string, expected Revision) (Op, error) {
	key, err := t.key(id)
	if err != nil {
		return Op{}, t.fail("delete", id, err)
	}
	return Op{Key: key, Expect: expected, Subject: t.subject(id)}, nil
}

// All yields the records whose ids begin with the prefix, in the byte order of
// their ids. An error ends the sequence.
func (t Table[T]) All(ctx context.Context, prefix string) iter.Seq2[T, error] {
	return t.From(ctx, prefix, "")
}

// From yields the records of All whose ids are not less than start.
func (t Table[T]) From(ctx context.Context, prefix, start string) iter.Seq2[T, error] {
	return t.list(ctx, t.prefix+escape(prefix), t.prefix+escape(start))
}

// list yields the records whose keys begin with the prefix and are not less than
// start.
func (t Table[T]) list(ctx context.Context, prefix, start string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range t.kv.List(ctx, prefix, start) {
			var v T
			if err != nil {
				err = nf.E(nf.KindOf(err), "list", t.noun+" records", err)
			} else {
				v, err = t.decode(e)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Without yields the records of All, except those whose ids begin with a group that
// skip has returned. Skip returns "" for a record to yield, and otherwise a prefix of
// the record's id. Of each group, Without reads one record.
func (t Table[T]) Without(ctx context.Context, prefix string, skip func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for start, more := "", true; more; {
			more = false
			for v, err := range t.From(ctx, prefix, start) {
				if err == nil {
					if group := skip(v); group != "" {
						start, more = after(group), true
						break
					}
				}
				if !yield(v, err) {
					return
				}
			}
		}
	}
}

// after returns the least id that is greater than all ids that begin with the
// prefix, which ends with "/".
func after(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

// Existing yields the records with the ids, in the order of the ids, once for
// successive equal ids, and without those that do not exist. An error ends the
// sequence.
func (t Table[T]) Existing(ctx context.Context, ids iter.Seq2[string, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		last := ""
		for id, err := range ids {
			var v T
			if err == nil && id == last {
				continue
			}
			if last = id; err == nil {
				v, err = t.Get(ctx, id)
			}
			if nf.KindOf(err) == nf.NotFound {
				continue
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// List returns the records of All. Without records, the list is empty and not
// nil.
func (t Table[T]) List(ctx context.Context, prefix string) ([]T, error) {
	list := []T{}
	for v, err := range t.All(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// change is the compare-and-swap loop. Decide edits the record, requests its
// removal, or returns an error. It returns the record as written or removed.
func (t Table[T]) change(ctx context.Context, op, id string, decide func(*T) (remove bool, err error)) (T, error) {
	var none T
	for attempt := 0; ; attempt++ {
		v, e, err := t.read(ctx, op, id)
		if err != nil {
			return none, err
		}
		remove, err := decide(&v)
		if err != nil {
			return none, err
		}
		if remove {
			err = t.kv.Delete(ctx, e.Key, e.Revision)
		} else {
			err = t.swap(ctx, e, v)
		}
		if err == nil {
			return v, nil
		}
		if nf.KindOf(err) == nf.Conflict {
			err = Pause(ctx, attempt)
		}
		if err != nil {
			return none, t.fail(op, id, err)
		}
	}
}

// swap replaces the entry by the value, unless they are equal.
func (t Table[T]) swap(ctx context.Context, e Entry, v T) error {
	raw, err := encode(e.Key, v)
	if err != nil || bytes.Equal(raw, e.Value) {
		return err
	}
	_, err = t.kv.Put(ctx, e.Key, raw, e.Revision)
	return err
}

func (t Table[T]) read(ctx context.Context, op, id string) (T, Entry, error) {
	var none T
	key, err := t.key(id)
	if err != nil {
		return none, Entry{}, t.fail(op, id, err)
	}
	e, err := t.kv.Get(ctx, key)
	if err != nil {
		return none, Entry{}, t.fail(op, id, err)
	}
	v, err := t.decode(e)
	return v, e, err
}

func (t Table[T]) write(ctx context.Context, id string, v T, expected Revision) error {
	op, err := t.op(id, v, expected)
	if err != nil {
		return err
	}
	_, err = op.write(ctx, t.kv)
	return op.fail(err)
}

// op returns the op that writes the record.
func (t Table[T]) op(id string, v T, expected Revision) (Op, error) {
	op := Op{Value: []byte{}, Expect: expected, Subject: t.subject(id)} // not nil: an error is not one of a deletion
	key, err := t.key(id)
	if err != nil {
		return Op{}, op.fail(err)
	}
	raw, err := encode(key, v)
	if err != nil {
		return Op{}, op.fail(err)
	}
	op.Key, op.Value = key, raw
	return op, nil
}

func (t Table[T]) decode(e Entry) (T, error) {
	var v T
	if err := Decode(e.Value, &v); err != nil {
		var none T
		return none, fmt.Errorf("cannot read the %s stored as %q: %w", t.noun, e.Key, err)
	}
	return v, nil
}

func (t Table[T]) key(id string) (string, error) {
	if id == "" {
		return "", nf.E(nf.Invalid, "use", "an empty id", nil)
	}
	return t.prefix + escape(id), nil
}

// fail names the record in an error.
func (t Table[T]) fail(op, id string, err error) error { return failed(op, t.subject(id), err) }

func (t Table[T]) subject(id string) string { return t.noun + " " + strconv.Quote(id) }

// Pause waits for a random time that grows with the attempts, to spread
// concurrent writers of one record. It returns nf.Unreachable when the context ends.
func Pause(ctx context.Context, attempt int) error {
	delay.For(ctx, rand.N(delay.Doubled(time.Millisecond, 64*time.Millisecond, attempt)), nil)
	if err := ctx.Err(); err != nil {
		return nf.E(nf.Unreachable, "wait for", "other writers", err)
	}
	return nil
}

// escape turns an id into the printable ASCII of keys. The two characters at
// the ends of that range escape the bytes below and above it. So keys sort like
// their ids, and a prefix of an id gives a prefix of its key.
func escape(id string) string {
	const low, high = '!', '~'
	out := make([]byte, 0, len(id))
	for i := range len(id) {
		switch c := id[i]; {
		case c <= low:
			out = fmt.Appendf(out, "%c%02X", low, c)
		case c >= high:
			out = fmt.Appendf(out, "%c%02X", high, c)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
