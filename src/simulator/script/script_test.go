package script_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// TestFaults takes faults of two kinds until there are none.
func TestFaults(t *testing.T) {
	t.Parallel()
	var s script.Faults[string]
	s.Add("a1", 0)
	s.Add("b", 2)
	s.Add("a2", -1)
	take := func(first string) string { return s.Take(func(f string) bool { return f[:1] == first }) }
	got := []string{take("a"), take("b"), take("a"), take("b"), take("b"), take("a")}
	if want := []string{"a1", "b", "a2", "b", "", "a2"}; !slices.Equal(got, want) {
		t.Errorf("requests take %q, want %q", got, want)
	}
	if s.Clear(); take("a") != "" {
		t.Error("a fault is left")
	}
}

// TestHold holds requests back.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, ran := time.Now(), false
		if !script.Hold(t.Context(), func() { ran = true }, time.Minute) || !ran || time.Since(began) != time.Minute {
			t.Errorf("it was held for %v", time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if script.Hold(gone, nil, time.Minute) || time.Since(began) != time.Minute {
			t.Error("a client that is gone is not waited for")
		}
		if !script.Hold(gone, nil, 0) {
			t.Error("without a delay, nothing is held")
		}
	})
}

// TestJournal keeps the last requests.
func TestJournal(t *testing.T) {
	t.Parallel()
	j := script.Journal[int]{Most: 10}
	for i := range 11 {
		j.Add(i)
	}
	if got := j.Take(); !slices.Equal(got, []int{2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("the journal has %d", got)
	}
	if got := j.Take(); got != nil {
		t.Errorf("the journal has %d, which were taken before", got)
	}
}
