package nf

import (
	"iter"
	"slices"
)

// Cursor is the position from which a caller reads a list, in the order of the ids
// of its items.
type Cursor struct {
	After string // id of the last item that the caller has; empty: none
	// Backward reads from the greatest id to the least. Only an index does that.
	Backward bool
	// Expect is the number of items that the caller will probably read, so that no more
	// are read from the store; 0: unknown.
	Expect int
	// Where and In are conditions of the items. A list that has no index yields the other
	// items, too, so the caller checks the conditions itself.
	Where []Attribute
	In    func(Scope) bool // nil: all scopes
}

// Selects reports whether an item meets the conditions.
func (c Cursor) Selects(s Summary) bool { return (c.In == nil || c.In(s.Scope)) && s.Has(c.Where) }

// Selective reports whether there are conditions.
func (c Cursor) Selective() bool { return c.In != nil || len(c.Where) > 0 }

// And returns the cursor with one more condition.
func (c Cursor) And(a Attribute) Cursor {
	c.Where = append(slices.Clip(c.Where), a)
	return c
}

// Merged merges sequences that are ordered by a key into one. Of each sequence it
// reads one item more than it yields. An error ends the sequence.
func Merged[T any](key func(T) string, sequences ...iter.Seq2[T, error]) iter.Seq2[T, error] {
	if len(sequences) == 1 {
		return sequences[0]
	}
	return func(yield func(T, error) bool) {
		var heads []head[T]
		for _, s := range sequences {
			next, stop := iter.Pull2(s)
			defer stop()
			if h := (head[T]{next: next}); h.advance(key) {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			least := first(heads)
			h := &heads[least]
			if !yield(h.item, h.err) || h.err != nil {
				return
			}
			if !h.advance(key) {
				heads = slices.Delete(heads, least, least+1)
			}
		}
	}
}

// first returns the index of the head to yield: one with an error, or else the one
// with the least key.
func first[T any](heads []head[T]) int {
	least := 0
	for i, h := range heads {
		if h.err != nil {
			return i
		}
		if h.key < heads[least].key {
			least = i
		}
	}
	return least
}

// head is the next item of one of several sequences.
type head[T any] struct {
	next func() (T, error, bool)
	item T
	key  string
	err  error
}

// advance reads the next item, and reports whether there is one.
func (h *head[T]) advance(key func(T) string) (ok bool) {
	if h.item, h.err, ok = h.next(); ok && h.err == nil {
		h.key = key(h.item)
	}
	return ok
}
