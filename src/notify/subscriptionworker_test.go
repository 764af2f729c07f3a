package notify_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestNotifications(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		act    func(s *stage)
		want   []string
	}{
		"nothing":       {"what is there at first is a baseline", func(*stage) {}, nil},
		"created":       {"what comes is told", func(s *stage) { s.world.put("east", "vnf-1", configMaps, "b", "1") }, []string{"vnf-1/sub: +b=1"}},
		"modified":      {"what changes is told", func(s *stage) { s.world.put("east", "vnf-1", configMaps, "a", "2") }, []string{"vnf-1/sub: ~a=2"}},
		"deleted":       {"what goes is told, as it was last", func(s *stage) { s.world.del(configMaps, "a") }, []string{"vnf-1/sub: -a=1"}},
		"written":       {"that somebody has written it is no change", func(s *stage) { s.world.put("east", "vnf-1", configMaps, "a", "1") }, nil},
		"others":        {"what belongs to another instance is not told", func(s *stage) { s.world.put("east", "vnf-2", configMaps, "b", "1") }, nil},
		"other kinds":   {"kinds that nobody asked for are not told", func(s *stage) { s.world.put("east", "vnf-1", deployments, "b", "1") }, nil},
		"other regions": {"an object of another region is another one", func(s *stage) { s.world.put("west", "vnf-1", configMaps, "b", "1") }, nil},
		"new kind": {"an upgrade may bring another kind", func(s *stage) {
			s.world.put("east", "vnf-1", deployments, "web", "1")
			s.world.instance("vnf-1", "east", configMaps, deployments)
			s.later(time.Minute)
		}, []string{"vnf-1/sub: +web=1"}},
		"former kind": {"an upgrade may be the end of a kind", func(s *stage) {
			s.world.instance("vnf-1", "east", deployments)
			s.later(time.Minute)
			s.world.del(configMaps, "a")
		}, []string{"vnf-1/sub: -a=1"}},
		"gone": {"with the instance all is gone", func(s *stage) {
			s.world.instance("vnf-1", "east")
			s.later(time.Minute)
		}, []string{"vnf-1/sub: -a=1"}},
		"moved": {"an instance may go to another region", func(s *stage) {
			s.world.put("west", "vnf-1", configMaps, "a", "1")
			s.world.put("west", "vnf-1", configMaps, "b", "1")
			s.world.instance("vnf-1", "west", configMaps)
			s.later(time.Minute)
		}, []string{"vnf-1/sub: +b=1"}},
		"replaced": {"an instance may be made anew under another owner", func(s *stage) {
			s.world.put("east", "vnf-9", configMaps, "a", "7")
			s.world.change(func() {
				s.world.targets["vnf-1"] = notify.Target{Region: "east", Owner: "vnf-9", Kinds: []nf.Ref{configMaps}}
			})
			s.later(time.Minute)
			s.world.put("east", "vnf-1", configMaps, "a", "2") // no more its own
		}, []string{"vnf-1/sub: ~a=7"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(_ *testing.T, s *stage) {
				n := s.notifier(nil)
				s.start(n)
				s.subscribe(n, nil)
				tc.act(s)
				s.wantMail(tc.reason, tc.want...)
				s.later(time.Hour)
				s.wantMail("everything is told once")
			})
		})
	}
}

func TestCoalescing(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		s.subscribe(n, func(sub *nf.Subscription) { sub.MinInterval = 30 * time.Second })
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		s.wantMail("the first change is told at once", "vnf-1/sub: ~a=2")
		for _, value := range []string{"3", "4"} {
			s.world.put("east", "vnf-1", configMaps, "a", value)
			s.world.put("east", "vnf-1", configMaps, "b"+value, value)
			s.later(14 * time.Second)
		}
		s.wantMail("then nothing is, for the interval")
		s.later(3 * time.Second)
		s.wantMail("and then all that has happened", "vnf-1/sub: +b3=3 +b4=4 ~a=4")
		s.world.put("east", "vnf-1", configMaps, "c", "1")
		s.world.del(configMaps, "c")
		s.later(time.Minute)
		s.wantMail("but not what is as it was")
	})
}

