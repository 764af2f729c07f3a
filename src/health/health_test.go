package health_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestInstanceHealth(t *testing.T) {
	web, db, job := item("Deployment", "web"), item("StatefulSet", "db"), item("Job", "once")
	job.Passing = true
	hook := item("Pod", "test")
	hook.Hook = true
	in := instance("vnf-1", "east", web, db, job, hook)
	well := func(w *world) {
		w.marks["east/Deployment"] = []health.Mark{mark("vnf-1", web, nf.Current), mark("vnf-2", web, nf.StatusFailed)}
		w.marks["east/StatefulSet"] = []health.Mark{mark("vnf-1", db, nf.Current)}
	}
	cases := map[string]struct {
		reason string
		before func(*world)
		then   func(*world)
		want   nf.HealthState
		says   string
	}{
		"healthy":         {reason: "all is there; a Job that goes by itself and what hooks made need not be", want: nf.Healthy},
		"crashed later":   {reason: "a pod crashes", then: func(w *world) { w.tell("east/Deployment", mark("vnf-1", web, nf.InProgress)) }, want: nf.Unhealthy, says: "Deployment edge/web is not ready"},
		"deleted later":   {reason: "another client deletes the object or its namespace", then: func(w *world) { w.tell("east/Deployment", mark("vnf-1", web, nf.Absent)) }, want: nf.Unhealthy, says: "Deployment edge/web is missing"},
		"another's":       {reason: "an object of another owner is another's", then: func(w *world) { w.tell("east/Deployment", mark("vnf-2", web, nf.Absent)) }, want: nf.Healthy},
		"never there":     {reason: "the region has no such object", before: func(w *world) { delete(w.marks, "east/StatefulSet") }, want: nf.Unhealthy, says: "StatefulSet edge/db is missing"},
		"may not be read": {reason: "a kind may not be listed", before: func(w *world) { w.refused["east/StatefulSet"] = errForbidden }, want: nf.HealthUnknown, says: "StatefulSet edge/db cannot be read: forbidden"},
		"not served": {reason: "a definition was deleted", before: func(w *world) {
			w.refused["east/StatefulSet"] = nf.E(nf.Unsupported, "list", "objects", errors.New("gone"))
		}, want: nf.HealthUnknown, says: "StatefulSet edge/db cannot be read: the cloud region does not serve its kind"},
		"broke off":   {reason: "what is not seen any more is unknown", then: func(w *world) { w.set(func() { w.ends["east/Deployment"]() }) }, want: nf.HealthUnknown, says: "Deployment edge/web cannot be read: tcp"},
		"region away": {reason: "a region that is away shows nothing", then: func(w *world) { w.set(func() { w.unreachable = "east" }) }, want: nf.HealthUnknown, says: "cloud region east is unreachable (tcp)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(in)
				well(w)
				if tc.before != nil {
					tc.before(w)
				}
				watcher := running(t, w, health.Config{})
				if tc.then != nil {
					tc.then(w)
					synctest.Wait()
				}
				got := watcher.InstanceHealth(in)
				if strings.Contains(got.Message, "its own words") {
					t.Errorf("%s: a list repeats what the region says: %s", tc.reason, got.Message)
				}
				if got.State != tc.want || !strings.Contains(got.Message, tc.says) || (got.Message == "") != (tc.want == nf.Healthy) {
					t.Errorf("%s: %+v, want %s that says %q", tc.reason, got, tc.want, tc.says)
				}
			})
		})
	}
}

