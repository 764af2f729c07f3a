package outbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// at returns a request of one queue to a host. The host "slow" takes half a
// minute, "dead" does not respond, and "busy" rejects all.
func at(host, queue string) outbox.Request {
	r := report(queue, 1, host)
	r.URL = "http://" + host + ".example/" + queue
	return r
}

func manners(r outbox.Request) (int, error) {
	switch string(r.Body) {
	case "slow":
		<-time.After(30 * time.Second)
	case "dead":
		return down(r)
	case "busy":
		return http.StatusServiceUnavailable, nil
	}
	return http.StatusOK, nil
}

// crowd puts a request to a host into each of some new queues.
func (s *stage) crowd(l *ledger, host string, queues int) {
	s.t.Helper()
	for i := range queues {
		name := fmt.Sprintf("%s%02d", host, i)
		s.open(l, name)
		s.put(l, at(host, name))
	}
}

// sent counts what was sent since the last time, by host.
func (s *stage) sent() map[string]int {
	n := map[string]int{}
	for _, text := range s.to.take() {
		n[text[strings.Index(text, "=")+1:]]++
	}
	return n
}

// TestPace sends to one target at a time as much as it may take, whatever the
// others do.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		parallel int
		pace     outbox.Pace
		crowds   []string
		want     map[string][]int // by host, at once and in each of the following seconds
	}{
		"Parallel":  {"a target has few requests at once", 64, outbox.Pace{Parallel: 3}, []string{"slow"}, map[string][]int{"slow": {3, 0, 0}}},
		"Shared":    {"slow targets share the places", 2, outbox.Pace{Parallel: 16}, []string{"slow"}, map[string][]int{"slow": {3, 0, 0}}},
		"First":     {"they do not keep others waiting", 2, outbox.Pace{}, []string{"slow", "dead", "fine"}, map[string][]int{"slow": {3, 0, 0}, "fine": {20, 0, 0}}},
		"Rate":      {"a target has few requests each second", 64, outbox.Pace{Rate: 8}, []string{"fine"}, map[string][]int{"fine": {8, 8, 4}}},
		"Rates":     {"each has its own", 64, outbox.Pace{Rate: 8}, []string{"fine", "fair"}, map[string][]int{"fine": {8, 8, 4}, "fair": {8, 8, 4}}},
		"SlowRate":  {"less than one in a second", 64, outbox.Pace{Rate: .5}, []string{"fine"}, map[string][]int{"fine": {1, 0, 1}}},
		"Unlimited": {"by default a target takes what ours have at once", 64, outbox.Pace{}, []string{"fine"}, map[string][]int{"fine": {20, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				l := s.ledger(func(cfg *outbox.Config) { cfg.Parallel, cfg.Pace = tc.parallel, tc.pace })
				s.to.answers(manners)
				for _, host := range tc.crowds {
					s.crowd(l, host, 20)
				}
				s.start(l)
				got := map[string][]int{}
				for second := range 3 {
					s.later(time.Duration(min(second, 1)) * time.Second)
					sent := s.sent()
					for host := range tc.want {
						got[host] = append(got[host], sent[host])
					}
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
				s.later(20 * time.Minute)
				if dead := s.dead(l); len(dead) > 0 {
					t.Errorf("waiting is no failed attempt: %v is dead", dead)
				}
			})
		})
	}
}

