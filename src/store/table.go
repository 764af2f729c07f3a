package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Table keeps records of one type in a KV, each under an id, as JSON. An id is
// any text, neither empty nor longer than a key allows; one that is made of several parts joins them with "/", so
// that List can ask for the first of them. A number in a field of type any
// comes back as float64, as encoding/json does it.
//
// Errors are of the kinds of KV, and nf.Internal when a record cannot be
// written as JSON or read from it. They name the record by the table's noun.
type Table[T any] struct {
	kv     KV
	prefix string
	noun   string
}

// NewTable returns the table whose keys begin with the prefix ("instances/").
// The noun is what errors call a record ("VNF instance").
func NewTable[T any](kv KV, prefix, noun string) Table[T] {
	return Table[T]{kv: kv, prefix: prefix, noun: noun}
}

// Get returns the record, or nf.NotFound.
func (t Table[T]) Get(ctx context.Context, id string) (T, error) {
	v, _, err := t.read(ctx, "get", id)
	return v, err
}

// Insert creates the record, or fails with nf.Exists.
func (t Table[T]) Insert(ctx context.Context, id string, v T) error {
	return t.write(ctx, "insert", id, v, Absent)
}

// Put writes the record whatever is there. It is for records that have one
// writer only, and for those that are the same whoever writes them; everything
// else goes through Insert and Update.
func (t Table[T]) Put(ctx context.Context, id string, v T) error {
	return t.write(ctx, "put", id, v, Any)
}

// Update edits the record and returns it as it is then: it reads the record,
// calls edit, and writes the result unless somebody else has written meanwhile,
// in which case it begins again, until the context ends (nf.Unreachable). So
// edit may run several times, each time on a fresh value. An error of edit is
// returned as it is, and nothing is written; nor is anything when edit changes
// nothing.
func (t Table[T]) Update(ctx context.Context, id string, edit func(*T) error) (T, error) {
	return t.change(ctx, "update", id, func(v *T) (bool, error) { return false, edit(v) })
}

// Delete removes the record, or fails with nf.NotFound.
func (t Table[T]) Delete(ctx context.Context, id string) error {
	key, err := t.key(id)
	if err == nil {
		err = t.kv.Delete(ctx, key, Any)
	}
	return t.fail("delete", id, err)
}

// DeleteIf removes the record if cond returns nil for the value that is
// removed, and otherwise returns cond's error as it is. Cond may run several
// times.
func (t Table[T]) DeleteIf(ctx context.Context, id string, cond func(T) error) error {
	_, err := t.change(ctx, "delete", id, func(v *T) (bool, error) { return true, cond(*v) })
	return err
}

// All yields the records whose ids begin with the prefix, in the order of the
// ids' bytes. An error ends the sequence.
func (t Table[T]) All(ctx context.Context, prefix string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range t.kv.List(ctx, t.prefix+escape(prefix)) {
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

// List returns what All yields; no records are an empty list and not nil.
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

// change is the compare-and-swap loop: decide edits the record, or asks for its
// removal, or refuses. It returns the record as written, or as it was removed.
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
			err = pause(ctx, attempt)
		}
		if err != nil {
			return none, t.fail(op, id, err)
		}
	}
}

// swap puts the value in the place of the entry, if that changes anything.
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

func (t Table[T]) write(ctx context.Context, op, id string, v T, expected Revision) error {
	key, err := t.key(id)
	if err != nil {
		return t.fail(op, id, err)
	}
	raw, err := encode(key, v)
	if err != nil {
		return t.fail(op, id, err)
	}
	_, err = t.kv.Put(ctx, key, raw, expected)
	return t.fail(op, id, err)
}

// encode returns what is kept of a value. A record that is too large for some
// KV is too large for every one: a driver alone would accept it, and could not
// be sealed any more.
func encode(key string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return raw, CheckSize(key, raw, MaxValue)
}

func (t Table[T]) decode(e Entry) (T, error) {
	var v T
	if err := json.Unmarshal(e.Value, &v); err != nil {
		var none T
		return none, fmt.Errorf("cannot read the %s kept as %q: %w", t.noun, e.Key, err)
	}
	return v, nil
}

func (t Table[T]) key(id string) (string, error) {
	if id == "" {
		return "", nf.E(nf.Invalid, "use", "an empty id", nil)
	}
	return t.prefix + escape(id), nil
}

// fail names the record in an error. That a record is missing, or there
// already, needs no cause: the key adds nothing to the id.
func (t Table[T]) fail(op, id string, err error) error {
	if err == nil {
		return nil
	}
	kind := nf.KindOf(err)
	if kind == nf.NotFound || kind == nf.Exists {
		err = nil
	}
	return nf.E(kind, op, t.noun+" "+strconv.Quote(id), err)
}

// pause waits for a random time that grows with the attempts, so that the
// writers of one record get out of each other's way.
func pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(rand.N(time.Millisecond << min(attempt, 6)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return nf.E(nf.Unreachable, "wait for", "other writers", ctx.Err())
	}
}

// escape turns an id into the printable ASCII of keys. The two characters at
// the ends of that range mark the bytes below and above it, so keys have the
// order of their ids, and a prefix of an id is a prefix of its key.
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
