package fault_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestFaults raises an alarm for each kind of fault, and clears it.
func TestFaults(t *testing.T) {
	t.Parallel()
	const one = " MAJOR [VDU1-web-1]"
	for name, tc := range map[string]struct {
		reason string
		ill    func(w *world)
		want   []string
		about  string // the faulty resource
	}{
		"Crash loop": {"a container ends repeatedly", func(w *world) { w.ill("CrashLoopBackOff") }, []string{"CrashLoop" + one}, "Pod web-1"},
		"Image":      {"any other reason is that it is down", func(w *world) { w.ill("ImagePullBackOff") }, []string{"VnfcDown" + one}, "Pod web-1"},
		"Node":       {"the node is the cause", func(w *world) { w.ill("NodeLost") }, []string{"NodeLost" + one}, "Node node-1"},
		"Evicted":    {"likewise", func(w *world) { w.ill("DeletionByTaintManager") }, []string{"NodeLost" + one}, "Node node-1"},
		"All": {"no component of the workload is left", func(w *world) {
			w.ill("")
			w.run(pod("web-1", "", nf.InProgress), pod("web-2", "", nf.StatusDeleting))
		}, []string{"VnfcDown CRITICAL [VDU1-web-1 VDU1-web-2]"}, "Pod web-1"},
		"Two kinds": {"each fault has its alarm", func(w *world) {
			w.ill("")
			w.run(pod("web-1", "CrashLoopBackOff", nf.InProgress), pod("web-2", "", nf.InProgress), pod("web-3", "", nf.Current))
		}, []string{"CrashLoop" + one, "VnfcDown MAJOR [VDU1-web-2]"}, "Pod web-1"},
		"New pod": {"a component that replaces another is not in the VNF's record", func(w *world) {
			w.ill("")
			w.run(pod("web-9", "", nf.InProgress), pod("web-2", "", nf.Current))
		}, []string{"VnfcDown MAJOR []"}, "Pod web-9"},
		"Missing": {"no pod says why", func(w *world) { w.ill(""); w.run() }, []string{"VnfNotWell MAJOR []"}, " "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, w *world) {
				of := w.watcher(w.kv)
				w.start(of)
				w.later(time.Minute)
				w.want(of, "a VNF that is well has no alarm")
				tc.ill(w)
				w.later(50 * time.Second)
				w.want(of, "a fault has to last")
				w.later(40 * time.Second)
				raised, cleared := []string{}, []string{}
				for _, text := range tc.want {
					raised = append(raised, "AlarmNotification "+text)
					cleared = append(cleared, "AlarmClearedNotification "+strings.NewReplacer("MAJOR", "CLEARED", "CRITICAL", "CLEARED").Replace(text))
				}
				w.want(of, tc.reason, raised...)
				w.later(10 * time.Minute)
				w.want(of, "it is raised once")
				all := w.all(of)
				if i := slices.IndexFunc(all, func(a nf.Alarm) bool { return a.ResourceKind+" "+a.ResourceID == tc.about }); i < 0 || all[0].Region != "east" {
					t.Errorf("%s: the alarms are %+v, want one of %s", tc.reason, all, tc.about)
				}
				w.well()
				w.later(30 * time.Second)
				w.want(of, "it has to be gone for a while")
				w.later(time.Minute)
				w.want(of, "it is gone", cleared...)
			})
		})
	}
}

// TestNoAlarm raises and clears nothing when nothing is known, or something is intended.
func TestNoAlarm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		set    func(w *world)
	}{
		"Occurrence":  {"an occurrence changes the VNF", func(w *world) { w.vnf.Occurrence = "o" }},
		"Operation":   {"an operation changes the instance", func(w *world) { w.instance.Operation = "o" }},
		"State":       {"the instance is not ready yet", func(w *world) { w.instance.State = "" }},
		"Unknown":     {"the region is unreachable", func(w *world) { w.health.State = nf.HealthUnknown }},
		"Pods":        {"its pods cannot be read", func(w *world) { w.err = nf.E(nf.Unreachable, "list", "pods", nil) }},
		"Not a VNF":   {"the instance is not one of SOL003", func(w *world) { w.vnf.ID = "x" }},
		"Not running": {"the VNF is not instantiated", func(w *world) { w.vnf.Instantiated = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(_ *testing.T, w *world) {
				of := w.watcher(w.kv)
				w.start(of)
				w.ill("CrashLoopBackOff")
				w.set(func() { tc.set(w) })
				w.later(10 * time.Minute)
				w.want(of, tc.reason)
			})
			if name == "Not a VNF" || name == "Not running" {
				return
			}
			play(t, func(_ *testing.T, w *world) {
				of := w.watcher(w.kv)
				w.start(of)
				w.ill("CrashLoopBackOff")
				w.later(2 * time.Minute)
				w.told(of)
				w.set(func() { w.health.State = nf.Unhealthy; w.pods[0].Status = nf.Current; tc.set(w) })
				w.later(10 * time.Minute)
				w.want(of, "an alarm stays: "+tc.reason)
			})
		})
	}
}

