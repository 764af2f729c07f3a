package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// registry is the regions that a pool is to follow.
type registry struct {
	mu    sync.Mutex
	ids   map[string]string // → token
	err   error
	reads int
}

func (r *registry) set(id, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[id] = token
}

func (r *registry) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}

func (r *registry) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *registry) regions(context.Context) ([]nf.Region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	var out []nf.Region
	for id, token := range r.ids {
		out = append(out, nf.Region{ID: id, Access: accessAs(id, token)})
	}
	return out, r.err
}

func (r *registry) read() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}

func accessAs(id, token string) nf.Access {
	return nf.Access{Server: "https://" + id + ".invalid", Token: nf.Secret(token)}
}

// running starts a pool, and returns what stops it and waits for it.
func running(t *testing.T, p *Pool, r *registry) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx, r.regions) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a pool that is told to stop stops without an error: %v", err)
		}
	}
}

// until passes time.
func until(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRunKeepsInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, told := stubbed(map[string]stub{"east": well, "west": well})
		r := &registry{ids: map[string]string{"east": "a", "west": "a"}}
		defer running(t, p, r)()
		opened := func() []string {
			synctest.Wait()
			var out []string
			for id := range p.States() {
				out = append(out, id)
			}
			slices.Sort(out)
			return out
		}
		diff(t, "regions are opened without being used", []string{"east", "west"}, opened())
		until(time.Second)
		if s := p.State("east"); s.Condition != nf.RegionAvailable || s.Checked.IsZero() {
			t.Errorf("a region is asked without being used: %+v", s)
		}
		old := p.clusters()["east"]
		r.set("east", "b") // another replica has received it
		r.remove("west")
		until(syncInterval)
		diff(t, "a region that is gone is dropped", []string{"east"}, opened())
		if now := p.clusters()["east"]; now == old || !old.transport.isClosed() || now.transport.isClosed() {
			t.Error("a region with another access is opened anew")
		}
		if c, err := p.Open("east", accessAs("east", "b")); err != nil || c.transport.isClosed() {
			t.Errorf("who opens it finds the new one: %v", err)
		}
		if s := p.State("west"); s.Condition != nf.RegionUnknown || s.Breaker != nf.BreakerClosed {
			t.Errorf("nothing is known of a region that is gone: %+v", s)
		}

		r.fail(errors.New("the store is away"))
		r.remove("east")
		until(10 * syncInterval)
		diff(t, "regions that cannot be read are kept", []string{"east"}, opened())
		r.fail(nil)
		r.set("broken", "\n")
		until(10 * syncInterval)
		diff(t, "regions that cannot be opened are in nobody's way", []string(nil), opened())
		diff(t, "trouble is logged once", []string{
			"failed to read the cloud regions; the known ones are kept", "cloud region cannot be opened",
		}, told.said())
	})
}

// TestRunReadsChanges reads the regions only if they have changed, or may have.
func TestRunReadsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var version atomic.Uint64
		var unknown atomic.Bool
		p, _ := stubbed(map[string]stub{"east": well, "west": well})
		p.cfg.RegionsVersion = func() (uint64, bool) { return version.Load(), !unknown.Load() }
		r := &registry{ids: map[string]string{"east": "a"}}
		defer running(t, p, r)()
		until(syncInterval)
		for _, tc := range []struct {
			reason string
			change func()
			reads  int // in ten intervals: one more after a read that has changed the pool
		}{
			{"nothing has changed since the last read", func() {}, 0},
			{"a region is registered", func() { r.set("west", "a"); version.Add(1) }, 2},
			{"a region has another access", func() { r.set("east", "b"); version.Add(1) }, 2},
			{"a cluster of the pool is gone", func() { p.Forget("east") }, 2},
			{"a late request opens the former access", func() { _, _ = p.Open("east", accessAs("east", "a")) }, 2},
			{"a region changes, and not its access", func() { version.Add(1) }, 1},
			{"the version is not known", func() { unknown.Store(true) }, 10},
			{"it is known again, and may have changed before", func() { unknown.Store(false) }, 1},
			{"the regions cannot be read", func() { r.fail(errors.New("the store is away")); version.Add(1) }, 10},
			{"they can", func() { r.fail(nil) }, 1},
			{"a region cannot be opened, for now", func() { r.set("broken", "\n"); version.Add(1) }, 10},
		} {
			tc.change()
			before := r.read()
			until(10 * syncInterval)
			if n := r.read() - before; n != tc.reads {
				t.Errorf("%s: the regions were read %d times, want %d", tc.reason, n, tc.reads)
			}
		}
		is := p.clusters()["east"]
		if c, err := p.Open("east", accessAs("east", "b")); err != nil || c != is {
			t.Errorf("the pool has not opened the access that was registered last: %v", err)
		}
	})
}

