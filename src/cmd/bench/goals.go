package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// goal is a row of the table of goals: a figure of a scenario, and its bound.
type goal struct {
	scenario, what, unit string // without a unit, the figure is a ratio of two measurements of one run
	bound                bound
}

// bound is the most or the least that a figure should be. The zero value is no bound.
type bound struct {
	sense string
	value float64
}

func most(value float64) bound { return bound{"≤", value} }

func least(value float64) bound { return bound{"≥", value} }

// minutes is the figure that each scenario has.
const minutes = "minutes"

// goals are the rows of the table, in order.
func goals() []goal {
	return []goal{
		{"objects", "10 objects, near: service to bare client", "", most(1.25)},
		{"objects", "100 objects, near: service to bare client", "", most(1.1)},
		{"objects", "500 objects, near: service to bare client", "", most(1.1)},
		{"objects", "10 objects, at a distance: service minus bare client", "ms", most(30)},
		{"objects", "100 objects, at a distance: service to bare client", "", most(1.1)},
		{"objects", "500 objects, at a distance: service to bare client", "", most(1.1)},
		{"objects", "100 objects, at a distance: kubectl to service", "", least(6)},
		{"objects", "100 objects, at a distance: Helm to service", "", least(8)},
		{"changes", "re-apply of 500 unchanged objects: service to bare reads", "", most(1.1)},
		{"changes", "its writes, after the first one of objects that are a minute old", "requests", most(0)},
		{"changes", "10 objects, accepted to applied, p99", "ms", most(150)},
		{"changes", "ready until the operation has ended, p99", "ms", most(200)},
		{"many", "1,000 instances over 100 regions", "s", most(45)},
		{"many", "the same: service to bare client", "", most(1.6)},
		{"many", "the same: Flux to service", "", least(4)},
		{"many", "the same: processor time for an instance", "ms", most(12)},
		{"many", "check of all 1,000 after a restart", "s", most(10)},
		{"stored", "processor time for an instance, with 10,000 stored to with 100", "", most(1.05)},
		{"stored", "the same, with 50,000 to with 100", "", most(1.1)},
		{"stored", "reads at 200/s with 10,000 instances, p99", "ms", most(50)},
		{"stored", "slowest page of a list, with 50,000 instances", "ms", most(20)},
		{"stored", "memory with 1,000 idle regions", "MiB", most(120)},
		{"stored", "memory with 10,000 instances", "MiB", most(400)},
		{"stored", "store file with 10,000 instances", "MiB", most(250)},
		{"stored", "start with 10,000 instances", "s", most(1.5)},
		{"stored", "stripped binary", "MB", most(80)},
		{"charts", "memory of one dry run of the largest chart", "MiB", most(256)},
		{"charts", "memory of 32 at once", "MiB", bound{}},
		{"week", "store file, last round to second", "", most(1)},
		{"regions", "creations beside regions with faults to without, p99", "", most(1.05)},
		{"regions", "reads beside regions with faults to without, p99", "", most(1.05)},
		{"replicas", "throughput of three replicas to one", "", least(1)},
		{"replicas", "work of three replicas: least to most", "", least(0.8)},
		{"replicas", "memory of each of three replicas to one", "", most(1)},
	}
}

// values are the measured values of goals, by what they are.
type values map[string]float64

func (v values) set(what string, value float64) { v[what] = value }

// figures are the measured values, by what is measured. The newest is the last; there
// are at most two.
type figures map[string][]figure

type figure struct {
	Date  string  `json:"date"`
	Value float64 `json:"value"`
}

// set adds a value, and forgets all but the one before.
func (f figures) set(what string, value float64) {
	f[what] = append(f[what], figure{time.Now().Format(time.DateOnly), value})
	f[what] = f[what][max(0, len(f[what])-2):]
}

// goalsTable is the name of the report of all goals, as that of a scenario.
const goalsTable = "goals"

