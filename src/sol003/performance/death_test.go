package performance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestDeathAtEveryWrite cuts a process off before and after each of its writes, and lets
// another take over: each period has one report, and each report a notice.
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
				if !died && at < 8 {
					t.Errorf("the process has written %d times", at)
				}
			}
		})
	}
}

func (w *world) die(when string, at int) bool {
	crashing := storetest.NewCrashingStore(w.kv)
	crashing.Ignore("vnfperformance/watch/")
	crashing.CrashAt(at+1, when == "after")
	heir := w.meter(w.kv)
	j := w.create(heir, job("VCpuUsageMeanVnf"))
	stop := w.start(w.meter(crashing))
	w.later(65 * time.Second)
	stop()
	measured, err := store.NewTable[struct {
		Index int64 `json:"index"`
		Sums  []any `json:"sums"`
	}](w.kv, "vnfperformance/periods/", "period").Get(w.t.Context(), j.ID)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		w.t.Fatal(err)
	}
	w.start(heir)
	w.later(40 * time.Second)
	got := w.reported(heir, j.ID)
	want := []string{"30s VCpuUsageMeanVnf.v=30", "1m0s VCpuUsageMeanVnf.v=30", "1m30s VCpuUsageMeanVnf.v=30"}
	dead := crashing.HasCrashed()
	if dead { // while no process runs, nothing is measured, and a period without measurements has no report
		want = slices.DeleteFunc(want, func(one string) bool { return !slices.Contains(got, one) })
		due := []string{"1m30s"}
		if len(measured.Sums) > 0 {
			due = append(due, []string{"30s", "1m0s", "1m30s"}[measured.Index])
		}
		for _, end := range due {
			if !slices.Contains(want, end+" VCpuUsageMeanVnf.v=30") {
				w.t.Errorf("the heir has not reported the period that ends at %s: %q", end, got)
			}
		}
	}
	w.want("each period is reported once", got, want...)
	if told := w.told(heir); len(told) != len(got) {
		w.t.Errorf("%d reports have %d notices", len(got), len(told))
	}
	return dead
}
