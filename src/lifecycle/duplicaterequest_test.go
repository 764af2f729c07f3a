package lifecycle_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// slowStore takes its time with every write.
type slowStore struct{ store.KV }

func (s slowStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	<-time.After(time.Millisecond)
	return s.KV.Put(ctx, key, value, expected)
}

// TestDuplicateNamedRequests sends one request for a named instance many times,
// at every moment of the first one's acceptance. None of them is rejected because
// of the name, which is reserved for them.
func TestDuplicateNamedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.kv = slowStore{s.kv}
		e := s.start()
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "a"},
			Options: nf.Options{Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Millisecond / 2)
				if _, err := e.Instantiate(t.Context(), req); err != nil && nf.KindOf(err) != nf.Busy {
					t.Errorf("the request, sent again %d half milliseconds later: %v", i, err)
				}
			})
		}
		wg.Wait()
		other := req
		other.Key = nf.RequestKey{}
		if _, err := e.Instantiate(t.Context(), other); nf.KindOf(err) != nf.Exists {
			t.Errorf("another request for an instance of that name: %v", err)
		}
	})
}

// tardyStore carries the first write of a name out long after its caller has
// given up.
type tardyStore struct {
	store.KV
	group *sync.WaitGroup
	once  *sync.Once
}

func (s tardyStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (rev store.Revision, err error) {
	late := false
	if strings.HasPrefix(key, "instancenames/") {
		s.once.Do(func() {
			late = true
			s.group.Go(func() {
				<-time.After(5 * time.Second)
				_, _ = s.KV.Put(context.WithoutCancel(ctx), key, value, expected)
			})
		})
	}
	if late {
		return 0, nf.E(nf.Unreachable, "write", key, context.DeadlineExceeded)
	}
	return s.KV.Put(ctx, key, value, expected)
}

// TestNameReservedTooLate reserves a name for an instance that is never created.
func TestNameReservedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late sync.WaitGroup
		s := newSite(t)
		s.kv = tardyStore{s.kv, &late, &sync.Once{}}
		e := s.start()
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "a"}}
		if _, err := e.Instantiate(t.Context(), req); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("a request whose name cannot be taken for certain: %v", err)
		}
		late.Wait()
		if op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Name = "fw" }); op.State != nf.Succeeded {
			t.Errorf("the next one: %+v", op.Failure)
		}
		if all, err := e.Instances(t.Context()); len(all) != 1 {
			t.Errorf("there are %d instances, %v", len(all), err)
		}
	})
}

// heldStore holds writes of operations back until the gate is opened.
type heldStore struct {
	store.KV
	gate chan struct{}
}

func (s heldStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if strings.HasPrefix(key, "operations/") {
		<-s.gate
	}
	return s.KV.Put(ctx, key, value, expected)
}

// TestDuplicateRequestToNewReplica sends a request to a replica that has just
// joined, and then to one that has not observed that yet. The second replica does
// not consider the first one dead.
func TestDuplicateRequestToNewReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		shared := func(c *config) { c.Work.Sole = false }
		old := s.start(shared)
		<-time.After(9 * time.Second) // it has looked who is there
		gate := make(chan struct{})
		s.kv = heldStore{s.kv, gate}
		fresh := s.start(shared)
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"},
			Options: nf.Options{Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}}
		var wg sync.WaitGroup
		var first nf.Operation
		wg.Go(func() {
			var err error
			if first, err = fresh.Instantiate(t.Context(), req); err != nil {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		if op, err := old.Instantiate(t.Context(), req); nf.KindOf(err) != nf.Busy || err == nil {
			t.Errorf("the second, while the first is being accepted: %q, %v", op.ID, err)
		}
		close(gate)
		wg.Wait()
		if op, err := old.Instantiate(t.Context(), req); err != nil || op.ID != first.ID {
			t.Errorf("the second, afterwards: %q, %v, want %q", op.ID, err, first.ID)
		}
	})
}
