package lifecycle_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// atomicStore writes a list of ops in one transaction, as etcd does: nothing is read or
// written in the middle of it. The first list that creates an instance is lost, and takes
// effect later.
type atomicStore struct {
	store.KV

	mu   sync.Mutex
	lost []store.Op // that have not taken effect
	once bool
}

func creates(ops []store.Op) bool {
	return slices.ContainsFunc(ops, func(op store.Op) bool { return strings.HasPrefix(op.Key, "instances/") && op.Value != nil })
}

// Write implements store.Writer.
func (s *atomicStore) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.once && creates(ops) {
		s.once, s.lost = true, slices.Clone(ops)
		return nil, &store.WriteError{Err: nf.E(nf.Unreachable, "write", ops[0].Key, context.DeadlineExceeded)}
	}
	return s.commit(ctx, ops)
}

// Get implements store.KV.
func (s *atomicStore) Get(ctx context.Context, key string) (store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.KV.Get(ctx, key)
}

// Put implements store.KV.
func (s *atomicStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.KV.Put(ctx, key, value, expected)
}

// Delete implements store.KV.
func (s *atomicStore) Delete(ctx context.Context, key string, expected store.Revision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.KV.Delete(ctx, key, expected)
}

// List implements store.KV.
func (s *atomicStore) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []store.Entry
	for e, err := range s.KV.List(ctx, prefix, start) {
		if err != nil {
			return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
		}
		entries = append(entries, e)
	}
	return func(yield func(store.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// commit carries out all ops, or none.
func (s *atomicStore) commit(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	for i, op := range ops {
		if op.Expect == store.Any {
			continue
		}
		now, err := s.KV.Get(ctx, op.Key)
		if nf.IgnoreNotFound(err) != nil {
			return nil, &store.WriteError{Index: i, Err: err}
		}
		if now.Revision != op.Expect {
			return nil, &store.WriteError{Index: i, Err: op.Unexpected()}
		}
	}
	return store.Write(ctx, s.KV, ops)
}

// land makes the lost list take effect now, if the store still allows it.
func (s *atomicStore) land(ctx context.Context) {
	ops := s.lost
	s.lost = nil
	_, _ = s.commit(ctx, ops)
}

// momentStore lets the lost list take effect at a moment of the attempt at its operation.
type momentStore struct {
	*atomicStore

	moment string
}

// The moments.
const (
	atOnce        = "at once"
	beforeRemoval = "after the operation was looked for"
	afterRemoval  = "after its claim was removed"
	muchLater     = "much later"
)

// Write implements store.Writer. A list that deletes an operation, or checks that it is
// absent, removes what refers to it.
func (s momentStore) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	removal := slices.ContainsFunc(ops, func(op store.Op) bool { return strings.HasPrefix(op.Key, "operations/") && op.Value == nil })
	if removal && s.moment == beforeRemoval {
		s.now(ctx)
	}
	revisions, err := s.atomicStore.Write(ctx, ops)
	if s.moment == atOnce || removal && s.moment == afterRemoval {
		s.now(ctx)
	}
	return revisions, err
}

func (s momentStore) now(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		s.land(ctx)
	}
}

// TestLateAcceptance accepts a request whose records take effect after the store has
// given up on them. The operation runs, and a repeated request returns it.
func TestLateAcceptance(t *testing.T) {
	for _, moment := range []string{atOnce, beforeRemoval, afterRemoval, muchLater} {
		t.Run(moment, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				kv := momentStore{&atomicStore{KV: s.kv}, moment}
				s.kv = kv
				e := s.start()
				req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "a"},
					Options: nf.Options{Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}}
				first, err := e.Instantiate(t.Context(), req)
				if known := err == nil && moment != muchLater; !known && nf.KindOf(err) != nf.Unreachable && nf.ReasonOf(err) != nf.ReasonIdempotency {
					t.Fatalf("it is not known whether the request is accepted: %v", err)
				}
				<-time.After(30 * time.Second)
				kv.now(t.Context())
				<-time.After(15 * time.Minute) // for the search for operations that no replica runs
				all := e.all(t.Context())
				if len(all) != 1 || all[0].Operation != "" || all[0].Revision == 0 {
					t.Fatalf("the records are there, but their operation has not run: %+v", all)
				}
				if err == nil && first.ID != all[0].LastOperation { // the records took effect before the request was looked for
					t.Errorf("the request returned %s; want the operation of the instance, %s", first.ID, all[0].LastOperation)
				}
				op, err := e.Instantiate(t.Context(), req)
				if err != nil || op.State != nf.Succeeded || op.ID != all[0].LastOperation {
					t.Errorf("the repeated request returns %s %s, %v; want that of the instance, %s", op.ID, op.State, err, all[0].LastOperation)
				}
			})
		})
	}
}

// TestLateAcceptanceOfRepeated repeats a request before the records of the first one take
// effect. Only one of them is accepted.
func TestLateAcceptanceOfRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		kv := momentStore{&atomicStore{KV: s.kv}, muchLater}
		s.kv = kv
		e := s.start()
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "a"},
			Options: nf.Options{Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}}
		if _, err := e.Instantiate(t.Context(), req); nf.KindOf(err) != nf.Unreachable {
			t.Fatalf("it is not known whether the request is accepted: %v", err)
		}
		op, err := e.Instantiate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		kv.now(t.Context())
		<-time.After(2 * time.Minute)
		all := e.all(t.Context())
		if len(all) != 1 || all[0].LastOperation != op.ID || all[0].Revision == 0 || all[0].Operation != "" {
			t.Errorf("want one instance of operation %s: %+v", op.ID, all)
		}
	})
}
