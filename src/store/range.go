package store

import (
	"context"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

type expectedKey struct{}

// Expecting returns a context under which List reads about n entries from the
// database at first, and more only when its caller has used those. It is for a
// caller that will probably stop after n entries; the result is the same. With 0,
// the number is unknown.
func Expecting(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, expectedKey{}, n)
}

// FirstPage returns the number of entries that a driver reads first: that of
// Expecting, but at most the limit, and the default if that is unknown.
func FirstPage(ctx context.Context, unknown, limit int) int {
	if n, _ := ctx.Value(expectedKey{}).(int); n > 0 {
		return min(n, limit)
	}
	return unknown
}

// PartSize is the number of entries that a loop with Parts lists at once: few enough that
// the history of the writes in the meantime is short.
const PartSize = 500

// Parts yields all entries of a store, in several lists of at most n entries. Each list
// is as of its own time. It is for a loop that writes or takes long: one list would
// need the history of the whole time.
func Parts(ctx context.Context, kv KV, n int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for last, more := "", true; more; {
			more = false
			seen := 0
			for e, err := range kv.List(ctx, "", last) {
				if err == nil && e.Key == last {
					continue // the last list ended with it
				}
				if !yield(e, err) || err != nil {
					return
				}
				last = e.Key
				if seen++; seen == n {
					more = true
					break
				}
			}
		}
	}
}

// After yields the records whose ids are the prefix and a text that is greater than
// c.After, in the byte order of their ids. It ignores the conditions of c.
func (t Table[T]) After(ctx context.Context, prefix string, c nf.Cursor) iter.Seq2[T, error] {
	return t.list(Expecting(ctx, c.Expect), t.prefix+escape(prefix), t.after(prefix, c))
}

// after returns the least key that After may yield.
func (t Table[T]) after(prefix string, c nf.Cursor) string {
	start := t.prefix
	if c.After != "" {
		start += escape(prefix + c.After + "\x00") // the least text that is greater
	}
	if len(start) > maxKey {
		start = strings.TrimRight(start[:maxKey], "~") // no key is longer, and no byte is greater
		start = start[:len(start)-1] + string(start[len(start)-1]+1)
	}
	return start
}

// Finder is a KV that has an index of the records of some tables.
type Finder interface {
	// Find yields the keys with the prefix of a table whose records may meet the
	// conditions of c, in the order of c, ascending from start or descending from the
	// greatest key below start. It ignores c.After. It returns false if it has no
	// complete index of the table.
	Find(prefix, start string, c nf.Cursor) (iter.Seq[string], bool)
}

// Find yields the records after the cursor that meet its conditions, in the byte order
// of their ids, and reads few others. It returns false if the store has no index of the
// table, and if there are no conditions: a range of the store is then read at less cost.
func (t Table[T]) Find(ctx context.Context, c nf.Cursor) (iter.Seq2[T, error], bool) {
	index, ok := t.kv.(Finder)
	if !ok || !c.Selective() {
		return nil, false
	}
	start := t.after("", c)
	switch {
	case c.Backward && c.After == "":
		start = t.prefix + "\x7f" // greater than all keys
	case c.Backward:
		start = t.prefix + escape(c.After)
	}
	keys, ok := index.Find(t.prefix, start, c)
	if !ok {
		return nil, false
	}
	return func(yield func(T, error) bool) {
		for key := range keys {
			v, err := t.found(ctx, key)
			if nf.KindOf(err) == nf.NotFound {
				continue
			}
			if s, ok := any(v).(interface{ Summary() nf.Summary }); err == nil && ok && !c.Selects(s.Summary()) {
				continue // it has changed
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}, true
}

// found returns the record of a key.
func (t Table[T]) found(ctx context.Context, key string) (T, error) {
	e, err := t.kv.Get(ctx, key)
	if err != nil {
		var none T
		return none, nf.E(nf.KindOf(err), "list", t.noun+" records", err)
	}
	return t.decode(e)
}

// Merged yields the records of those groups that group reports true for, in the
// order of key, which is the part of a record's id that follows its group, and only
// those whose key is greater than c.After. Group returns the beginning of a record's
// id, which ends with "/". Of the other groups, Merged reads one record each.
func (t Table[T]) Merged(ctx context.Context, prefix string, c nf.Cursor, key func(T) string, group func(T) (string, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		groups, err := t.groups(Expecting(ctx, 1), prefix, group)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		each := c
		each.Expect = (c.Expect + len(groups) - 1) / max(len(groups), 1)
		var sequences []iter.Seq2[T, error]
		for _, g := range groups {
			sequences = append(sequences, t.After(ctx, g, each))
		}
		nf.Merged(key, sequences...)(yield)
	}
}

// groups returns the groups that group reports true for.
func (t Table[T]) groups(ctx context.Context, prefix string, group func(T) (string, bool)) ([]string, error) {
	var out []string
	for _, err := range t.Without(ctx, prefix, func(v T) string {
		g, in := group(v)
		if in {
			out = append(out, g)
		}
		return g
	}) {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