// TestSubscribersAreTheirOwn lets one subscriber come later than the other, and
// one be slow.
func TestSubscribersAreTheirOwn(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		s.subscribe(n, nil)
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		s.wantMail("the first hears of it", "vnf-1/sub: ~a=2")
		s.mail.answers(func(p post) (int, error) {
			if strings.Contains(p.body, `"late"`) {
				return 503, nil
			}
			return 200, nil
		})
		s.subscribe(n, func(sub *nf.Subscription) { sub.Name = "late" })
		s.world.put("east", "vnf-1", configMaps, "a", "3")
		synctest.Wait()
		s.world.put("east", "vnf-1", configMaps, "a", "4")
		synctest.Wait()
		var first []string
		for _, mail := range s.mail.take(s.t) {
			if strings.HasPrefix(mail, "vnf-1/sub:") {
				first = append(first, mail)
			}
		}
		if d := cmp.Diff([]string{"vnf-1/sub: ~a=3", "vnf-1/sub: ~a=4"}, first); d != "" {
			s.t.Errorf("who does not answer holds nobody else up: -want +got:\n%s", d)
		}
	})
}

// TestRetry has a receiver that is away for a while: what happens meanwhile comes
// in order, and once.
func TestRetry(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		answer func(post) (int, error)
		status int
	}{
		"refused":  {"a transport error is a 500 to ONAP", func(post) (int, error) { return 0, errDown }, 500},
		"error":    {"an error's status is told", func(post) (int, error) { return 503, nil }, 503},
		"redirect": {"a redirect that is not followed is no success", func(post) (int, error) { return 302, nil }, 302},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				n := s.notifier(nil)
				s.start(n)
				s.subscribe(n, nil)
				s.mail.answers(tc.answer)
				s.world.put("east", "vnf-1", configMaps, "a", "2")
				s.later(10 * time.Minute)
				s.world.put("east", "vnf-1", configMaps, "a", "3")
				s.world.put("east", "vnf-1", configMaps, "b", "1")
				s.later(10 * time.Minute)
				posted := s.mail.take(t)
				if len(posted) < 8 || len(posted) > 14 {
					t.Errorf("%d posts in 20 minutes, want about 11: ever fewer", len(posted))
				}
				for _, p := range posted {
					if p != "vnf-1/sub: ~a=2" {
						t.Errorf("posted %q, want the first letter until it arrives", p)
					}
				}
				if sub := s.subscription(n); sub.LastStatus != tc.status {
					t.Errorf("%s: the last status is %d, want %d", tc.reason, sub.LastStatus, tc.status)
				}
				s.mail.answers(func(post) (int, error) { return 200, nil })
				s.later(time.Hour)
				s.wantMail("then both come, in their order", "vnf-1/sub: ~a=2", "vnf-1/sub: +b=1 ~a=3")
				if sub := s.subscription(n); sub.LastStatus != http.StatusOK {
					t.Errorf("the last status is %d, want 200", sub.LastStatus)
				}
			})
		})
	}
}

func (s *stage) subscription(n *notify.Notifier) nf.Subscription {
	s.t.Helper()
	sub, err := n.Subscription(s.t.Context(), "vnf-1", "sub")
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// slowly makes a notifier look rarely, so that days can be played.
func slowly(cfg *notify.Config) {
	cfg.Keep, cfg.Lease, cfg.Survey = 100*time.Hour, 10*time.Minute, 10*time.Minute
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var mu sync.Mutex
		seen := map[outbox.Outcome]int{}
		n := s.notifier(func(cfg *notify.Config) {
			slowly(cfg)
			cfg.Observe = func(o outbox.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				seen[o]++
			}
		})
		s.start(n)
		s.subscribe(n, nil)
		s.mail.answers(func(post) (int, error) { return 0, errDown })
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		s.later(25 * time.Hour)
		if posted := s.mail.take(t); len(posted) != 20 {
			t.Errorf("it was posted %d times, want 20", len(posted))
		}
		dead := s.dead(n)
		if len(dead) != 1 || dead[0].LastStatus != 500 || dead[0].LastError != errDown.Error() || dead[0].Attempts != 20 || dead[0].Died.IsZero() {
			t.Fatalf("the dead letters are %+v, want one after 20 attempts", dead)
		}
		s.mail.answers(nil)
		s.world.put("east", "vnf-1", configMaps, "a", "3")
		s.wantMail("what happens later is told as ever", "vnf-1/sub: ~a=3")
		if _, err := n.Resend(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		s.wantMail("a dead letter can be sent again", "vnf-1/sub: ~a=2")
		if dead := s.dead(n); len(dead) > 0 {
			t.Errorf("it is still dead: %+v", dead)
		}
		if _, err := n.Resend(t.Context(), dead[0].ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("it can be sent twice: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[outbox.Outcome]int{outbox.Deferred: 19, outbox.GivenUp: 1, outbox.Delivered: 2}, seen); diff != "" {
			t.Errorf("each post is told (-want +got):\n%s", diff)
		}
	})
}

func (s *stage) dead(n *notify.Notifier) []notify.Notification {
	s.t.Helper()
	dead, err := n.DeadLetters(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return dead
}

// TestDeadLettersAreKept has an instance go while nobody answers: what could not
// be told stays for a person to look at, and not for ever.
func TestDeadLettersAreKept(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(slowly)
		s.start(n)
		s.subscribe(n, nil)
		s.mail.answers(func(post) (int, error) { return 0, errDown })
		s.world.instance("vnf-1", "east")
		s.later(time.Hour)
		if _, err := n.Subscription(t.Context(), "vnf-1", "sub"); nf.KindOf(err) != nf.NotFound {
			t.Errorf("the subscription is seen after its instance: %v", err)
		}
		s.later(25 * time.Hour)
		s.mail.take(t)
		dead := s.dead(n)
		if len(dead) != 1 || dead[0].Instance != "vnf-1" {
			t.Fatalf("the dead letters are %+v, want that of the deletion", dead)
		}
		s.later(time.Hour)
		s.mail.answers(nil)
		if _, err := n.Resend(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		s.wantMail("it can be sent though the instance is gone", "vnf-1/sub: -a=1")
		s.later(2 * time.Hour)
		s.wantEmpty()
	})
}

func TestDeadLettersGo(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(slowly)
		s.start(n)
		s.subscribe(n, nil)
		s.mail.answers(func(post) (int, error) { return 0, errDown })
		s.world.instance("vnf-1", "east")
		s.later(130 * time.Hour)
		if dead := s.dead(n); len(dead) > 0 {
			t.Errorf("they are kept too long: %+v", dead)
		}
		s.later(2 * time.Hour)
		s.wantEmpty()
	})
}

