package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLivesAreRepeatable(t *testing.T) {
	t.Parallel()
	ask := func(seed uint64, number int) []call {
		var out []call
		l := newWorkload(seed, number, "run")
		s := &workloadState{workload: l, id: "i1", operation: "op1"}
		for i, a := range l.acts {
			r := request{}
			out = append(out, s.ask(&r, i, a))
		}
		return out
	}
	same := cmp.AllowUnexported(call{})
	for number := range 50 {
		if diff := cmp.Diff(ask(7, number), ask(7, number), same); diff != "" {
			t.Errorf("a seed must repeat workload %d:\n%s", number, diff)
		}
	}
	if cmp.Equal(ask(7, 1), ask(8, 1), same) && cmp.Equal(ask(7, 2), ask(8, 2), same) {
		t.Error("another seed gives the same workloads")
	}
}

// TestWorkloadsMakeSense goes through many workloads: what is asked for is possible, and
// every sort of act comes.
func TestWorkloadsMakeSense(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for number := range 500 {
		l := newWorkload(1, number, "run")
		for i, a := range l.acts {
			seen[a.verb+" "+string(a.end)] = true
			if (a.verb == create) != (i == 0) {
				t.Errorf("workload %d: act %d is %s", number, i, a.verb)
			}
			if (a.verb == undo || a.verb == retry) && (l.acts[i-1].end != fails || !l.acts[i-1].keep) {
				t.Errorf("workload %d: act %d, %s, has nothing that failed and was kept before it", number, i, a.verb)
			}
			if a.end == drags && a.after == 0 && a.timeout == 0 {
				t.Errorf("workload %d: act %d never ends", number, i)
			}
			if a.verb == terminate && i != len(l.acts)-1 {
				t.Errorf("workload %d continues after its end", number)
			}
		}
	}
	want := []string{"create fails", "create never ends", "create succeeds", "heal succeeds", "restart succeeds", "retry fails", "rollback succeeds",
		"scale succeeds", "terminate succeeds", "undo succeeds", "upgrade fails", "upgrade never ends", "upgrade succeeds"}
	if diff := cmp.Diff(want, sortedKeys(seen)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}