// TestRunSparesNewer changes a region while the list of regions is being read.
func TestRunSparesNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := stubbed(map[string]stub{"east": well, "new": well})
		opening(t, p, "east")
		first, list := true, make(chan []nf.Region)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- p.Run(ctx, func(ctx context.Context) ([]nf.Region, error) {
				if first {
					first = false
					return <-list, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}()
		until(time.Second)
		newer, err := p.Open("east", accessAs("east", "newer"))
		if err != nil {
			t.Fatal(err)
		}
		made := opening(t, p, "new")
		list <- []nf.Region{{ID: "east", Access: accessAs("east", "older")}}
		synctest.Wait()
		if newer.transport.isClosed() || made.transport.isClosed() {
			t.Errorf("what was opened since the regions were read stays: retired %v, %v", newer.transport.isClosed(), made.transport.isClosed())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRunAsksRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []time.Duration
		start := time.Now()
		regions := map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if req.URL.Path != "/readyz" {
				t.Errorf("it is asked for %s", req.URL.Path)
			}
			asked = append(asked, time.Since(start))
			return answer(200, "ok", "Content-Type", "text/plain")
		}}
		r := &registry{ids: map[string]string{"east": "t"}}
		for i := range maxProbes - 1 { // all but one of the seats are taken by the dead
			id := fmt.Sprintf("dead-%02d", i)
			regions[id], r.ids[id] = hole, "t"
		}
		p, told := stubbed(regions)
		stop := running(t, p, r)
		until(10 * time.Minute)
		stop()
		for i := len(asked) - 1; i > 0; i-- {
			asked[i] -= asked[i-1]
		}
		if n := len(asked); n < 19 || n > 23 {
			t.Errorf("it was asked %d times in ten minutes, want about twenty", n)
		}
		for i, d := range asked {
			if i > 1 && d < probeInterval*9/10 || i > 0 && d > probeInterval*11/10+2*dueInterval {
				t.Errorf("it was asked after %v, want about %v whatever other regions do", d, probeInterval)
			}
		}
		if s := p.State("dead-07"); s.Condition != nf.RegionUnreachable || s.Reason != "timeout" || s.Breaker == nf.BreakerClosed || s.Since.After(start.Add(readyTimeout+dueInterval)) {
			t.Errorf("a region that says nothing is unreachable after one question: %+v", s)
		}
		dead := 0
		for _, c := range told.calls {
			if c.Region == "dead-07" && c.Reason == "timeout" {
				dead++
			}
		}
		if dead > 20 {
			t.Errorf("a dead region was asked %d times in ten minutes; its breaker should make that rarer", dead)
		}
	})
}

func TestRunSpreadsChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 300
		var mu sync.Mutex
		asked := map[time.Duration]int{} // in each second
		start := time.Now()
		regions, r := map[string]stub{}, &registry{ids: map[string]string{}}
		for i := range count {
			id := fmt.Sprintf("region-%03d", i)
			r.ids[id] = "t"
			regions[id] = func(*http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[time.Since(start).Truncate(time.Second)]++
				return answer(200, "ok", "Content-Type", "text/plain")
			}
		}
		p, _ := stubbed(regions)
		defer running(t, p, r)()
		until(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		all := 0
		for second, n := range asked {
			if all += n; second > time.Second && n > count/7 {
				t.Errorf("%d of %d regions that were opened at once were checked in second %v", n, count, second)
			}
		}
		if all < 9*count || all > 12*count {
			t.Errorf("%d regions were checked %d times in five minutes, want about ten times each", count, all)
		}
	})
}

func TestRunFindsRegionBack(t *testing.T) {
	cases := map[string]struct {
		reason  string
		failure stub
		why     string
		within  time.Duration
	}{
		"refused":    {"no process listens on the port", refusing, "tcp", 10 * time.Second},
		"silent":     {"a black hole", hole, "timeout", readyTimeout + time.Second},
		"not ready":  {"the API server says so", func(*http.Request) (*http.Response, error) { return answer(500, "etcd failed") }, "unavailable", 10 * time.Second},
		"a stranger": {"our credentials are not accepted", func(*http.Request) (*http.Response, error) { return answer(401, "") }, "unauthorized", time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now := stub(well)
				become := func(s stub) {
					mu.Lock()
					defer mu.Unlock()
					now = s
				}
				p, told := stubbed(map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
					mu.Lock()
					s := now
					mu.Unlock()
					return s(req)
				}})
				defer running(t, p, &registry{ids: map[string]string{"east": "t"}})()
				until(time.Second)
				become(tc.failure)
				until(probeInterval*11/10 + 2*dueInterval + tc.within)
				if s := p.State("east"); s.Condition != nf.RegionUnreachable || s.Reason != tc.why || s.Message == "" {
					t.Errorf("%s: the state is %+v", tc.reason, s)
				}
				until(10 * time.Minute)
				become(well)
				until(breaker.LongestPause + readyTimeout + 2*dueInterval) // the last probe may still wait
				if s := p.State("east"); s.Condition != nf.RegionAvailable || s.Breaker != nf.BreakerClosed {
					t.Errorf("%s: it is back, and nobody uses it: %+v", tc.reason, s)
				}
				diff(t, tc.reason, []string{"cloud region is unreachable", "cloud region reachable again"}, told.said())
			})
		})
	}
}

// TestReplacedRegionIsBack repairs a region with another access.
func TestReplacedRegionIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, told := stubbed(map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") != "Bearer new" {
				return answer(401, "")
			}
			return well(req)
		}})
		_ = opening(t, p, "east").tryOnce(t.Context())
		c, err := p.Open("east", accessAs("east", "new"))
		if err != nil {
			t.Fatal(err)
		}
		if s := p.State("east"); s.Condition != nf.RegionUnknown {
			t.Errorf("nothing is known of the region under its new access: %+v", s)
		}
		if err := c.tryOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		diff(t, "what was logged of the region ends", []string{"cloud region is unreachable", "cloud region reachable again"}, told.said())
	})
}