// TestBreaker has a target that does not respond.
func TestBreaker(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var givenUp atomic.Bool
		l := s.ledger(func(cfg *outbox.Config) {
			patiently(cfg)
			cfg.Pace = outbox.Pace{Parallel: 1, Failures: 3}
			cfg.Observe = func(o outbox.Outcome) { givenUp.CompareAndSwap(false, o == outbox.GivenUp) }
		})
		s.to.answers(manners)
		s.crowd(l, "dead", 12)
		s.crowd(l, "busy", 6)
		stop := s.start(l)
		for _, second := range []struct {
			reason      string
			at          time.Duration
			least, most int // requests to the target since the time before
		}{
			{"three failures open the breaker", 0, 3, 3},
			{"after a second one request is a probe", time.Second, 1, 1},
			{"the pause is doubled, less at most a quarter", 2200 * time.Millisecond, 0, 0},
			{"then the next one is sent", 3 * time.Second, 1, 1},
			{"after four", 7 * time.Second, 1, 1},
			{"after eight", 15 * time.Second, 1, 1},
			{"and at last every minute", 10 * time.Minute, 10, 15},
		} {
			s.later(second.at - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
			sent := s.sent()
			if n := sent["dead"]; n < second.least || n > second.most {
				t.Errorf("%s: %d requests were sent until %s, want %d to %d", second.reason, n, second.at, second.least, second.most)
			}
			if second.at == 0 && sent["busy"] != 6 {
				t.Errorf("%d requests were sent to a busy target, want 6: a status does not open the breaker", sent["busy"])
			}
		}
		want := map[nf.BreakerState]int{nf.BreakerClosed: 1, nf.BreakerHalfOpen: 0, nf.BreakerOpen: 1}
		if d := cmp.Diff(want, l.box.Targets()); d != "" {
			t.Errorf("the targets: -want +got:\n%s", d)
		}
		s.to.answers(nil)
		s.later(time.Minute + time.Second)
		first := s.sent()["dead"]
		if first < 2 {
			t.Errorf("%d requests were sent after the target has recovered, want all that wait", first)
		}
		s.later(4 * time.Hour)
		if later := s.sent()["dead"]; first+later != 12 {
			t.Errorf("%d requests were delivered, want all 12", first+later)
		}
		stop()
		if givenUp.Load() {
			t.Error("a request was given up")
		}
		if d := cmp.Diff(map[nf.BreakerState]int{nf.BreakerClosed: 0, nf.BreakerHalfOpen: 0, nf.BreakerOpen: 0}, l.box.Targets()); d != "" {
			t.Errorf("targets that are no longer used: -want +got:\n%s", d)
		}
	})
}

// TestProbeIsInterrupted stops the replica while its probe is under way. Then
// another replica, whose breaker is its own, delivers.
func TestProbeIsInterrupted(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		l := s.ledger(func(cfg *outbox.Config) { cfg.Pace.Failures = 1 })
		s.to.answers(manners)
		s.crowd(l, "dead", 1)
		stop := s.start(l)
		s.to.answers(func(r outbox.Request) (int, error) {
			<-time.After(10 * time.Second)
			return down(r)
		})
		s.later(3 * time.Second)
		stop()
		s.to.take()
		s.to.answers(nil)
		s.start(s.ledger(nil))
		s.later(time.Minute)
		s.want("the request was not lost", "dead00=dead")
	})
}

// TestTargetChanges moves a queue to another target while its request waits.
func TestTargetChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		host   string
		after  time.Duration
	}{
		"Breaker": {"a request that the breaker holds goes to the new target at once", "dead", 0},
		"Place":   {"one that waits for a place goes there when it would have its turn", "slow", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				l := s.ledger(func(cfg *outbox.Config) {
					cfg.Pace, cfg.Survey = outbox.Pace{Parallel: 1, Failures: 1}, time.Hour
				})
				s.start(l)
				s.to.answers(manners)
				s.crowd(l, tc.host, 2)
				s.later(0)
				var at []string
				s.to.answers(func(r outbox.Request) (int, error) {
					at = append(at, r.URL)
					return http.StatusOK, nil
				})
				const moved = "http://moved.example/"
				if _, err := l.accounts.Update(t.Context(), tc.host+"01", func(a *account) error { a.URL = moved; return nil }); err != nil {
					t.Fatal(err)
				}
				l.box.Wake(tc.host + "01")
				s.later(tc.after)
				if d := cmp.Diff([]string{moved}, at); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestHeldReadsNothing has a source that signals changes often while the breaker
// holds a request.
func TestHeldReadsNothing(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var reads atomic.Int64
		l := s.ledger(func(cfg *outbox.Config) {
			cfg.Pace.Failures = 1
			cfg.KV = storetest.Failing{KV: cfg.KV, Fail: func(method, key string) error {
				if method == "Get" && strings.HasPrefix(key, "accounts/") {
					reads.Add(1)
				}
				return nil
			}}
		})
		s.start(l)
		s.to.answers(manners)
		s.crowd(l, "dead", 1)
		s.later(0)
		s.open(l, "held")
		s.put(l, at("dead", "held"))
		s.later(0)
		reads.Store(0)
		wakeCh, _ := l.signals.Load("held")
		for range 20 {
			wakeCh.(delay.Signal).Send()
			s.later(10 * time.Millisecond)
		}
		if n := reads.Load(); n > 0 {
			t.Errorf("the source was read %d times, want none: nothing may be sent", n)
		}
	})
}
