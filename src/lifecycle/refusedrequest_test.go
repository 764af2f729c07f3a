package lifecycle_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// late marks the context of a request that another one precedes.
type late struct{}

// lateKV counts the writes of requests that are late.
type lateKV struct {
	store.KV

	mu     sync.Mutex
	writes []string
}

func (s *lateKV) count(ctx context.Context, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Value(late{}) != nil {
		s.writes = append(s.writes, what)
	}
}

func (s *lateKV) written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

func (s *lateKV) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	s.count(ctx, "put "+key)
	return s.KV.Put(ctx, key, value, expected)
}

func (s *lateKV) Delete(ctx context.Context, key string, expected store.Revision) error {
	s.count(ctx, "delete "+key)
	return s.KV.Delete(ctx, key, expected)
}

// TestRefusedRequestWritesNothing has another request be accepted after a request was
// prepared: it is refused when it is to be recorded. Then it writes nothing, and what it has
// stored before is deleted.
func TestRefusedRequestWritesNothing(t *testing.T) {
	upgrade := func(ctx context.Context, e *engine, size string) error {
		_, err := e.Upgrade(ctx, "web", nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
			s.Inputs.Parameters = map[string]any{"size": size}
			return nil
		}})
		return err
	}
	instantiate := func(ctx context.Context, e *engine, pkg string) error {
		_, err := e.Instantiate(ctx, nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "db", Spec: nf.Spec{Package: pkg}})
		return err
	}
	var large strings.Builder // a plan is compressed
	for range 5_000 {
		large.WriteString(rand.Text())
	}
	cases := map[string]refusal{
		"Upgrade":     {"the first one has the lock", upgrade, "1", "2", nf.Busy, false},
		"Equal":       {"both have the same plan", upgrade, "1", "1", nf.Busy, false},
		"Large":       {"a large plan was stored already", upgrade, "1", large.String(), nf.Busy, true},
		"Instantiate": {"the first one has the name", instantiate, "b", "c", nf.Exists, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, tc.test) })
	}
}

// refusal is one case of TestRefusedRequestWritesNothing.
type refusal struct {
	reason      string
	request     func(ctx context.Context, e *engine, of string) error
	first, then string
	kind        nf.Kind
	stores      bool
}

func (tc refusal) test(t *testing.T) {
	t.Helper()
	s := newSite(t)
	kv := &lateKV{KV: s.kv}
	e := s.start(func(c *config) { c.KV = kv })
	e.up(t, "a", func(r *nf.InstantiateRequest) { r.ID = "web" })
	s.cluster.script("a", nf.InProgress, "") // so that the first request's operation does not end
	var begun atomic.Bool
	s.catalog.alters = func(*nf.Package) {
		if begun.CompareAndSwap(false, true) {
			if err := tc.request(t.Context(), e, tc.first); err != nil {
				t.Errorf("%s: the first request: %v", tc.reason, err)
			}
		}
	}
	err := tc.request(context.WithValue(t.Context(), late{}, true), e, tc.then)
	if err == nil || nf.KindOf(err) != tc.kind {
		t.Errorf("%s: %v", tc.reason, err)
	}
	if writes := kv.written(); (len(writes) > 0) != tc.stores {
		t.Errorf("%s: it writes %v", tc.reason, writes)
	}
	for use, err := range store.NewBlobs(s.kv).Uses(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Operation(t.Context(), strings.TrimPrefix(use.User, "plan/")); err != nil {
			t.Errorf("%s: a plan has the user %s: %v", tc.reason, use.User, err)
		}
	}
}
