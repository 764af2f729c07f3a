package leader_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// replicas are members of a group.
type replicas struct {
	kv      store.KV
	working atomic.Int64
	began   atomic.Int64
	ids     atomic.Int64
}

// start runs one more replica, and returns the function that ends it.
func (r *replicas) start(t *testing.T) (end func()) {
	t.Helper()
	g, err := leader.New(leader.Config{KV: r.kv, Prefix: "x/", Work: "test", NewID: func() string { return fmt.Sprint("r", r.ids.Add(1)) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- g.Run(ctx, func(ctx context.Context) {
			r.began.Add(1)
			r.working.Add(1)
			defer r.working.Add(-1)
			<-ctx.Done()
		})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (r *replicas) want(t *testing.T, reason string, after time.Duration, began int64) {
	t.Helper()
	passes(t.Context(), after)
	if r.working.Load() != 1 || r.began.Load() != began {
		t.Errorf("%s: %d replicas work, and %d have begun; want 1 and %d", reason, r.working.Load(), r.began.Load(), began)
	}
}

// passes lets time pass.
func passes(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// TestOneLeads checks that one replica works at any time, whichever ends.
func TestOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replicas{kv: memory.New()}
		first := r.start(t)
		r.want(t, "the only replica leads", 6*time.Second, 1)
		second, third := r.start(t), r.start(t)
		r.want(t, "the first replica continues to lead", time.Minute, 1)
		first()
		r.want(t, "after its leader left, another replica leads at its next look", 10*time.Second, 2)
		second()
		third()
		if r.working.Load() != 0 {
			t.Error("the work continues after all replicas ended")
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := leader.New(leader.Config{KV: memory.New(), Prefix: "x/", Work: "test"}); err == nil {
		t.Error("a group without NewID is accepted")
	}
}
