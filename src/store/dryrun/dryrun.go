package dryrun

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

// Store is a store.KV that keeps writes in memory. Create it with New. It is
// safe for concurrent use.
type Store struct {
	below store.KV

	mu      sync.Mutex
	changed map[string]pendingWrite
	last    store.Revision
}

// pendingWrite is a key that was written or deleted.
type pendingWrite struct {
	store.Entry

	gone bool
}

var _ store.KV = (*Store)(nil)

// New returns a store with the content of another. Its writes do not reach the
// other store.
func New(below store.KV) *Store {
	// Revisions start far above those of the store below.
	return &Store{below: below, changed: map[string]pendingWrite{}, last: 1 << 62}
}

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
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
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
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
		s.changed[key] = pendingWrite{Entry: store.Entry{Key: key, Value: bytes.Clone(value), Revision: next}}
		return nil
	})
	return next, err
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	return s.change(ctx, key, func(now store.Revision) error {
		subject := "key " + strconv.Quote(key)
		switch {
		case now == store.Absent:
			return nf.E(nf.NotFound, "delete", subject, nil)
		case expected != store.Any && expected != now:
			return nf.E(nf.Conflict, "delete", subject, nil)
		}
		s.changed[key] = pendingWrite{Entry: store.Entry{Key: key}, gone: true}
		return nil
	})
}

// change calls write with the current revision of a key.
func (s *Store) change(ctx context.Context, key string, write func(now store.Revision) error) error {
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
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		rest := s.written(prefix, start)
		for e, err := range s.below.List(ctx, prefix, start) {
			if err != nil {
				yield(e, err)
				return
			}
			n, changed := slices.BinarySearchFunc(rest, e.Key, func(c pendingWrite, key string) int { return strings.Compare(c.Key, key) })
			if !yieldWrites(yield, rest[:n]) || !changed && !yield(e, nil) {
				return
			}
			rest = rest[n:] // a replacement of e comes with the entries before the next one
		}
		yieldWrites(yield, rest)
	}
}

// yieldWrites yields the entries that were not deleted. It returns false if
// yield stops the iteration.
func yieldWrites(yield func(store.Entry, error) bool, all []pendingWrite) bool {
	for _, c := range all {
		if !c.gone && !yield(c.clone(), nil) {
			return false
		}
	}
	return true
}

// written returns the changed keys with a prefix from a start on, in order.
func (s *Store) written(prefix, start string) []pendingWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []pendingWrite
	for _, key := range slices.Sorted(maps.Keys(s.changed)) {
		if strings.HasPrefix(key, prefix) && key >= start {
			out = append(out, s.changed[key])
		}
	}
	return out
}

// Close implements store.KV.
func (s *Store) Close() error { return s.below.Close() }

func (c pendingWrite) clone() store.Entry {
	return store.Entry{Key: c.Key, Value: bytes.Clone(c.Value), Revision: c.Revision}
}
