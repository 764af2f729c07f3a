// Package memory is a database that lives and dies with the process. It is for
// tests and for trials that need not survive a restart.
//
// It keeps the whole contract of store.KV, at the cost of copying what goes in
// and out. It does not bound its size and does not write to disk.
package memory

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Store is the database. Create it with New.
type Store struct {
	mu      sync.RWMutex
	entries []store.Entry // in the order of their keys; values are never edited in place
	last    store.Revision
}

var _ store.KV = (*Store)(nil)

// New returns an empty database.
func New() *Store { return &Store{} }

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := check(ctx, "read", key); err != nil {
		return store.Entry{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := s.find(key)
	if !found {
		return store.Entry{}, fail(nf.NotFound, "read", key, nil)
	}
	return clone(s.entries[i]), nil
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
	i, found := s.find(key)
	switch {
	case expected == store.Any:
	case expected == store.Absent && found:
		return 0, fail(nf.Exists, "write", key, nil)
	case expected != store.Absent && (!found || s.entries[i].Revision != expected):
		return 0, fail(nf.Conflict, "write", key, nil)
	}
	if !found {
		s.entries = slices.Insert(s.entries, i, store.Entry{Key: strings.Clone(key)})
	}
	s.last++
	s.entries[i].Value, s.entries[i].Revision = bytes.Clone(value), s.last
	return s.last, nil
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.find(key)
	if !found {
		return fail(nf.NotFound, "delete", key, nil)
	}
	if expected != store.Any && s.entries[i].Revision != expected {
		return fail(nf.Conflict, "delete", key, nil)
	}
	s.entries = slices.Delete(s.entries, i, i+1)
	return nil
}

// List implements store.KV. It yields the entries as they are when it begins.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if err := store.CheckPrefix(prefix); err != nil {
			yield(store.Entry{}, err)
			return
		}
		entries := s.snapshot(prefix)
		for {
			if err := ended(ctx, "list", prefix); err != nil {
				yield(store.Entry{}, err)
				return
			}
			if len(entries) == 0 || !yield(clone(entries[0]), nil) {
				return
			}
			entries = entries[1:]
		}
	}
}

// Close implements store.KV.
func (s *Store) Close() error { return nil }

func (s *Store) snapshot(prefix string) []store.Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, _ := s.find(prefix)
	to := from
	for to < len(s.entries) && strings.HasPrefix(s.entries[to].Key, prefix) {
		to++
	}
	return slices.Clone(s.entries[from:to])
}

// find returns where the key is, or where it would go.
func (s *Store) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s.entries, key, func(e store.Entry, key string) int {
		return strings.Compare(e.Key, key)
	})
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
