package outbox_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// TestAge has requests wait for earlier ones of their queue, each of which is tried for 14
// hours.
func TestAge(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		const day, requests = 24 * time.Hour, 12
		l := s.ledger(func(cfg *outbox.Config) { cfg.Lease, cfg.Survey = time.Hour, time.Hour }) // fewer heartbeats in so many days
		s.start(l)
		s.open(l, "a", "patient")
		s.to.answers(func(outbox.Request) (int, error) { return http.StatusBadGateway, nil })
		for i := range requests {
			s.put(l, report("a", i+1, fmt.Sprint(i)))
		}
		patient := report("patient", 1, "x")
		patient.Policy = outbox.Policy{Attempts: 10, First: day, Longest: day}
		s.put(l, patient)
		s.later(3*day - time.Hour)
		if n := len(s.dead(l)); n < 3 || n == requests {
			t.Errorf("%d of %d requests were given up before they are three days old, want those that were tried", n, requests)
		}
		s.later(4 * time.Hour) // an attempt that is due may be awaited: a survey forgets the policy
		if n := len(s.dead(l)); n != requests {
			t.Errorf("%d of %d requests are dead letters after three days, want all", n, requests)
		}
		s.to.take()
		s.later(10 * day)
		if n := len(s.to.take()); n < 6 || len(s.dead(l)) != requests+1 {
			t.Errorf("the request whose attempts take ten days was tried %d more times; the dead letters are %v", n, s.dead(l))
		}

		s.to.answers(nil)
		letters, err := l.box.DeadLetters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.box.Resend(t.Context(), letters[0]); err != nil {
			t.Fatal(err)
		}
		s.put(l, report("a", requests+1, "new"))
		s.later(0)
		s.want("a dead letter that is sent again is not too old", "a=0", "a=new")
	})
}

// TestAgeAfterStop starts a service after a long stop: what is old by then is still tried.
func TestAgeAfterStop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		answer func(outbox.Request) (int, error)
		dead   int
	}{
		"Responds": {"its target may respond", nil, 0},
		"Fails":    {"a failure is the last one", func(outbox.Request) (int, error) { return http.StatusBadGateway, nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				l := s.ledger(nil)
				s.open(l, "a")
				s.put(l, report("a", 1, "1"))
				s.to.answers(tc.answer)
				s.later(100 * time.Hour)
				s.start(l)
				s.later(time.Minute)
				s.want(tc.reason, "a=1")
				if n := len(s.dead(l)); n != tc.dead {
					t.Errorf("%s: there are %d dead letters, want %d", tc.reason, n, tc.dead)
				}
			})
		})
	}
}
