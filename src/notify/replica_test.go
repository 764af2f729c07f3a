package notify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestRestart stops the service in the middle: what happens meanwhile is told by
// the next one, and what was told is not told again.
func TestRestart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		before    func(s *stage)
		meanwhile func(s *stage)
		want      []string
	}{
		"nothing":  {"a restart is no change", func(*stage) {}, func(*stage) {}, nil},
		"told":     {"what was told is known", func(s *stage) { s.world.put("east", "vnf-1", configMaps, "a", "2") }, func(*stage) {}, nil},
		"modified": {"what has changed is told", func(*stage) {}, func(s *stage) { s.world.put("east", "vnf-1", configMaps, "a", "3") }, []string{"vnf-1/sub: ~a=3"}},
		"deleted":  {"what has gone is told by its name", func(*stage) {}, func(s *stage) { s.world.del(configMaps, "a") }, []string{"vnf-1/sub: -a="}},
		"pending": {"what waits is delivered, and then the rest", func(s *stage) {
			s.mail.answers(func(post) (int, error) { return 0, errDown })
			s.world.put("east", "vnf-1", configMaps, "a", "2")
		}, func(s *stage) {
			s.mail.take(s.t)
			s.mail.answers(nil)
			s.world.put("east", "vnf-1", configMaps, "a", "3")
		}, []string{"vnf-1/sub: ~a=2", "vnf-1/sub: ~a=3"}},
		"unread": {"what cannot be seen is not gone", func(*stage) {}, func(s *stage) {
			s.world.change(func() { s.world.refused["ConfigMap"] = nf.E(nf.Failed, "list", "ConfigMaps", nil) })
		}, nil},
		"gone": {"an instance may go meanwhile", func(*stage) {}, func(s *stage) { s.world.instance("vnf-1", "east") }, []string{"vnf-1/sub: -a="}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				n := s.notifier(nil)
				stop := s.start(n)
				s.subscribe(n, nil)
				tc.before(s)
				synctest.Wait()
				stop()
				s.mail.take(t)
				tc.meanwhile(s)
				s.start(s.notifier(nil))
				s.later(time.Minute)
				s.wantMail(tc.reason, tc.want...)
			})
		})
	}
}

// TestDeathAtEveryWrite cuts the first process off from the store before and
// after each of its writes, and lets another go on; or the store only loses the
// response to one write. Nothing is lost, and what comes twice comes with the
// same id.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after", "lost"} {
		for at := range 24 {
			t.Run(fmt.Sprintf("%s write %d", when, at), func(t *testing.T) {
				t.Parallel()
				play(t, func(t *testing.T, s *stage) { dieAt(t, s, when, int64(at)) })
			})
		}
	}
}

func dieAt(t *testing.T, s *stage, when string, at int64) {
	written := map[string]bool{}
	s.kv = storetest.Failing{KV: s.kv, Lose: func(method, key string) error {
		if id, ok := strings.CutPrefix(key, "notifications/pending/"); ok && method == "Put" {
			written[id] = true
		}
		return nil
	}}
	var writes atomic.Int64
	var dead, armed atomic.Bool
	failAt := func(whens ...string) func(method, key string) error {
		return func(method, key string) error {
			if dead.Load() {
				return nf.E(nf.Unreachable, "use", "the store", errDown)
			}
			if !armed.Load() || !slices.Contains(whens, when) || method == "Get" || method == "List" || strings.HasPrefix(key, "notifications/replicas/") {
				return nil
			}
			if writes.Add(1) == at+1 {
				dead.Store(when != "lost")
				return nf.E(nf.Unreachable, "use", "the store", errDown)
			}
			return nil
		}
	}
	crashing := s.notifier(func(cfg *notify.Config) {
		cfg.KV = storetest.Failing{KV: s.kv, Fail: failAt("before"), Lose: failAt("after", "lost")}
	})
	stop := s.start(crashing)
	s.subscribe(s.notifier(nil), nil)
	s.later(10 * time.Second)
	armed.Store(true)
	for _, value := range []string{"2", "3", "4"} {
		s.world.put("east", "vnf-1", configMaps, "a", value)
		s.later(time.Second)
	}
	s.world.del(configMaps, "a")
	synctest.Wait()
	if when != "lost" {
		dead.Store(true)
		stop()
		s.start(s.notifier(nil))
	}
	s.later(time.Minute)
	s.world.put("east", "vnf-1", configMaps, "a", "5")
	s.later(time.Minute)
	wantStory(t, s, written)
}

