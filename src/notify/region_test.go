package notify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRegionAway has a region that is away at first, and again later: what
// happened meanwhile is told when it is back, and that it was away is not.
func TestRegionAway(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		refused error
	}{
		"unreachable": {"a region may be away", nf.E(nf.Unreachable, "follow", "objects", nil)},
		"unsupported": {"a kind may not be there yet", nf.E(nf.Unsupported, "follow", "objects", nil)},
		"forbidden":   {"a kind may be hidden", nf.E(nf.Failed, "follow", "objects", nil)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(_ *testing.T, s *stage) {
				n := s.notifier(nil)
				s.start(n)
				s.world.instance("vnf-1", "east", configMaps, deployments)
				s.world.put("east", "vnf-1", deployments, "web", "1")
				refuse := func(err error) { s.world.change(func() { s.world.refused["Deployment"] = err }) }
				refuse(tc.refused)
				s.subscribe(n, nil)
				s.later(time.Minute)
				refuse(nil)
				s.later(time.Minute)
				want := []string{"vnf-1/sub: +web=1"}
				if nf.KindOf(tc.refused) == nf.Unreachable {
					want = nil // it was there before anybody could say what is there
				}
				s.wantMail(tc.reason, want...)
				if nf.KindOf(tc.refused) == nf.Unsupported {
					return // then they are gone indeed
				}
				refuse(tc.refused)
				s.later(time.Minute)
				s.wantMail("what cannot be seen is not gone")
				s.world.put("east", "vnf-1", deployments, "web", "2")
				s.world.put("east", "vnf-1", deployments, "new", "1")
				refuse(nil)
				s.later(time.Minute)
				s.wantMail("what happened meanwhile is told", "vnf-1/sub: +new=1 ~web=2")
				refuse(tc.refused)
				s.later(time.Minute)
				s.world.del(deployments, "new")
				refuse(nil)
				s.later(time.Minute)
				s.wantMail("also what went meanwhile", "vnf-1/sub: -new=1")
			})
		})
	}
}

// TestOneWatch has many instances and subscriptions of one region share what is
// followed.
func TestOneWatch(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		for _, instance := range []string{"vnf-2", "vnf-3"} {
			s.world.instance(instance, "east", configMaps, deployments)
			for _, name := range []string{"x", "y"} {
				s.subscribe(n, func(sub *nf.Subscription) { sub.Instance, sub.Name = instance, name })
			}
		}
		s.later(time.Hour)
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		if len(s.world.asked) != 2 {
			t.Errorf("followed %q, want each kind once", s.world.asked)
		}
	})
}

// TestWatchEnds has the only subscription that needs a kind end: the kind is
// followed anew for the next one.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		s.subscribe(n, nil)
		s.world.instance("vnf-2", "east", deployments)
		for range 2 {
			s.subscribe(n, func(sub *nf.Subscription) { sub.Instance = "vnf-2" })
			s.later(time.Minute)
			if err := n.Unsubscribe(t.Context(), "vnf-2", "sub"); err != nil {
				t.Fatal(err)
			}
			s.later(time.Minute)
		}
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		if d := cmp.Diff([]string{"east ConfigMap", "east Deployment", "east Deployment"}, s.world.asked); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// TestManyChanges has more change at once than a letter holds.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		n := s.notifier(nil)
		s.start(n)
		s.subscribe(n, nil)
		big := strings.Repeat("<", 50<<10) // six bytes each, in the store
		s.world.change(func() {})
		for _, name := range []string{"b", "c", "d", "e"} {
			s.world.put("east", "vnf-1", configMaps, name, big)
		}
		s.world.put("east", "vnf-1", configMaps, "f", strings.Repeat("x", 600<<10))
		s.later(time.Hour)
		told := map[string]bool{}
		for _, mail := range s.mail.take(t) {
			for _, word := range strings.Fields(mail)[1:] {
				name, _, _ := strings.Cut(word, "=")
				if told[name] {
					t.Errorf("%s is told twice", name)
				}
				told[name] = true
			}
		}
		if d := cmp.Diff(map[string]bool{"+b": true, "+c": true, "+d": true, "+e": true, "+f": true}, told); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}
