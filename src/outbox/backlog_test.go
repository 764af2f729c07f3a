package outbox_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// slowLists is a database in which a list of all pending requests takes long. It keeps the
// number of entries of the longest list of one queue.
type slowLists struct {
	store.KV

	takes time.Duration

	mu      sync.Mutex
	longest int
}

// List implements store.KV.
func (s *slowLists) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if prefix == "reports/pending/" {
			<-time.After(s.takes)
		}
		entries := 0
		for e, err := range s.KV.List(ctx, prefix, start) {
			if entries++; !yield(e, err) {
				break
			}
		}
		if strings.HasPrefix(prefix, "reports/pending/") && prefix != "reports/pending/" {
			s.mu.Lock()
			s.longest = max(s.longest, entries)
			s.mu.Unlock()
		}
	}
}

// TestBacklog delivers so many requests that a list of them takes longer than a lease.
func TestBacklog(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		const requests = 350
		slow := &slowLists{KV: s.kv, takes: 20 * time.Second}
		var joined atomic.Int32
		l := s.noun(func(cfg *outbox.Config) {
			cfg.KV = slow
			id := cfg.NewID
			cfg.NewID = func() string { joined.Add(1); return id() }
		})
		want := []string{}
		for i := range requests {
			s.put(l, report("a", i+1, fmt.Sprint(i)))
			want = append(want, fmt.Sprintf("a=%d", i))
		}
		s.put(l, report("b", 1, "x"))
		s.start(l)
		s.later(10 * time.Minute)
		s.want("all are sent in order, and once", append(want, "b=x")...)
		if joined.Load() != 1 {
			t.Errorf("the replica joined %d times: its lease was lost", joined.Load())
		}
		if slow.longest > 101 {
			t.Errorf("%d requests of a queue were read at once", slow.longest)
		}
		began := time.Now()
		s.put(l, report("c", 1, "y"))
		for range 300 {
			if slices.Contains(s.to.take(), "c=y") {
				break
			}
			s.later(time.Second)
		}
		if took := time.Since(began); took > 5*slow.takes+time.Minute {
			t.Errorf("a new queue was found after %v", took)
		}
	})
}

// TestClockSetBack sets the clock back by a day while a request waits for its second attempt.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var back atomic.Int64
		l := s.ledger(func(cfg *outbox.Config) {
			cfg.Clock = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
		})
		s.to.answers(func(outbox.Request) (int, error) { return http.StatusBadGateway, nil })
		s.start(l)
		s.open(l, "a")
		s.put(l, report("a", 1, "1"))
		s.later(time.Minute)
		if n := len(s.to.take()); n < 3 {
			t.Fatalf("there were %d attempts in the first minute", n)
		}
		back.Store(int64(24 * time.Hour))
		s.to.answers(nil)
		s.later(3 * time.Minute)
		if d := cmp.Diff([]string{"a=1"}, s.to.take()); d != "" {
			t.Errorf("sent after the clock was set back: -want +got:\n%s", d)
		}
	})
}