// TestSeesAgain is about a census that ends: earlier results no longer count,
// and it is started again.
func TestSeesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := item("Deployment", "web")
		in := instance("vnf-1", "east", web)
		w := newWorld(in)
		w.marks["east/Deployment"] = []health.Mark{mark("vnf-1", web, nf.Current)}
		watcher := running(t, w, health.Config{})
		w.set(func() {
			w.marks = map[string][]health.Mark{}
			w.refused["east/Deployment"] = errBroken
			w.ends["east/Deployment"]()
		})
		<-time.After(10 * time.Minute)
		if got := watcher.InstanceHealth(in); got.State != nf.HealthUnknown {
			t.Errorf("nothing is seen: %+v", got)
		}
		w.mu.Lock()
		if w.begun < 8 || w.begun > 30 {
			t.Errorf("the region was asked %d times in 10 minutes, want patience", w.begun)
		}
		w.mu.Unlock()
		w.set(func() { delete(w.refused, "east/Deployment") })
		<-time.After(2 * time.Minute)
		if got := watcher.InstanceHealth(in); got.State != nf.Unhealthy || !strings.Contains(got.Message, "is missing") {
			t.Errorf("an object was deleted during the outage: %+v, want it missing", got)
		}
	})
}

// TestPatienceWithBriefCensuses is about a credential that may list a kind and not
// watch it: each census ends as soon as it has reported all.
func TestPatienceWithBriefCensuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(instance("vnf-1", "east", item("Deployment", "web")))
		w.brief = true
		running(t, w, health.Config{})
		<-time.After(10 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.begun < 8 || w.begun > 30 {
			t.Errorf("the kind was listed %d times in 10 minutes, want patience", w.begun)
		}
	})
}

// TestReadingPauses is about many instances: requests do not wait until all are read, and
// the pauses do not delay the next reading.
func TestReadingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []nf.Instance
		for i := range 200 {
			many = append(many, instance(fmt.Sprintf("vnf-%d", i), "east", item("Deployment", "web")))
		}
		w := newWorld(many...)
		w.each = time.Millisecond
		watcher := running(t, w, health.Config{})
		unknown := func() (n int) {
			for _, c := range watcher.InstanceCounts() {
				if c.Health == nf.HealthUnknown {
					n += c.Number
				}
			}
			return n
		}
		<-time.After(250 * time.Millisecond)
		if counts := watcher.InstanceCounts(); len(counts) == 0 {
			t.Error("200 ms of work were not done in 250 ms, although nothing was known before")
		}
		<-time.After(2850 * time.Millisecond)
		if n := w.read(); n != 2 || unknown() != len(many) {
			t.Errorf("after 3.1 s, the instances were read %d times, and the health of %d is unknown; want that the second reading pauses", n, unknown())
		}
		<-time.After(150 * time.Millisecond)
		if unknown() != 0 {
			t.Error("200 ms of work, and four times as much of pauses, were not done in 1.05 s")
		}
		watcher.InstanceHealth(instance("vnf-new", "west", item("Deployment", "web")))
		for _, at := range []struct {
			wait  time.Duration
			reads int
			why   string
		}{
			{8 * time.Second, 2, "1 s, and then 10 s (50 times the work) have not passed"},
			{3 * time.Second, 3, "they have"},
		} {
			<-time.After(at.wait)
			if n := w.read(); n != at.reads {
				t.Errorf("the instances were read %d times, want %d: %s", n, at.reads, at.why)
			}
		}
	})
}