// wantStory wants the notifications to tell the story of a from 1 to its return,
// in order, skipping what came together, and each with one content; and wants all
// that were written.
func wantStory(t *testing.T, s *stage, written map[string]bool) {
	t.Helper()
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	contents, last, gone := map[string]string{}, "", false
	chapters := []string{"~a=2", "~a=3", "~a=4", "-a=", "+a=5"}
	reached := 0
	for _, p := range s.mail.posts {
		id, told := p.header[outbox.DeliveryHeader], strings.TrimPrefix(short(t, p.body), "vnf-1/sub: ")
		if before, twice := contents[id]; twice {
			if before != told {
				t.Errorf("letter %s said %q, and then %q", id, before, told)
			}
			continue
		}
		contents[id], last = told, told
		gone = gone || strings.HasPrefix(told, "-a=")
		for reached < len(chapters) && !strings.HasPrefix(told, chapters[reached]) {
			reached++
		}
		if reached == len(chapters) {
			t.Fatalf("%q does not follow: %v", told, contents)
		}
	}
	if last != "+a=5" || !gone {
		t.Errorf("the letters say %v, want that it went and came back", contents)
	}
	for id := range written {
		if _, ok := contents[id]; !ok {
			t.Errorf("letter %s was written and never posted", id)
		}
	}
}

// TestReplicas lets two replicas share the regions: each is followed by one, and
// when a replica stands still the other goes on in its stead.
func TestReplicas(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var frozen atomic.Bool
		kv := storetest.Failing{KV: s.kv, Fail: func(string, string) error {
			if frozen.Load() {
				return nf.E(nf.Unreachable, "use", "the store", errDown)
			}
			return nil
		}}
		first := s.notifier(func(cfg *notify.Config) { cfg.KV = kv })
		s.start(first)
		var regions []string // so many that chance does not give them all to one replica
		for i := range 24 {
			region := fmt.Sprint("region-", i)
			regions = append(regions, region)
			s.world.instance("vnf-"+region, region, configMaps)
			s.subscribe(first, func(sub *nf.Subscription) { sub.Instance = "vnf-" + region })
		}
		second := s.notifier(nil)
		s.start(second)
		s.later(time.Minute)
		tell := func(value string) {
			t.Helper()
			for _, region := range regions {
				s.world.put(region, "vnf-"+region, configMaps, "a", value)
			}
			s.later(time.Minute)
			if posted := s.mail.take(t); len(posted) != len(regions) {
				t.Errorf("%d letters for %d subscriptions: %q", len(posted), len(regions), posted)
			}
		}
		tell("2")
		holders := s.holders(t)
		if len(holders) != 2 {
			t.Errorf("the regions are served by %d replicas, want both: %v", len(holders), holders)
		}
		frozen.Store(true)
		s.later(time.Minute)
		tell("3")
		if now := s.holders(t); len(now) != 1 {
			t.Errorf("the regions are served by %v, want the one replica that lives", now)
		}
		frozen.Store(false)
		s.later(time.Minute)
		tell("4")
		if now := s.holders(t); len(now) != 2 {
			t.Errorf("the regions are served by %v, want both replicas again", now)
		}
	})
}

// holders counts the regions of each replica that serves any.
func (s *stage) holders(t *testing.T) map[string]int {
	t.Helper()
	type shard struct {
		Replica string `json:"replica"`
	}
	all, err := store.NewTable[shard](s.kv, "notifications/shards/", "shard").List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, r := range all {
		out[r.Replica]++
	}
	return out
}

