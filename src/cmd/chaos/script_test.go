package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func strong(kills int) strength {
	return strength{kills: kills, duration: time.Duration(kills) * 3 * time.Second, lease: 3 * time.Second, quorumLoss: true}
}

func TestScriptIsRepeatable(t *testing.T) {
	t.Parallel()
	l := layout{servers: 3, nodes: 3, regions: 2}
	if diff := cmp.Diff(newScript(7, l, strong(50)), newScript(7, l, strong(50))); diff != "" {
		t.Errorf("a seed must repeat a run:\n%s", diff)
	}
	if cmp.Equal(newScript(7, l, strong(50)), newScript(8, l, strong(50))) {
		t.Error("another seed gives the same faults")
	}
}

func TestScriptIsBounded(t *testing.T) {
	t.Parallel()
	l := layout{servers: 3, nodes: 3, regions: 2}
	for seed := range uint64(20) {
		faults := newScript(seed, l, strong(100))
		n := tally(faults)
		if got := n[killServer] + n[endServer] + n[stallServer] + n[partServer] + n[killNode] + n[killNodes]; got != 100 {
			t.Errorf("seed %d: %d faults of processes, want as many as asked for", seed, got)
		}
		if len(n) != 11 {
			t.Errorf("seed %d: a long run has every sort of fault, this one %v", seed, n)
		}
		outlasting := 0
		for _, f := range faults {
			if f.Sort == stallServer && f.For > 3*time.Second {
				outlasting++
			}
		}
		if outlasting == 0 {
			t.Errorf("seed %d: no stall outlasts the lease, and those are what stalls are for", seed)
		}
		if last := ends(faults); last > 100*3*time.Second*3/2 {
			t.Errorf("seed %d: the faults take %s", seed, last)
		}
	}
}

// TestScriptLeavesAMajority finds out who is away at the same time.
func TestScriptLeavesAMajority(t *testing.T) {
	t.Parallel()
	l := layout{servers: 3, nodes: 3, regions: 2}
	s := strong(200)
	s.quorumLoss = false
	a := scheduler{layout: l}
	for seed := range uint64(10) {
		until := map[string]time.Duration{}
		for _, f := range newScript(seed, l, s) {
			if f.Sort == killNodes {
				t.Fatalf("seed %d: the quorum is lost without having been asked for", seed)
			}
			for _, thing := range a.befalls(f) {
				if f.At < until[thing] {
					t.Errorf("seed %d: %s befalls %s before it has recovered", seed, f, thing)
				}
				until[thing] = f.At + f.For
			}
		}
	}
}
