package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestGoals(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range goals() {
		if seen[g.what] {
			t.Errorf("two goals are %q: they would have one figure", g.what)
		}
		seen[g.what] = true
	}
}

// TestRecord records three runs of a scenario, and one of another.
func TestRecord(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "benchmarks-goals.md")
	record := func(scenario, what string, value float64) {
		t.Helper()
		measured := values{what: value, "of other options": 1}
		if err := measured.record(out, scenario, 90*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	const flux, regions = "the same: Flux to service", "1,000 instances over 100 regions"
	for _, ratio := range []float64{9, 5, 3.5} {
		record("many", flux, ratio)
	}
	record("many", regions, 44)
	record("week", flux, 9)
	record("week", "store file, last round to second", 1)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().Format(time.DateOnly)
	for reason, want := range map[string]string{
		"the last two runs are compared, and a ratio that differs is marked": "| [many](benchmarks-many.md) | " + flux + " | ≥ 4 | 3.50 | 5 | **-30 %** | missed | " + today + " |\n",
		"a figure may be the first one, and has its unit":                    "| " + regions + " | ≤ 45 s | 44 s |  |  | met | " + today + " |\n",
		"a bound may be reached exactly":                                     "| store file, last round to second | ≤ 1 | 1 |  |  | met |",
		"a goal may have no figure":                                          "| stripped binary | ≤ 80 MB | not measured |",
		"the latest run of each scenario counts":                             "took 3 minutes together. 1 ratios differ by more than 15 %",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: the table lacks %q:\n%s", reason, want, text)
		}
	}
	if strings.Contains(string(text), "of other options") {
		t.Error("the table has a figure without a goal")
	}
}