// TestRollingUpdate raises no alarm for pods that are replaced one after the other, each
// for less than the time that a fault must last.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, w *world) {
		of := w.watcher(w.kv)
		w.start(of)
		for range 10 {
			w.ill("")
			w.later(40 * time.Second)
			w.well()
			w.later(70 * time.Second)
		}
		w.want(of, "no fault lasts")
	})
}

// TestForgets reads a VNF that was ill no more than one that has always been well: neither
// after a moment, nor after an alarm that is cleared.
func TestForgets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		ill    time.Duration
		told   []string
	}{
		"Moment": {"the fault did not last", 30 * time.Second, nil},
		"Alarm":  {"it is raised and cleared", 2 * time.Minute, []string{"AlarmNotification CrashLoop MAJOR [VDU1-web-1]", "AlarmClearedNotification CrashLoop CLEARED [VDU1-web-1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, w *world) {
				of := w.watcher(w.kv)
				w.start(of)
				w.ill("CrashLoopBackOff")
				w.later(tc.ill)
				w.well()
				w.later(5 * time.Minute)
				before := w.asked
				w.later(2 * time.Hour)
				if before == 0 || w.asked != before {
					t.Errorf("the instance was read %d times, and %d times afterwards", before, w.asked-before)
				}
				w.want(of, tc.reason, tc.told...)
			})
		})
	}
}

// TestCrashLoopFlaps raises one alarm for a pod that runs for a moment after each crash.
func TestCrashLoopFlaps(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, w *world) {
		of := w.watcher(w.kv)
		w.start(of)
		for range 10 {
			w.ill("CrashLoopBackOff")
			w.later(50 * time.Second)
			w.well()
			w.later(20 * time.Second)
		}
		w.want(of, "the fault lasts", "AlarmNotification CrashLoop MAJOR [VDU1-web-1]")
	})
}

// TestWorse tells when an alarm becomes worse, at most once in a minute.
func TestWorse(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		of := w.watcher(w.kv)
		w.start(of)
		w.ill("")
		w.later(90 * time.Second)
		w.told(of)
		for range 20 {
			w.set(func() { w.pods[1].Status = nf.InProgress })
			w.later(15 * time.Second)
			w.set(func() { w.pods[1].Status = nf.Current })
			w.later(15 * time.Second)
		}
		if got := w.told(of); len(got) < 1 || len(got) > 11 {
			t.Errorf("%d changes in 10 minutes: %q", len(got), got)
		}
		if all := w.all(of); len(all) != 1 || all[0].Changed.IsZero() {
			t.Errorf("the alarms are %+v", all)
		}
	})
}

// TestGone clears the alarms of a VNF that is terminated, at once.
func TestGone(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		of := w.watcher(w.kv)
		w.start(of)
		w.ill("CrashLoopBackOff")
		w.later(2 * time.Minute)
		w.told(of)
		w.set(func() { w.instance = nil })
		w.later(20 * time.Second)
		w.want(of, "it is gone", "AlarmClearedNotification CrashLoop CLEARED [VDU1-web-1]")
		w.later(3 * time.Hour)
		if len(w.all(of)) != 1 {
			t.Error("a cleared alarm is kept for a while")
		}
		w.later(3 * time.Hour)
		if len(w.all(of)) != 0 {
			t.Error("a cleared alarm is not kept for ever")
		}
	})
}

// TestRestart keeps alarms, and that they are acknowledged.
func TestRestart(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		of := w.watcher(w.kv)
		stop := w.start(of)
		w.ill("CrashLoopBackOff")
		w.later(2 * time.Minute)
		w.told(of)
		id := w.all(of)[0].ID
		at := time.Now()
		if _, err := of.UpdateAlarm(t.Context(), id, func(a *nf.Alarm) error { a.Acknowledged, a.Cause = at, "x"; return nil }); err != nil {
			t.Fatal(err)
		}
		stop()
		of = w.watcher(w.kv)
		w.start(of)
		w.later(10 * time.Minute)
		w.want(of, "the alarm is there")
		w.set(func() { w.pods[1].Status = nf.InProgress })
		w.later(time.Minute)
		w.want(of, "it becomes worse", "AlarmNotification CrashLoop CRITICAL [VDU1-web-1]")
		if got, err := of.Alarm(t.Context(), id); err != nil || !got.Acknowledged.Equal(at) || got.Cause == "x" {
			t.Errorf("the alarm is %+v, %v", got, err)
		}
	})
}

// TestIdle writes nothing while nothing changes, and reads no pods of a VNF that is well.
func TestIdle(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		writes := map[string]int{}
		var mu sync.Mutex
		of := w.watcher(storetest.Failing{KV: w.kv, Lose: func(method, key string) error {
			mu.Lock()
			defer mu.Unlock()
			if method == "Put" || method == "Delete" {
				writes[strings.Split(key, "/")[1]]++
			}
			return nil
		}})
		w.start(of)
		w.later(time.Hour)
		if w.reads != 0 {
			t.Errorf("the pods of a VNF that is well were read %d times", w.reads)
		}
		w.ill("CrashLoopBackOff")
		w.later(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if writes["alarms"] != 1 || writes["notices"] != 1 {
			t.Errorf("the writes are %v", writes)
		}
	})
}
