package outbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := outbox.New(outbox.Config{}, &ledger{}); err == nil {
		t.Error("an outbox without a store was created")
	}
}

// TestReport has the source report each value that it sees.
func TestReport(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		l := s.ledger(nil)
		s.start(l)
		s.set(l, "a", "1")
		s.want("a new queue is served at once", "a=1")
		s.to.answers(down)
		s.set(l, "a", "2")
		s.set(l, "a", "3")
		s.set(l, "a", "4")
		s.want("a request is retried later", "a=2")
		s.to.answers(nil)
		s.later(time.Minute)
		s.want("the source is asked again once nothing is pending", "a=2", "a=4")
	})
}

// TestStart finds requests that were put before the start, and through another
// replica.
func TestStart(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		l := s.ledger(nil)
		s.open(l, "a")
		s.put(l, report("a", 1, "1"))
		s.want("nothing is sent before Run")
		s.start(l)
		s.want("then it is sent at once", "a=1")
		s.put(s.ledger(nil), report("a", 2, "2"))
		s.later(time.Minute)
		s.want("a request from elsewhere is found later", "a=2")
	})
}

// TestOrder has one queue stuck, whose ids begin like those of another one.
func TestOrder(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.ledger(patiently)
		s.start(l)
		s.open(l, "a", "a-0000000001", "b")
		s.to.answers(func(r outbox.Request) (int, error) {
			if r.Key == "b" {
				return http.StatusOK, nil
			}
			return http.StatusBadGateway, nil // a target that responds
		})
		s.put(l, report("a-0000000001", 7, "x"))
		for number := range 3 {
			s.put(l, report("a", number+1, fmt.Sprint(number+1)))
		}
		s.later(time.Minute)
		sent := s.to.take()
		slices.Sort(sent)
		if d := cmp.Diff([]string{"a-0000000001=x", "a=1"}, slices.Compact(sent)); d != "" {
			t.Errorf("the first request is sent until it is delivered: -want +got:\n%s", d)
		}
		s.put(l, report("b", 5, "y"))
		s.later(0)
		if sent := s.to.take(); !slices.Contains(sent, "b=y") {
			t.Errorf("sent %q: a queue that is stuck holds up another one", sent)
		}
		if _, err := l.box.Put(t.Context(), report("a", 2, "another")); nf.KindOf(err) != nf.Exists {
			t.Errorf("a pending request was replaced: %v", err)
		}
		s.to.answers(nil)
		s.later(time.Hour)
		sent = s.to.take()
		slices.SortStableFunc(sent, func(a, b string) int { return strings.Compare(queue(a), queue(b)) })
		if d := cmp.Diff([]string{"a=1", "a=2", "a=3", "a-0000000001=x"}, sent); d != "" {
			t.Errorf("the requests of a queue are sent in order, and once: -want +got:\n%s", d)
		}
	})
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		status    int
		success   []int
		delivered bool
	}{
		"OK":       {"2xx is a success", http.StatusOK, nil, true},
		"299":      {"all of it", 299, nil, true},
		"Redirect": {"a redirect that was not followed is none", http.StatusFound, nil, false},
		"Missing":  {"nor is an object that is missing", http.StatusNotFound, nil, false},
		"Gone":     {"unless the request says so", http.StatusNotFound, []int{http.StatusNotFound}, true},
		"Other":    {"which adds to 2xx", http.StatusNoContent, []int{http.StatusNotFound}, true},
		"Error":    {"and to nothing else", http.StatusBadGateway, []int{http.StatusNotFound}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				var outcomes []outbox.Outcome
				l := s.ledger(func(cfg *outbox.Config) {
					cfg.Observe = func(o outbox.Outcome) { outcomes = append(outcomes, o) }
				})
				stop := s.start(l)
				s.open(l, "a")
				s.to.answers(func(outbox.Request) (int, error) { return tc.status, nil })
				r := report("a", 1, "x")
				r.Method, r.Policy.Success = http.MethodDelete, tc.success
				s.put(l, r)
				s.later(0)
				stop()
				want := outbox.Deferred
				if tc.delivered {
					want = outbox.Delivered
				}
				if d := cmp.Diff([]outbox.Outcome{want}, outcomes); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestContent looks at a request as the sender gets it.
func TestContent(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.ledger(nil)
		s.start(l)
		s.open(l, "a")
		r := report("a", 1, "\x00<body>")
		r.Header = map[string]string{"Authorization": "Basic eA==", "User-Agent": "reporter"}
		s.put(l, r)
		r.Number, r.Secret = 2, nf.Secret("key")
		s.put(l, r)
		s.later(0)
		if len(s.to.sent) != 2 {
			t.Fatalf("%d requests were sent, want 2", len(s.to.sent))
		}
		plain, signed := s.to.sent[0], s.to.sent[1]
		want := map[string]string{"Authorization": "Basic eA==", "User-Agent": "reporter", outbox.DeliveryHeader: "a-0000000001"}
		if d := cmp.Diff(want, plain.Header); d != "" {
			t.Errorf("the source's headers come first: -want +got:\n%s", d)
		}
		if plain.Method != http.MethodPut || plain.URL != r.URL || string(plain.Body) != string(r.Body) {
			t.Errorf("sent %s %s %q", plain.Method, plain.URL, plain.Body)
		}
		stamp := signed.Header[outbox.TimestampHeader]
		if got := signed.Header[outbox.SignatureHeader]; stamp == "" || got != outbox.Sign(r.Secret, stamp, r.Body) {
			t.Errorf("the signature is %q at %q", got, stamp)
		}
	})
}

