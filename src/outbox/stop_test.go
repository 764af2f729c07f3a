package outbox_test

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestStopDuringRequest stops a replica while its request is under way. Another replica
// takes over.
func TestStopDuringRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		takes  time.Duration // the target, for an answer
		sent   int
	}{
		"Short": {"an answer that comes soon is waited for, so the request is sent once", 2 * time.Second, 1},
		"Long":  {"a slow target delays a stop little, and gets the request again", time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				var sent, answered atomic.Int32
				slow := func(cfg *outbox.Config) {
					cfg.Send = func(ctx context.Context, _ outbox.Request) (int, error) {
						sent.Add(1)
						if delay.For(ctx, tc.takes, nil); ctx.Err() != nil {
							return 0, ctx.Err()
						}
						answered.Add(1)
						return http.StatusOK, nil
					}
				}
				l := s.ledger(slow)
				stop := s.start(l)
				s.open(l, "a")
				s.put(l, report("a", 1, "x"))
				s.later(time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s: the stop took %v", tc.reason, took)
				}
				s.start(s.ledger(slow))
				s.later(2 * time.Minute)
				if sent.Load() != int32(tc.sent) || answered.Load() != 1 {
					t.Errorf("%s: it was sent %d times, and answered %d times", tc.reason, sent.Load(), answered.Load())
				}
			})
		})
	}
}

// wide is a ledger each of whose accounts is a shard.
type wide struct{ *ledger }

// Queues implements outbox.Source.
func (w wide) Queues(ctx context.Context) iter.Seq2[outbox.Queue, error] {
	return func(yield func(outbox.Queue, error) bool) {
		for q, err := range w.ledger.Queues(ctx) {
			if q.Shard = q.Key; !yield(q, err) {
				return
			}
		}
	}
}

// TestManyShards has more shards than a replica can take, or release, in the time of its
// lease.
func TestManyShards(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		const shards = 400
		var joined atomic.Int32
		slow := func(cfg *outbox.Config) {
			cfg.KV = storetest.Failing{KV: cfg.KV, Fail: func(method, key string) error {
				switch {
				case method == "Put" && strings.HasPrefix(key, "reports/replicas/"), !strings.HasPrefix(key, "reports/"):
				case method == "Put" || method == "Delete":
					<-time.After(50 * time.Millisecond)
				}
				return nil
			}}
			id := cfg.NewID
			cfg.NewID = func() string { joined.Add(1); return id() }
		}
		wider := func(l *ledger) outbox.Source { return wide{l} }
		l := s.create(slow, wider)
		for i := range shards {
			name := strconv.Itoa(i)
			if err := l.accounts.Insert(t.Context(), name, account{Name: name}); err != nil {
				t.Fatal(err)
			}
			s.put(l, report(name, 1, "1"))
		}
		stop := s.start(l)
		s.later(time.Minute)
		if sent := s.to.take(); len(sent) != shards || joined.Load() != 1 {
			t.Errorf("the first replica has sent %d of %d requests, and joined %d times", len(sent), shards, joined.Load())
		}
		began := time.Now()
		stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v to leave", took)
		}
		for i := range shards {
			s.put(l, report(strconv.Itoa(i), 2, "2"))
		}
		s.start(s.create(slow, wider))
		s.later(time.Minute)
		if sent := s.to.take(); len(sent) != shards || joined.Load() != 2 {
			t.Errorf("the second replica has sent %d of %d requests, and joined %d times", len(sent), shards, joined.Load()-1)
		}
	})
}

// TestShardsMoveBesideSlowRequests starts a second replica while each shard of the first one
// has a request under way, which its end waits for. The first one keeps its lease.
func TestShardsMoveBesideSlowRequests(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		const shards, requests = 100, 1
		var joined atomic.Int32
		counted := func(cfg *outbox.Config) {
			cfg.Parallel = shards
			cfg.Send = func(ctx context.Context, r outbox.Request) (int, error) {
				if delay.For(ctx, time.Minute, nil); ctx.Err() != nil {
					return 0, ctx.Err()
				}
				return s.to.Send(ctx, r)
			}
			id := cfg.NewID
			cfg.NewID = func() string { joined.Add(1); return id() }
		}
		wider := func(l *ledger) outbox.Source { return wide{l} }
		l := s.create(counted, wider)
		for i := range shards {
			name := strconv.Itoa(i)
			if err := l.accounts.Insert(t.Context(), name, account{Name: name}); err != nil {
				t.Fatal(err)
			}
			for number := 1; number <= requests; number++ {
				r := report(name, number, strconv.Itoa(number))
				r.URL = "http://" + name + ".example/"
				s.put(l, r)
			}
		}
		s.start(l)
		s.later(5 * time.Second)
		s.start(s.create(counted, wider))
		s.later(5 * time.Minute)
		if sent := s.to.take(); len(sent) != shards*requests || joined.Load() != 2 {
			t.Errorf("%d of %d requests were sent, and two replicas joined %d times", len(sent), shards*requests, joined.Load())
		}
	})
}
