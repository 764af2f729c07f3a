package fault_test

import (
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestDeathAtEveryWrite cuts a process off before and after each of its writes, and lets
// another take over: the fault has one alarm, and each change a notice.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			for at, died := 0, true; died; at++ {
				play(t, func(_ *testing.T, w *world) { died = w.die(when, at) })
				if t.Failed() {
					t.Fatalf("after death at write %d", at)
				}
				if !died && at < 4 {
					t.Errorf("the process has written %d times", at)
				}
			}
		})
	}
}

func (w *world) die(when string, at int) bool {
	crashing := storetest.NewCrashingStore(w.kv)
	crashing.Ignore("vnfalarms/watch/")
	crashing.CrashAt(at+1, when == "after")
	stop := w.start(w.watcher(crashing))
	w.ill("CrashLoopBackOff")
	w.later(2 * time.Minute)
	early := crashing.HasCrashed()
	heir := w.watcher(w.kv)
	if early {
		stop()
		w.start(heir)
		w.later(3 * time.Minute)
	}
	w.well()
	w.later(2 * time.Minute)
	died := crashing.HasCrashed()
	crashing.Crash()
	stop()
	if !early {
		w.start(heir)
		w.later(3 * time.Minute)
	}
	kinds, ids := map[nf.NoticeKind]int{}, map[string]bool{}
	for n, err := range heir.NoticesFrom(w.t.Context(), nf.Cursor{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		kinds[n.Kind]++
		ids[n.Alarm.ID] = true
	}
	if all := w.all(heir); len(all) != 1 || len(ids) != 1 || all[0].Cleared.IsZero() || kinds[nf.NoticeAlarm] < 1 || kinds[nf.NoticeCleared] < 1 {
		w.t.Errorf("the alarms are %+v, and the notices %v of %v", all, kinds, ids)
	}
	return died
}