// patiently makes an outbox look rarely, so that days can be played.
func patiently(cfg *outbox.Config) {
	cfg.Keep, cfg.Lease, cfg.Survey = 100*time.Hour, time.Hour, time.Hour
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.ledger(patiently)
		s.start(l)
		s.open(l, "a", "a-1")
		s.to.answers(down)
		s.put(l, report("a", 1, "1"))
		s.later(25 * time.Hour)
		if sent := s.to.take(); len(sent) != 20 {
			t.Errorf("%d attempts, want 20", len(sent))
		}
		dead, err := l.box.DeadLetters(t.Context())
		if err != nil || len(dead) != 1 || dead[0].Attempts != 20 || dead[0].LastStatus != 500 || dead[0].LastError != errDown.Error() || dead[0].Died.IsZero() {
			t.Fatalf("the dead letters are %+v, %v", dead, err)
		}
		for key, want := range map[string]bool{"a": true, "a-1": false} {
			if got, err := l.box.HasDeadLetters(t.Context(), key); got != want || err != nil {
				t.Errorf("%s has dead letters: %t, %v", key, got, err)
			}
		}
		s.put(l, report("a", 2, "2"))
		s.put(l, report("a", 3, "3"))
		s.later(time.Second / 2)
		s.want("the next request follows", "a=2")
		if _, err := l.box.Resend(t.Context(), dead[0]); err != nil {
			t.Fatal(err)
		}
		s.to.answers(nil)
		s.later(time.Hour)
		s.want("it is sent first again", "a=1", "a=2", "a=3")
		if _, err := l.box.DeadLetter(t.Context(), dead[0].ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("it is still dead: %v", err)
		}
		if err := l.box.Discard(t.Context(), dead[0].ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("it can be discarded: %v", err)
		}
	})
}

// TestPolicy gives requests up by their own rules.
func TestPolicy(t *testing.T) {
	t.Parallel()
	gone := func(outbox.Request) (int, error) { return http.StatusGone, nil }
	for name, tc := range map[string]struct {
		reason string
		policy outbox.Policy
		answer func(outbox.Request) (int, error)
		after  time.Duration // pending for the first 60 % of it, then dead
		sent   int
	}{
		"Attempts": {"fewer attempts", outbox.Policy{Attempts: 3, First: time.Minute}, down, 225 * time.Second, 3},
		"Once":     {"no second attempt", outbox.Policy{Attempts: 1}, down, 0, 1},
		"Within":   {"no attempt later than that", outbox.Policy{First: time.Minute, Longest: time.Minute, Within: 10*time.Minute + time.Second}, down, 12*time.Minute + 30*time.Second, 0},
		"Final":    {"a status that will not change", outbox.Policy{Final: []int{http.StatusGone}}, gone, 0, 1},
		"Error":    {"a transport error is no final status", outbox.Policy{Final: []int{http.StatusInternalServerError}, Attempts: 2, First: time.Minute}, down, 75 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				l := s.ledger(patiently)
				s.start(l)
				s.open(l, "a")
				s.to.answers(tc.answer)
				r := report("a", 1, "x")
				r.Policy = tc.policy
				for range 2 { // the second time it was resent
					if dead, err := l.box.DeadLetter(t.Context(), "a-0000000001"); err == nil {
						_, err = l.box.Resend(t.Context(), dead)
						if err != nil {
							t.Fatal(err)
						}
					} else {
						s.put(l, r)
					}
					s.later(tc.after * 6 / 10)
					if dead := s.dead(l); tc.after > 0 && len(dead) > 0 {
						t.Errorf("%s: it was given up before %s", tc.reason, tc.after*6/10)
					}
					s.later(tc.after * 4 / 10)
					if dead := s.dead(l); len(dead) != 1 {
						t.Errorf("%s: it is not dead after %s", tc.reason, tc.after)
					}
					if sent := s.to.take(); len(sent) != tc.sent && tc.sent > 0 {
						t.Errorf("%s: it was sent %d times, want %d", tc.reason, len(sent), tc.sent)
					}
				}
			})
		})
	}
	play(t, func(t *testing.T, s *stage) {
		r := report("a", 1, "x")
		r.Policy.Attempts = -1
		if _, err := s.ledger(nil).box.Put(t.Context(), r); nf.KindOf(err) != nf.Invalid {
			t.Errorf("an invalid policy: got %v", err)
		}
	})
}

