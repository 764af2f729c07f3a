// Package memory is an in-memory database, which is lost when the process ends.
// It is for tests, and for trials that need not survive a restart.
//
// It implements the whole contract of store.KV, at the cost of copying values
// on reads and writes. It does not limit its size and does not write to disk.
package memory

import (
	"bytes"
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Store is the database. Create it with New.
type Store struct {
	mu      sync.RWMutex
	entries *btree.BTreeG[store.Entry] // by key; values are never modified in place
	last    store.Revision
}

var _ store.KV = (*Store)(nil)

// New returns an empty database.
func New() *Store {
	const degree = 32
	return &Store{entries: btree.NewG(degree, func(a, b store.Entry) bool { return a.Key < b.Key })}
}

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := check(ctx, "read", key); err != nil {
		return store.Entry{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, found := s.entries.Get(store.Entry{Key: key})
	if !found {
		return store.Entry{}, fail(nf.NotFound, "read", key, nil)
	}
	return clone(e), nil
}

// Put implements store.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := check(ctx, "write", key); err != nil {
		return 0, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.entries.Get(store.Entry{Key: key})
	switch {
	case expected == store.Any:
	case expected == store.Absent && found:
		return 0, fail(nf.Exists, "write", key, nil)
	case expected != store.Absent && (!found || e.Revision != expected):
		return 0, fail(nf.Conflict, "write", key, nil)
	}
	s.last++
	s.entries.ReplaceOrInsert(clone(store.Entry{Key: strings.Clone(key), Value: value, Revision: s.last}))
	return s.last, nil
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.entries.Get(store.Entry{Key: key})
	if !found {
		return fail(nf.NotFound, "delete", key, nil)
	}
	if expected != store.Any && e.Revision != expected {
		return fail(nf.Conflict, "delete", key, nil)
	}
	s.entries.Delete(e)
	return nil
}

// List implements store.KV. It yields a snapshot of the entries.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		first, err := store.FirstKey(prefix, start)
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		goOn := true
		s.snapshot().AscendGreaterOrEqual(store.Entry{Key: first}, func(e store.Entry) bool {
			if !strings.HasPrefix(e.Key, prefix) {
				return false
			}
			if err := ended(ctx, "list", prefix); err != nil {
				goOn = false
				yield(store.Entry{}, err)
				return false
			}
			goOn = yield(clone(e), nil)
			return goOn
		})
		if err := ended(ctx, "list", prefix); err != nil && goOn {
			yield(store.Entry{}, err)
		}
	}
}

// Close implements store.KV.
func (s *Store) Close() error { return nil }

// snapshot returns the current entries. They are copied only when they are
// changed later.
func (s *Store) snapshot() *btree.BTreeG[store.Entry] {
	s.mu.Lock() // Clone writes
	defer s.mu.Unlock()
	return s.entries.Clone()
}

func check(ctx context.Context, op, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return ended(ctx, op, key)
}

func ended(ctx context.Context, op, key string) error {
	if err := ctx.Err(); err != nil {
		return fail(nf.Unreachable, op, key, err)
	}
	return nil
}

func fail(kind nf.Kind, op, key string, cause error) error {
	return nf.E(kind, op, "key "+strconv.Quote(key), cause)
}

func clone(e store.Entry) store.Entry {
	e.Value = bytes.Clone(e.Value)
	return e
}