// wantEmpty wants nothing in the store but the lease.
func (s *stage) wantEmpty() {
	s.t.Helper()
	for e, err := range s.kv.List(s.t.Context(), "", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if !strings.HasPrefix(e.Key, "notifications/replicas/") {
			s.t.Errorf("%s is left: %s", e.Key, e.Value)
		}
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		end    func(s *stage, n *notify.Notifier)
		want   []string
	}{
		"unsubscribed": {"who does not want to hear is not told", func(s *stage, n *notify.Notifier) {
			if err := n.Unsubscribe(s.t.Context(), "vnf-1", "sub"); err != nil {
				s.t.Error(err)
			}
			s.world.put("east", "vnf-1", configMaps, "a", "3")
		}, nil},
		"gone": {"who hears of the end hears no more", func(s *stage, _ *notify.Notifier) { s.world.instance("vnf-1", "east") }, []string{"vnf-1/sub: -a=2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				n := s.notifier(nil)
				s.start(n)
				s.subscribe(n, nil)
				s.world.put("east", "vnf-1", configMaps, "a", "2")
				s.wantMail("it is told", "vnf-1/sub: ~a=2")
				tc.end(s, n)
				s.later(2 * time.Hour)
				s.wantMail(tc.reason, tc.want...)
				if _, err := n.Subscription(t.Context(), "vnf-1", "sub"); nf.KindOf(err) != nf.NotFound {
					t.Errorf("the subscription is still there: %v", err)
				}
				s.wantEmpty()
			})
		})
	}
}

// TestStaleRecordsGo removes a subscription while the store loses the deletions
// that follow: the records are deleted later.
func TestStaleRecordsGo(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"notifications/pending/", "notifications/dead/", "baselines/"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				n := s.notifier(slowly)
				s.start(n)
				s.subscribe(n, nil)
				s.mail.answers(func(post) (int, error) { return 0, errDown })
				s.world.put("east", "vnf-1", configMaps, "a", "2")
				s.later(25 * time.Hour)
				s.world.put("east", "vnf-1", configMaps, "a", "3")
				s.later(time.Minute) // now one is dead, and one is pending
				cut := s.notifier(func(cfg *notify.Config) {
					cfg.KV = storetest.Failing{KV: s.kv, Fail: func(method, key string) error {
						if method == "Delete" && strings.HasPrefix(key, lost) {
							return nf.E(nf.Unreachable, "use", "the store", errDown)
						}
						return nil
					}}
				})
				if err := cut.Unsubscribe(t.Context(), "vnf-1", "sub"); nf.KindOf(err) != nf.Unreachable {
					t.Fatalf("got %v, want that the store does not answer", err)
				}
				s.later(2 * time.Hour)
				s.wantEmpty()
			})
		})
	}
}