// TestLeave hands a region over at once when its replica leaves in good order.
func TestLeave(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, s *stage) {
		n := s.notifier(nil)
		stop := s.start(n)
		s.subscribe(n, nil)
		s.start(s.notifier(nil))
		s.later(time.Minute)
		stop()
		s.later(8 * time.Second) // less than a lease
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		s.wantMail("nobody waits for a lease to lapse", "vnf-1/sub: ~a=2")
	})
}

// TestSole begins at once where a dead process left off: no other can have the
// store open.
func TestSole(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var dead atomic.Bool
		first := s.notifier(func(cfg *notify.Config) {
			cfg.KV = storetest.Failing{KV: s.kv, Fail: func(string, string) error {
				if dead.Load() {
					return nf.E(nf.Unreachable, "use", "the store", errDown)
				}
				return nil
			}}
		})
		stop := s.start(first)
		s.subscribe(first, nil)
		dead.Store(true)
		stop()
		s.start(s.notifier(func(cfg *notify.Config) { cfg.Sole = true }))
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		s.wantMail("no lease is waited for", "vnf-1/sub: ~a=2")
		if left := s.holders(t); len(left) != 1 {
			t.Errorf("the region is served by %v, want one", left)
		}
	})
}

// TestChangeThroughAnother changes a subscription through a replica that does not
// serve it.
func TestChangeThroughAnother(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		s.subscribe(n, nil)
		s.mail.answers(func(post) (int, error) { return 0, errDown })
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		synctest.Wait()
		changed := nf.Subscription{Instance: "vnf-1", Name: "sub", Callback: "http://other.example/", Metadata: []byte(`{"new":true}`)}
		if _, err := s.notifier(nil).Change(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		s.mail.answers(nil)
		s.mail.take(t)
		s.later(time.Minute)
		s.mail.mu.Lock()
		defer s.mail.mu.Unlock()
		if len(s.mail.posts) != 1 || s.mail.posts[0].url != "http://other.example/" || !strings.Contains(s.mail.posts[0].body, `"metadata":{"new":true}`) {
			t.Errorf("posted %+v, want the letter that waited, to where it shall go now", s.mail.posts)
		}
	})
}

// TestShorterInterval changes the interval of a subscription while its worker
// waits for the end of the former one.
func TestShorterInterval(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		elsewhere bool
		after     time.Duration
	}{
		"here":      {"the replica that serves it knows at once", false, 0},
		"elsewhere": {"another replica tells it through the store", true, 8 * time.Second}, // half a lease and a renewal
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				n := s.notifier(nil)
				s.start(n)
				s.subscribe(n, func(sub *nf.Subscription) { sub.MinInterval = time.Hour })
				s.world.put("east", "vnf-1", configMaps, "a", "2")
				s.wantMail("the first change is told at once", "vnf-1/sub: ~a=2")
				s.world.put("east", "vnf-1", configMaps, "a", "3")
				s.wantMail("the second one after the interval")
				if tc.elsewhere {
					n = s.notifier(nil)
				}
				changed := nf.Subscription{Instance: "vnf-1", Name: "sub", Callback: "http://receiver.example/"}
				if _, err := n.Change(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
				s.later(tc.after)
				s.wantMail(tc.reason, "vnf-1/sub: ~a=3")
			})
		})
	}
}

// TestRunEnds leaves nothing running, whatever is under way.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = n.Run(ctx) }) // it always returns nil
		s.subscribe(n, nil)
		s.mail.answers(func(post) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		s.world.put("east", "vnf-1", configMaps, "a", "2")
		synctest.Wait()
		cancel()
		running.Wait() // and synctest.Test fails when anything goes on
		s.start(s.notifier(nil))
		s.mail.answers(nil)
		s.mail.take(t)
		s.later(time.Minute)
		s.wantMail("what was cut off is posted again", "vnf-1/sub: ~a=2")
	})
}