// TestWatchesWhatThereIs holds the number of watches to the kinds and regions that
// instances have, however many instances there are.
func TestWatchesWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for i := range 1000 {
			claim := item("PersistentVolumeClaim", "data-db-0") // no health depends on it
			claim.Volume = true
			w.instances = append(w.instances, instance(fmt.Sprint("vnf-", i), []string{"east", "west"}[i%2], item("Deployment", "web"), item("Service", "web"), claim))
		}
		watcher := running(t, w, health.Config{})
		open := func() map[string]int {
			w.mu.Lock()
			defer w.mu.Unlock()
			out := map[string]int{}
			for key, n := range w.censuses {
				if n > 0 {
					out[key] = n
				}
			}
			return out
		}
		if d := gocmp.Diff(map[string]int{"east/Deployment": 1, "east/Service": 1, "west/Deployment": 1, "west/Service": 1}, open()); d != "" {
			t.Errorf("one watch for each kind of each region: -want +got:\n%s", d)
		}
		more := instance("vnf-new", "north", item("Job", "once"))
		w.set(func() { w.instances = []nf.Instance{more} })
		if got := watcher.InstanceHealth(more); got.State != nf.HealthUnknown || !strings.Contains(got.Message, "not been read yet") {
			t.Errorf("a kind that has not been read yet: %+v, want unknown", got)
		}
		<-time.After(5 * time.Second) // it was asked for, so the instances are read soon
		synctest.Wait()
		if d := gocmp.Diff(map[string]int{"north/Job": 1}, open()); d != "" {
			t.Errorf("what is gone is not watched: -want +got:\n%s", d)
		}
		before := w.read()
		for range 1000 {
			_, _ = watcher.InstanceHealth(more), watcher.InstanceCounts()
		}
		<-time.After(time.Minute)
		if n := w.read() - before; n > 3 {
			t.Errorf("the instances were read %d times in a minute, want every 30 s, however many requests there are", n)
		}
		before = w.read()
		for range 600 { // of an instance that is on no list yet, kinds are missed again and again
			watcher.InstanceHealth(instance("vnf-newest", "south", item("Job", "once")))
			<-time.After(100 * time.Millisecond)
		}
		if n := w.read() - before; n > 31 {
			t.Errorf("the instances were read %d times in a minute, want every 2 s at most", n)
		}
	})
}

// TestOneWatchForOneAccess is about regions that are registered with the same access: one
// watch shows the objects of all.
func TestOneWatchForOneAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := item("Deployment", "web")
		one, two, other := instance("vnf-1", "east-1", web), instance("vnf-2", "east-2", web), instance("vnf-3", "west", web)
		w := newWorld(one, two, other)
		w.marks["east/Deployment"] = []health.Mark{mark("vnf-1", web, nf.Current), mark("vnf-2", web, nf.InProgress)}
		w.marks["west/Deployment"] = []health.Mark{mark("vnf-3", web, nf.Current)}
		watcher := running(t, w, health.Config{Kinds: 1, Watches: 2})
		w.mu.Lock()
		if d := gocmp.Diff(map[string]int{"east/Deployment": 1, "west/Deployment": 1}, w.censuses); d != "" {
			t.Errorf("watches: -want +got:\n%s", d)
		}
		w.mu.Unlock()
		w.set(func() { w.unreachable = "west" })
		for want, in := range map[nf.HealthState]nf.Instance{nf.Healthy: one, nf.Unhealthy: two, nf.HealthUnknown: other} {
			if got := watcher.InstanceHealth(in); got.State != want {
				t.Errorf("%s in %s is %+v, want %s", in.ID, in.Region, got, want)
			}
		}
	})
}

// TestAccessChangesWhileReading gives a region an access of its own while the instances are
// read. Its kinds do not count as too many.
func TestAccessChangesWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := item("Deployment", "web")
		many := []nf.Instance{instance("vnf", "east-1", web)}
		for i := range 100 {
			many = append(many, instance(fmt.Sprintf("vnf-%d", i), "east-2", web))
		}
		last := many[len(many)-1]
		w := newWorld(many...)
		w.each = time.Millisecond
		w.marks["east/Deployment"] = []health.Mark{mark(last.ID, web, nf.Current)}
		w.marks["east-2/Deployment"] = w.marks["east/Deployment"]
		watcher := running(t, w, health.Config{Kinds: 1})
		<-time.After(2300 * time.Millisecond)
		if n := w.read(); n != 2 {
			t.Fatalf("the instances were read %d times, want that they are read for the second time", n)
		}
		w.set(func() { w.moved = "east-2" })
		<-time.After(time.Second)
		watcher.InstanceHealth(last) // asks for the next reading
		<-time.After(10 * time.Second)
		if is := watcher.InstanceHealth(last); is.State != nf.Healthy {
			t.Errorf("the last one is %+v", is)
		}
	})
}

