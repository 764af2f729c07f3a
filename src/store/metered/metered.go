package metered

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Report is called for each finished request. The method is "get", "put",
// "delete", "list", or "write" for several ops together. The outcome is OK or the name of the error's kind. The
// time is the time spent in the store. It is called in the goroutine of the
// request, so it must not block.
type Report func(method, outcome string, took time.Duration)

// OK is the outcome of a request without an error.
const OK = "ok"

// Store is a store.KV that reports its requests. Create it with New.
type Store struct {
	kv     store.KV
	report Report
}

var (
	_ store.KV     = (*Store)(nil)
	_ store.Writer = (*Store)(nil)
)

// New returns a store that reports the requests to another. A request that the
// caller cancelled is nf.Cancelled in the report, because the store did not
// fail. The store itself returns nf.Unreachable, as the contract of KV
// requires.
func New(kv store.KV, report Report) *Store { return &Store{kv: kv, report: report} }

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	start := time.Now()
	e, err := s.kv.Get(ctx, key)
	s.report("get", outcome(ctx, err), time.Since(start))
	return e, err
}

// Put implements store.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	start := time.Now()
	rev, err := s.kv.Put(ctx, key, value, expected)
	s.report("put", outcome(ctx, err), time.Since(start))
	return rev, err
}

// Delete implements store.KV.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	start := time.Now()
	err := s.kv.Delete(ctx, key, expected)
	s.report("delete", outcome(ctx, err), time.Since(start))
	return err
}

// Write implements store.Writer.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	start := time.Now()
	revisions, err := store.Carry(ctx, s.kv, ops)
	s.report("write", outcome(ctx, err), time.Since(start))
	return revisions, err
}

// List implements store.KV. It is reported when the sequence has ended or the
// caller has stopped it. The time that the caller spends on the entries does
// not count.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		var took time.Duration
		var failure error
		since := time.Now()
		for e, err := range s.kv.List(ctx, prefix, start) {
			took += time.Since(since)
			failure = err
			more := yield(e, err)
			since = time.Now()
			if !more {
				break
			}
		}
		s.report("list", outcome(ctx, failure), took+time.Since(since))
	}
}

// Close implements store.KV. It is not reported.
func (s *Store) Close() error { return s.kv.Close() }

func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return OK
	case nf.KindOf(err) == nf.Unreachable && errors.Is(ctx.Err(), context.Canceled):
		return nf.Cancelled.String()
	}
	return nf.KindOf(err).String()
}
