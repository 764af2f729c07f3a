package main

import (
	"errors"
	"os"
	"testing"
	"time"
)

func TestRecordedRatio(t *testing.T) {
	t.Parallel()
	r := result{size: 10, times: map[string][]time.Duration{bareWay: {4, 2, 3}, serviceWay: {12, 6, 9}, kubectlWay: {18}}}
	far := result{size: 10, times: map[string][]time.Duration{bareWay: {1}, serviceWay: {9}}}
	written, err := os.ReadFile("../../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason, report string
		size           int
		want           float64 // 0: an error
	}{
		"Row":     {"it is the middle of the ratios of the rounds, which row writes", header + r.row() + "\n" + header + far.row(), 10, 3},
		"Missing": {"another size has another ratio", header + r.row(), 100, 0},
		"Report":  {"the report of the last run has the sizes of quick", string(written), 100, -1},
		"Smaller": {"the report of the last run has the sizes of quick", string(written), 10, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := recordedRatio(tc.report, tc.size)
			if (err != nil) != (tc.want == 0) || tc.want > 0 && got != tc.want || tc.want < 0 && got < 0.5 {
				t.Errorf("%s: the ratio is %v, %v; want %v", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	with := func(service time.Duration) result {
		return result{size: 10, times: map[string][]time.Duration{bareWay: {100}, serviceWay: {service}, kubectlWay: {1}}}
	}
	report := with(150).row()
	if err := with(299).holds(report); err != nil {
		t.Errorf("less than twice the recorded ratio: %v", err)
	}
	if err := with(300).holds(report); !errors.Is(err, errSlower) {
		t.Errorf("twice the recorded ratio: the error is %v, want %v", err, errSlower)
	}
}
