package outbox_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// crashingLedger is a ledger whose process is cut off from the store before or
// after one of its writes.
type crashingLedger struct {
	*ledger

	writes atomic.Int64
	dead   atomic.Bool
}

// crashing returns a ledger whose process dies before or after the given write.
func (s *stage) crashing(when string, at int64, create func(func(*outbox.Config)) *ledger, edit func(*outbox.Config)) *crashingLedger {
	m := &crashingLedger{}
	failAt := func(now string) func(method, key string) error {
		return func(method, key string) error {
			written := when == now && (method == "Put" || method == "Delete") && !strings.HasPrefix(key, "reports/replicas/")
			if !m.dead.Load() && written && m.writes.Add(1) > at {
				m.dead.Store(true)
			}
			if m.dead.Load() {
				return nf.E(nf.Unreachable, "use", "the store", errDown)
			}
			return nil
		}
	}
	m.ledger = create(func(cfg *outbox.Config) {
		edit(cfg)
		cfg.KV = storetest.Failing{KV: cfg.KV, Fail: failAt("before"), Lose: failAt("after")}
	})
	return m
}

// TestDeathAtEveryWrite cuts the first process off from the store before and
// after each of its writes, and lets another take over. The last one has nothing
// left to write.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		play   func(t *testing.T, s *stage, when string, at int64) (died bool)
		least  int64 // writes
	}{
		"Report":     {"each stored request is sent; if it is sent twice, it has the same id and content", dieReporting, 12},
		"DeadLetter": {"a request is delivered or dead at any time", dieGivingUp, 25},
		"Order":      {"each stored request is sent, and each change is reported", dieOrdering, 14},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				for at, died := int64(0), true; died; at++ {
					play(t, func(t *testing.T, s *stage) { died = tc.play(t, s, when, at) })
					if t.Failed() {
						t.Fatalf("%s: not after death at write %d", tc.reason, at)
					}
					if !died && at < tc.least {
						t.Errorf("the process has written %d times, want at least %d", at, tc.least)
					}
				}
			})
		}
	}
}

func dieReporting(_ *testing.T, s *stage, when string, at int64) bool {
	stored := s.watchPut()
	first, heir := s.crashing(when, at, s.ledger, func(*outbox.Config) {}), s.ledger(nil)
	stop := s.start(first.ledger)
	s.failEveryOther()
	for _, value := range []string{"1", "2", "3"} {
		s.set(heir, "a", value)
		first.box.Scan()
		first.box.Wake("a")
		s.later(3 * time.Second)
	}
	died := first.dead.Swap(true)
	stop()
	s.start(heir)
	s.later(time.Minute)
	s.set(heir, "a", "4")
	s.later(time.Minute)
	s.wantSent(stored)
	return died
}

// dieOrdering has a client change a record together with its request, and repeat
// a change that failed through another process.
func dieOrdering(t *testing.T, s *stage, when string, at int64) bool {
	stored := s.watchPut()
	first, heir := s.crashing(when, at, s.noun, func(*outbox.Config) {}), s.noun(nil)
	stop := s.start(first.ledger)
	s.failEveryOther()
	for _, value := range []string{"1", "2", "3"} {
		if first.order(t.Context(), "a", value) != nil {
			s.order(heir, "a", value)
		}
		s.later(3 * time.Second)
	}
	died := first.dead.Swap(true)
	stop()
	s.start(heir)
	s.later(time.Minute)
	s.order(heir, "a", "4")
	s.later(time.Minute)
	if told := s.wantSent(stored); len(told) != 4 {
		t.Errorf("%v was sent, want all four", told)
	}
	if pending, err := store.NewTable[outbox.Delivery](s.kv, "reports/pending/", "report").List(t.Context(), ""); len(pending) > 0 || err != nil {
		t.Errorf("pending: %v, %v", pending, err)
	}
	return died
}

// watchPut returns the ids of the requests that are stored from now on.
func (s *stage) watchPut() map[string]bool {
	stored := map[string]bool{}
	s.kv = storetest.Failing{KV: s.kv, Lose: func(method, key string) error {
		if id, ok := strings.CutPrefix(key, "reports/pending/"); ok && method == "Put" {
			stored[id] = true
		}
		return nil
	}}
	return stored
}

func (s *stage) failEveryOther() {
	attempts := 0
	s.to.answers(func(outbox.Request) (int, error) {
		attempts++
		return []int{http.StatusOK, http.StatusBadGateway}[attempts%2], nil
	})
}

// wantSent wants all stored requests to have been sent, in order, each with one
// content, up to "4". It returns the contents by id.
func (s *stage) wantSent(stored map[string]bool) map[string]string {
	s.t.Helper()
	contents, last := map[string]string{}, ""
	for _, r := range s.to.sent {
		id, told := r.Header[outbox.DeliveryHeader], string(r.Body)
		if before, twice := contents[id]; twice && before != told {
			s.t.Errorf("request %s says %q, and then %q", id, before, told)
		}
		if told < last {
			s.t.Errorf("%q follows %q", told, last)
		}
		contents[id], last = told, told
	}
	if last != "4" {
		s.t.Errorf("the last value that was sent is %q", last)
	}
	for id := range stored {
		if _, sent := contents[id]; !sent {
			s.t.Errorf("request %s was stored and not sent", id)
		}
	}
	return contents
}

func dieGivingUp(t *testing.T, s *stage, when string, at int64) bool {
	first, heir := s.crashing(when, at, s.ledger, patiently), s.ledger(patiently)
	s.to.answers(down)
	stop := s.start(first.ledger)
	s.open(heir, "a")
	s.put(heir, report("a", 1, "1"))
	first.box.Scan()
	for hours := 0; hours < 25 && !first.dead.Load(); hours++ {
		s.later(time.Hour)
	}
	if dead, err := first.box.DeadLetter(t.Context(), "a-0000000001"); err == nil {
		_, _ = first.box.Resend(t.Context(), dead) // it may fail, or die
	}
	s.later(time.Minute)
	died := first.dead.Swap(true)
	stop()
	s.start(heir)
	s.to.take()
	s.to.answers(nil)
	s.later(25 * time.Hour)
	if sent, dead := s.to.take(), s.dead(heir); len(sent)+len(dead) == 0 {
		t.Error("the request is neither sent nor dead")
	}
	return died
}