func TestBounds(t *testing.T) {
	cases := map[string]struct {
		reason  string
		regions [3]string
		cfg     health.Config
		want    string // whose health is known
	}{
		"kinds of a region":  {"one region must not take all", [3]string{"east", "east", "west"}, health.Config{Kinds: 1}, "a c"},
		"kinds of an access": {"each region that shares it may have its kinds", [3]string{"east-1", "east-2", "west"}, health.Config{Kinds: 1}, "a b c"},
		"all":                {"nor all of them more than there is room for", [3]string{"east", "east", "west"}, health.Config{Watches: 2}, "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []nf.Instance{instance("a", tc.regions[0], item("A", "x")), instance("b", tc.regions[1], item("B", "x")), instance("c", tc.regions[2], item("C", "x"))}
				w := newWorld(all...)
				watcher := running(t, w, tc.cfg)
				<-time.After(time.Minute) // the bounds stay what they are
				synctest.Wait()
				var known []string
				for _, in := range all {
					h := watcher.InstanceHealth(in)
					if h.State != nf.HealthUnknown {
						known = append(known, in.ID)
					} else if !strings.Contains(h.Message, "more kinds than are watched") {
						t.Errorf("%s: %s does not say why: %+v", tc.reason, in.ID, h)
					}
				}
				if got := strings.Join(known, " "); got != tc.want {
					t.Errorf("%s: the health is known of %q, want %q", tc.reason, got, tc.want)
				}
				w.set(func() { w.instances = all[1:2] })
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if h := watcher.InstanceHealth(all[1]); h.State != nf.Unhealthy {
					t.Errorf("%s: there is room again: %+v", tc.reason, h)
				}
			})
		})
	}
}

func TestInstanceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := item("Deployment", "web")
		updating := instance("vnf-3", "east", web)
		updating.State = nf.Updating
		w := newWorld(instance("vnf-1", "east", web), instance("vnf-2", "east", web), updating, instance("vnf-4", "west", web))
		w.marks["east/Deployment"] = []health.Mark{mark("vnf-1", web, nf.Current), mark("vnf-3", web, nf.InProgress)}
		w.unreachable = "west"
		watcher := running(t, w, health.Config{})
		<-time.After(3 * time.Second) // the kinds have been read, so the instances are counted again
		want := []nf.InstanceCount{
			{Region: "east", State: nf.Ready, Health: nf.Healthy, Number: 1},
			{Region: "east", State: nf.Ready, Health: nf.Unhealthy, Number: 1},
			{Region: "east", State: nf.Ready, Health: nf.HealthUnknown},
			{Region: "east", State: nf.Updating, Health: nf.Healthy},
			{Region: "east", State: nf.Updating, Health: nf.Unhealthy, Number: 1},
			{Region: "east", State: nf.Updating, Health: nf.HealthUnknown},
			{Region: "west", State: nf.Ready, Health: nf.Healthy},
			{Region: "west", State: nf.Ready, Health: nf.Unhealthy},
			{Region: "west", State: nf.Ready, Health: nf.HealthUnknown, Number: 1},
		}
		if d := gocmp.Diff([]string{"vnf-2", "vnf-3"}, watcher.Unhealthy()); d != "" {
			t.Errorf("instances that are unhealthy (-want +got):\n%s", d)
		}
		counts := func() []nf.InstanceCount {
			order := func(a, b nf.InstanceCount) int {
				return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(string(a.State), string(b.State)), strings.Compare(string(a.Health), string(b.Health)))
			}
			slices.SortFunc(want, order)
			return slices.SortedFunc(slices.Values(watcher.InstanceCounts()), order)
		}
		if d := gocmp.Diff(want, counts()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		w.set(func() { w.err = errors.New("the store is away") })
		<-time.After(time.Minute)
		if d := gocmp.Diff(want, counts()); d != "" {
			t.Errorf("what cannot be read is as it was: -want +got:\n%s", d)
		}
	})
}