// record adds the figures of a run of a scenario to those in the file beside the
// reports, and writes the table of all goals. Figures without a goal, such as those of
// other numbers of objects, are ignored.
func (v values) record(out, scenario string, took time.Duration) error {
	file := strings.TrimSuffix(out, filepath.Ext(out)) + ".json"
	all := figures{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the figures of earlier runs: %w", err)
	}
	for _, g := range goals() {
		if value, ok := v[g.what]; ok && g.scenario == scenario {
			all.set(g.what, value)
		}
	}
	all.set(scenario+" "+minutes, took.Minutes())
	if text, err = json.MarshalIndent(all, "", "  "); err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the figures: %w", err)
	}
	return writeReport(out, goalsPreamble+all.rows())
}

const goalsPreamble = `# Goals

Written by ` + "`make bench`" + `: the latest figure of each goal, and the one of the run before. The date is that of the latest. ` + "`make bench SCENARIO=all`" + ` runs all these scenarios.
A figure without a unit is a ratio of two measurements of one run, which carries further than a time; two runs should differ by less than 15 % in it.

| scenario | what | goal | figure | before | difference | | date |
|---|---|--:|--:|--:|--:|---|---|
`

// likeBefore is the largest difference of the same ratio in two runs.
const likeBefore = 0.15

// rows returns the table, and the times of the scenarios.
func (f figures) rows() string {
	var text strings.Builder
	total, apart, before := 0.0, 0, ""
	for _, g := range goals() {
		link := "[" + g.scenario + "](benchmarks-" + g.scenario + ".md)"
		if g.scenario == "objects" {
			link = "[objects](benchmarks.md)"
		}
		if g.scenario != before {
			total += f.latest(g.scenario + " " + minutes)
		}
		before = g.scenario
		runs := f[g.what]
		if len(runs) == 0 {
			fmt.Fprintf(&text, "| %s | %s | %s | not measured | | | | |\n", link, g.what, g.text())
			continue
		}
		last := runs[len(runs)-1]
		earlier, difference := "", ""
		if len(runs) > 1 {
			earlier = g.number(runs[0].Value)
			change := last.Value/runs[0].Value - 1
			if runs[0].Value != 0 {
				difference = fmt.Sprintf("%+.0f %%", 100*change)
			}
			if g.unit == "" && math.Abs(change) > likeBefore {
				difference, apart = "**"+difference+"**", apart+1
			}
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", link, g.what, g.text(), g.number(last.Value), earlier, difference, g.verdict(last.Value), last.Date)
	}
	fmt.Fprintf(&text, "\nThe latest runs of these scenarios took %.0f minutes together. %d ratios differ by more than %.0f %% from the run before.\n", total, apart, 100*likeBefore)
	return text.String()
}

// latest returns the newest value, or 0.
func (f figures) latest(what string) float64 {
	if runs := f[what]; len(runs) > 0 {
		return runs[len(runs)-1].Value
	}
	return 0
}

// verdict compares a value with the bound.
func (g goal) verdict(value float64) string {
	switch {
	case g.bound == bound{}:
		return ""
	case g.bound.sense == "≥" && value < g.bound.value, g.bound.sense == "≤" && value > g.bound.value:
		return "missed"
	}
	return "met"
}

// text returns the bound.
func (g goal) text() string {
	if g.bound == (bound{}) {
		return "bounded"
	}
	return strings.TrimSpace(g.bound.sense + " " + strconv.FormatFloat(g.bound.value, 'f', -1, 64) + " " + g.unit)
}

// number returns a value with three significant digits, and its unit.
func (g goal) number(value float64) string {
	digits := 2
	if value >= 10 {
		digits = 1
	}
	if value >= 100 || value == math.Trunc(value) {
		digits = 0
	}
	return strings.TrimSpace(strconv.FormatFloat(value, 'f', digits, 64) + " " + g.unit)
}
