package fault_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/fault"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestAlarmCounts counts the alarms of the replica that raises them. Another replica has none,
// and acknowledges.
func TestAlarmCounts(t *testing.T) {
	t.Parallel()
	critical, major := nf.AlarmCount{Severity: nf.AlarmCritical}, nf.AlarmCount{Severity: nf.AlarmMajor}
	acknowledged := nf.AlarmCount{Severity: nf.AlarmMajor, Acknowledged: true}
	for name, tc := range map[string]struct {
		reason string
		act    func(w *world, other *fault.Watcher)
		want   map[nf.AlarmCount]int // that are not 0
	}{
		"None":         {"a VNF that is well has no alarm", func(*world, *fault.Watcher) {}, nil},
		"Short":        {"a fault that has no alarm yet does not count", func(w *world, _ *fault.Watcher) { w.ill(""); w.later(30 * time.Second) }, nil},
		"Major":        {"a new alarm is not acknowledged", func(w *world, _ *fault.Watcher) { w.fall() }, map[nf.AlarmCount]int{major: 1}},
		"Acknowledged": {"any replica may acknowledge an alarm", func(w *world, other *fault.Watcher) { w.fall(); w.acknowledge(other, true) }, map[nf.AlarmCount]int{acknowledged: 1}},
		"Withdrawn": {"and take that back", func(w *world, other *fault.Watcher) {
			w.fall()
			w.acknowledge(other, true)
			w.acknowledge(other, false)
		},
			map[nf.AlarmCount]int{major: 1}},
		"Worse": {"an alarm that becomes worse is counted once", func(w *world, _ *fault.Watcher) {
			w.ill("")
			w.later(2 * time.Minute)
			w.set(func() { w.pods[1].Status = nf.InProgress })
			w.later(2 * time.Minute)
		}, map[nf.AlarmCount]int{critical: 1}},
		"Two": {"a VNF may have several alarms", func(w *world, _ *fault.Watcher) {
			w.ill("")
			w.run(pod("web-1", "CrashLoopBackOff", nf.InProgress), pod("web-2", "", nf.InProgress), pod("web-3", "", nf.Current))
			w.later(2 * time.Minute)
		}, map[nf.AlarmCount]int{major: 2}},
		"Cleared": {"a cleared alarm does not count", func(w *world, _ *fault.Watcher) { w.fall(); w.well(); w.later(2 * time.Minute) }, nil},
		"Unknown": {"while the region is unreachable, an alarm stays", func(w *world, _ *fault.Watcher) {
			w.fall()
			w.set(func() { w.health.State = nf.HealthUnknown })
			w.later(2 * time.Minute)
		}, map[nf.AlarmCount]int{major: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(_ *testing.T, w *world) {
				of, other := w.watcher(w.kv), w.watcher(w.kv)
				w.counts(of, "it does not run yet", nil)
				stop := w.start(of)
				w.start(other)
				w.later(time.Minute)
				tc.act(w, other)
				want := map[nf.AlarmCount]int{critical: 0, major: 0, acknowledged: 0, {Severity: nf.AlarmCritical, Acknowledged: true}: 0}
				maps.Copy(want, tc.want)
				w.counts(of, tc.reason, want)
				w.counts(other, "another replica counts", nil)
				stop()
				w.counts(of, "it has stopped", nil)
				w.later(30 * time.Second)
				w.counts(other, "it has taken over: "+tc.reason, want)
			})
		})
	}
}

// TestAlarmCountsStay keeps the counts while the alarms cannot be read.
func TestAlarmCountsStay(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		down := false
		of := w.watcher(storetest.Failing{KV: w.kv, Fail: func(_, key string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if down && strings.HasPrefix(key, "vnfalarms/alarms/") {
				return nf.E(nf.Unreachable, "get", key, nil)
			}
			return nil
		}})
		w.start(of)
		w.fall()
		want := countsOf(of)
		w.set(func() { down = true })
		w.later(5 * time.Minute)
		if len(want) != 4 {
			t.Errorf("the counts are %v", want)
		}
		w.counts(of, "nothing newer is known", want)
	})
}

// fall has the VNF have an alarm.
func (w *world) fall() {
	w.ill("CrashLoopBackOff")
	w.later(2 * time.Minute)
}

// acknowledge acknowledges the alarm at a replica, or takes that back.
func (w *world) acknowledge(at *fault.Watcher, yes bool) {
	w.t.Helper()
	_, err := at.UpdateAlarm(w.t.Context(), w.all(at)[0].ID, func(a *nf.Alarm) error {
		a.Acknowledged = time.Time{}
		if yes {
			a.Acknowledged = time.Now()
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.later(20 * time.Second)
}

// counts compares the counts of a replica.
func (w *world) counts(of *fault.Watcher, reason string, want map[nf.AlarmCount]int) {
	w.t.Helper()
	if diff := cmp.Diff(want, countsOf(of)); diff != "" {
		w.t.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// countsOf returns the counts of a replica by what they count. They are nil if it has none.
func countsOf(of *fault.Watcher) map[nf.AlarmCount]int {
	var out map[nf.AlarmCount]int
	for _, c := range of.AlarmCounts() {
		if out == nil {
			out = map[nf.AlarmCount]int{}
		}
		out[nf.AlarmCount{Severity: c.Severity, Acknowledged: c.Acknowledged}] = c.Number
	}
	return out
}
