package cache

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The limits of the cache: it has at most 64 MiB, and usually a tenth of that.
const (
	mostEntries  = 8192
	largestValue = 8 << 10
)

// Store is a store.KV that keeps records in memory. Create it with New. It is safe
// for concurrent use.
type Store struct {
	kv store.KV

	mu        sync.Mutex
	kept      *simplelru.LRU[string, record]
	reading   map[string][]*read
	writing   map[string]*writes
	uncertain marks // keys that a write with an unknown result may still change
}

// record is what the store has under a key: an entry, or none.
type record struct {
	store.Entry

	absent bool
}

// read is a read in progress.
type read struct{ outdated bool } // a write has begun since

// writes are the writes of a key in progress.
type writes struct {
	number     int
	overlapped bool // there were several at once, so their order is not known
}

var (
	_ store.KV     = (*Store)(nil)
	_ store.Writer = (*Store)(nil)
)

// New returns a store that keeps records of another one. No other process or store
// may write to that one.
func New(kv store.KV) *Store {
	kept, _ := simplelru.NewLRU[string, record](mostEntries, nil) // fails only for a size below 1
	return &Store{kv: kv, kept: kept, reading: map[string][]*read{}, writing: map[string]*writes{}, uncertain: newMarks()}
}

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if ctx.Err() == nil { // otherwise the store returns its error
		if r, ok := s.find(key); ok {
			return r.result()
		}
	}
	r := s.beginRead(key)
	e, err := s.kv.Get(ctx, key)
	s.endRead(key, r, record{Entry: e, absent: err != nil}, err)
	return e, err
}

func (s *Store) find(key string) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Get(key)
}

func (r record) result() (store.Entry, error) {
	if r.absent {
		return store.Entry{}, nf.E(nf.NotFound, "read", "key "+strconv.Quote(r.Key), nil)
	}
	e := r.Entry
	e.Value = bytes.Clone(e.Value)
	return e, nil
}

func (s *Store) beginRead(key string) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &read{outdated: s.writing[key] != nil}
	s.reading[key] = append(s.reading[key], r)
	return r
}

func (s *Store) endRead(key string, r *read, found record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading[key] = slices.DeleteFunc(s.reading[key], func(other *read) bool { return other == r })
	if len(s.reading[key]) == 0 {
		delete(s.reading, key)
	}
	if !r.outdated && nf.IgnoreNotFound(err) == nil {
		found.Key = key
		s.keep(found)
	}
}

// keep keeps a record. The lock is held.
func (s *Store) keep(r record) {
	if len(r.Value) > largestValue || s.uncertain.has(r.Key) {
		return
	}
	r.Value = bytes.Clone(r.Value)
	s.kept.Add(r.Key, r)
}

// Put implements store.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	s.beginWrite(key)
	revision, err := s.kv.Put(ctx, key, value, expected)
	s.endWrite(record{Entry: store.Entry{Key: key, Value: value, Revision: revision}}, err)
	return revision, err
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	s.beginWrite(key)
	err := s.kv.Delete(ctx, key, expected)
	s.endWrite(record{Entry: store.Entry{Key: key}, absent: true}, err)
	return err
}

// Write implements store.Writer.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	for _, op := range ops {
		if !op.Check {
			s.beginWrite(op.Key)
		}
	}
	revisions, err := store.Carry(ctx, s.kv, ops)
	for i, op := range ops {
		now := record{Entry: store.Entry{Key: op.Key, Value: op.Value}, absent: op.Value == nil}
		if err == nil {
			now.Revision = revisions[i]
		}
		if !op.Check {
			s.endWrite(now, err)
		} else if err != nil {
			s.forget(op.Key)
		}
	}
	return revisions, err
}

func (s *Store) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
}

// beginWrite forgets a record that is about to be written.
func (s *Store) beginWrite(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
	for _, r := range s.reading[key] {
		r.outdated = true
	}
	w := s.writing[key]
	if w == nil {
		w = &writes{}
		s.writing[key] = w
	}
	w.number++
	w.overlapped = w.overlapped || w.number > 1
}

// endWrite keeps a record that was written.
func (s *Store) endWrite(now record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writing[now.Key]
	if w.number--; w.number == 0 {
		delete(s.writing, now.Key)
	}
	switch {
	case err != nil && nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) != nf.ReasonNoSpace: // then nothing was written
		s.uncertain.add(now.Key)
	case err == nil && !w.overlapped:
		s.keep(now)
	}
}

// List implements store.KV. It is not kept.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return s.kv.List(ctx, prefix, start)
}

// Close implements store.KV.
func (s *Store) Close() error { return s.kv.Close() }