func TestOldestDeadLettersGo(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.ledger(func(cfg *outbox.Config) {
			cfg.Keep, cfg.Lease, cfg.Survey = 10000*time.Hour, 1000*time.Hour, 1000*time.Hour
		})
		s.start(l)
		s.open(l, "a")
		s.to.answers(down)
		for number := 1; number <= 102; number++ {
			s.put(l, report("a", number, fmt.Sprint(number)))
		}
		s.later(102 * 25 * time.Hour)
		dead := s.dead(l)
		if len(dead) != 100 || dead[0] != "a=3" || dead[99] != "a=102" {
			t.Errorf("%d dead letters are kept, from %q: want the last 100", len(dead), dead[:1])
		}
	})
}

// TestStaleRequestsGo removes queues, and lets dead letters expire.
func TestStaleRequestsGo(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		act    func(s *stage, l *ledger)
		want   []string
	}{
		"Kept":    {"a dead letter is kept for a while", func(*stage, *ledger) {}, []string{"a=1", "a-1=1"}},
		"Expired": {"and not for ever", func(s *stage, _ *ledger) { s.later(100 * time.Hour) }, []string{}},
		"Removed": {"it goes with its queue", func(s *stage, l *ledger) {
			if err := l.accounts.Delete(s.t.Context(), "a"); err != nil {
				s.t.Fatal(err)
			}
		}, []string{"a-1=1"}},
		"Dropped": {"also by request", func(s *stage, l *ledger) {
			if err := l.box.Drop(s.t.Context(), "a"); err != nil {
				s.t.Fatal(err)
			}
		}, []string{"a-1=1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				l := s.ledger(patiently)
				s.start(l)
				s.open(l, "a", "a-1")
				s.to.answers(down)
				s.put(l, report("a", 1, "1"))
				s.put(l, report("a-1", 1, "1"))
				s.later(25 * time.Hour)
				tc.act(s, l)
				s.later(2 * time.Hour)
				if d := cmp.Diff(tc.want, s.dead(l)); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestShards has a second replica join, and the first one stop.
func TestShards(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var byFirst, bySecond atomic.Int64
		count := func(n *atomic.Int64) func(*outbox.Config) {
			return func(cfg *outbox.Config) { cfg.Observe = func(outbox.Outcome) { n.Add(1) } }
		}
		l := s.ledger(count(&byFirst))
		stop := s.start(l)
		names := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
		s.open(l, names...)
		s.start(s.ledger(count(&bySecond)))
		s.later(time.Minute)
		tell := func(value string) {
			t.Helper()
			want := []string{}
			for _, name := range names {
				s.set(l, name, value)
				want = append(want, name+"="+value)
			}
			s.later(time.Minute)
			sent := s.to.take()
			slices.Sort(sent)
			if d := cmp.Diff(want, sent); d != "" {
				t.Errorf("each is reported once: -want +got:\n%s", d)
			}
		}
		tell("1")
		if byFirst.Load() == 0 || bySecond.Load() == 0 {
			t.Errorf("the replicas have sent %d and %d requests, want both to send", byFirst.Load(), bySecond.Load())
		}
		stop()
		tell("2")
	})
}
