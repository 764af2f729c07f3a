package index

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// of returns the table of a key, or nil.
func (s *Store) of(key string) *table {
	for _, t := range s.tables {
		if strings.HasPrefix(key, t.prefix) {
			return t
		}
	}
	return nil
}

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	t := s.of(key)
	if t == nil {
		return s.cfg.KV.Get(ctx, key)
	}
	seen := t.get(key)
	e, err := s.cfg.KV.Get(ctx, key)
	switch {
	case err == nil && seen != nil && seen.doubt != 0:
		t.keep(e, seen)
	case err != nil && nf.KindOf(err) == nf.NotFound:
		t.drop(seen)
	}
	return e, err
}

// Put implements store.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	revision, err := s.cfg.KV.Put(ctx, key, value, expected)
	if t := s.of(key); t != nil {
		switch {
		case err == nil:
			t.keep(store.Entry{Key: key, Value: value, Revision: revision}, nil)
		case nf.KindOf(err) == nf.Unreachable:
			t.doubt(key)
		}
	}
	return revision, err
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	t := s.of(key)
	if t == nil {
		return s.cfg.KV.Delete(ctx, key, expected)
	}
	seen := t.get(key)
	err := s.cfg.KV.Delete(ctx, key, expected)
	switch {
	case err == nil:
		t.drop(seen)
	case nf.KindOf(err) == nf.Unreachable:
		t.doubt(key)
	}
	return err
}

// Write implements store.Writer.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	seen := make([]*record, len(ops))
	for i, op := range ops {
		if t := s.of(op.Key); t != nil {
			seen[i] = t.get(op.Key)
		}
	}
	revisions, err := store.Carry(ctx, s.cfg.KV, ops)
	for i, op := range ops {
		t := s.of(op.Key)
		switch {
		case t == nil || op.Check:
		case err != nil && carried(err, i):
			t.doubt(op.Key)
		case err != nil:
		case op.Value == nil:
			t.drop(seen[i])
		default:
			t.keep(store.Entry{Key: op.Key, Value: op.Value, Revision: revisions[i]}, nil)
		}
	}
	return revisions, err
}

// carried reports whether a write of several ops that has failed may have carried out
// one of them.
func carried(err error, op int) bool {
	failed, ok := errors.AsType[*store.WriteError](err)
	return !ok || nf.KindOf(err) == nf.Unreachable || op < failed.Index
}

// List implements store.KV.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return s.cfg.KV.List(ctx, prefix, start)
}

// Close implements store.KV.
func (s *Store) Close() error { return s.cfg.KV.Close() }
