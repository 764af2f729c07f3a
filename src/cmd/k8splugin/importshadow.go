package main

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// shadow is a store as it would be: what is written is seen by those who read
// it, and goes nowhere.
type shadow struct {
	below store.KV

	mu      sync.Mutex
	changed map[string]shade
	last    store.Revision
}

// shade is a key that was written, or removed.
type shade struct {
	store.Entry

	gone bool
}

var _ store.KV = (*shadow)(nil)

func newShadow(below store.KV) *shadow {
	// From far above those of the store that is below.
	return &shadow{below: below, changed: map[string]shade{}, last: 1 << 62}
}

// Get implements store.KV.
func (s *shadow) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := s.below.Get(ctx, key)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return e, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.changed[key]; ok && !c.gone {
		return c.clone(), nil
	} else if ok {
		return store.Entry{}, nf.E(nf.NotFound, "read", "key "+strconv.Quote(key), nil)
	}
	return e, err
}

// Put implements store.KV.
func (s *shadow) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := store.CheckValue(key, value); err != nil {
		return 0, err
	}
	var next store.Revision
	err := s.change(ctx, key, func(now store.Revision) error {
		subject := "key " + strconv.Quote(key)
		switch {
		case expected == store.Any:
		case expected == store.Absent && now != store.Absent:
			return nf.E(nf.Exists, "write", subject, nil)
		case expected != now:
			return nf.E(nf.Conflict, "write", subject, nil)
		}
		s.last++
		next = s.last
		s.changed[key] = shade{Entry: store.Entry{Key: key, Value: bytes.Clone(value), Revision: next}}
		return nil
	})
	return next, err
}

// Delete implements store.KV.
func (s *shadow) Delete(ctx context.Context, key string, expected store.Revision) error {
	return s.change(ctx, key, func(now store.Revision) error {
		subject := "key " + strconv.Quote(key)
		switch {
		case now == store.Absent:
			return nf.E(nf.NotFound, "delete", subject, nil)
		case expected != store.Any && expected != now:
			return nf.E(nf.Conflict, "delete", subject, nil)
		}
		s.changed[key] = shade{Entry: store.Entry{Key: key}, gone: true}
		return nil
	})
}

// change calls write with the revision that a key has now.
func (s *shadow) change(ctx context.Context, key string, write func(now store.Revision) error) error {
	e, err := s.below.Get(ctx, key)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := e.Revision
	if c, ok := s.changed[key]; ok {
		now = c.Revision
	}
	return write(now)
}

// List implements store.KV.
func (s *shadow) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		rest := s.written(prefix)
		for e, err := range s.below.List(ctx, prefix) {
			if err != nil {
				yield(e, err)
				return
			}
			n, changed := slices.BinarySearchFunc(rest, e.Key, func(c shade, key string) int { return strings.Compare(c.Key, key) })
			if !yieldShades(yield, rest[:n]) || !changed && !yield(e, nil) {
				return
			}
			rest = rest[n:] // what took the place of e comes with those before the next
		}
		yieldShades(yield, rest)
	}
}

// yieldShades yields those that are not removed; false when nobody wants more.
func yieldShades(yield func(store.Entry, error) bool, all []shade) bool {
	for _, c := range all {
		if !c.gone && !yield(c.clone(), nil) {
			return false
		}
	}
	return true
}

// written returns what was written of keys with a prefix, in their order.
func (s *shadow) written(prefix string) []shade {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []shade
	for _, key := range slices.Sorted(maps.Keys(s.changed)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, s.changed[key])
		}
	}
	return out
}

// Close implements store.KV.
func (s *shadow) Close() error { return s.below.Close() }

func (c shade) clone() store.Entry {
	return store.Entry{Key: c.Key, Value: bytes.Clone(c.Value), Revision: c.Revision}
}
