package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// storedReport holds the results of the scenario stored.
type storedReport struct {
	machine string
	clients int
	idle    memory // with all regions and no instance
	levels  []level
	reads   readResult

	repeated int64 // requests
}

const storedPreamble = `# Stored instances

Written by ` + "`make bench SCENARIO=stored`" + ` on %s: %s.

The service is the released binary with its embedded store and encryption. %d regions are registered, and %d of them have instances. All regions are paths of one light
API server in the process of the benchmark. It keeps the objects in memory, accepts every object, and has no schemas, so the service compares and waits for nothing. Its process
collects garbage less often than by default, to disturb the service less.
Instances have four objects in four stages and a namespace each; %d clients create them through the API.

For each number of stored instances, the pages are read, and the memory and the files are measured. Then %d more instances are created, and the processor time of the service is measured. It includes
the work that is not for one instance, such as reading all of them for their health. With all but the first number, a new service with the first number of instances, which has its own regions and
light API server, takes turns with it: %d each. Then the service is stopped and started again on its data.
Times depend on the machine and its other load; ratios and sizes carry further.
A page has 100 items; its time is the median of 11 requests, on the first page and on the last one that is full, if it is
reached within a minute.
`

// measure sets the values of the goals.
func (r storedReport) measure(binary string, measured values) error {
	measured.set("memory with 1,000 idle regions", mebibytes(r.idle.resident))
	for _, l := range r.levels {
		switch l.stored {
		case 10_000:
			measured.set("processor time for an instance, with 10,000 stored to with 100", l.ratio())
			measured.set("reads at 200/s with 10,000 instances, p99", milliseconds(quantile(r.reads.times.all(), 0.99)))
			measured.set("memory with 10,000 instances", mebibytes(l.memory.resident))
			measured.set("store file with 10,000 instances", mebibytes(int(l.database)))
			measured.set("start with 10,000 instances", l.start.Seconds())
		case 50_000:
			measured.set("the same, with 50,000 to with 100", l.ratio())
			measured.set("slowest page of a list, with 50,000 instances", milliseconds(l.slowest()))
		}
	}
	file, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("cannot read the size of the binary: %w", err)
	}
	measured.set("stripped binary", float64(file.Size())/1e6)
	return nil
}

// slowest returns the time of the slowest page of the lists with a goal.
func (l level) slowest() time.Duration {
	var most time.Duration
	for _, page := range l.pages {
		if page.list.goal != "" {
			most = max(most, page.first, page.last)
		}
	}
	return most
}

func (r storedReport) write(path string, binary float64) error {
	var text strings.Builder
	fmt.Fprintf(&text, storedPreamble, time.Now().Format(time.DateOnly), r.machine, lightRegions, usedRegions, r.clients, measuredWith, turns)
	text.WriteString("\n| stored instances |")
	for _, l := range r.levels {
		fmt.Fprintf(&text, " %d |", l.stored)
	}
	text.WriteString(" goal |\n|---|" + strings.Repeat("--:|", len(r.levels)) + "---|\n")
	for _, row := range r.rows() {
		text.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	fmt.Fprintf(&text, "\nWith %d regions and no instances, the service has %s MiB of memory one minute after its start (%s MiB of it not mapped from files, heap %s MiB). The goal is ≤ 120 MiB.\n",
		lightRegions, mib(r.idle.resident), mib(r.idle.anonymous), mib(r.idle.heap))
	fmt.Fprintf(&text, "The stripped binary has %.1f MB; the goal is ≤ 80 MB.\n", binary)
	if r.repeated > 0 {
		fmt.Fprintf(&text, "%d requests were repeated, because the service had no lease when they arrived: the machine was too busy for its heartbeats.\n", r.repeated)
	}
	fmt.Fprintf(&text, "\n## Reads\n\n%d reads per second for %d seconds, with %d regions and %d instances, lists included, beginning ten seconds after the start of the service. The service uses %.2f cores. The goal is a p99 of at most 50 ms.\n\n"+
		"| read | p50, ms | p99, ms |\n|---|--:|--:|\n| all | %s | %s |\n", readRate, readSeconds, lightRegions, r.reads.stored, r.reads.cores,
		ms(quantile(r.reads.times.all(), 0.5)), ms(quantile(r.reads.times.all(), 0.99)))
	for _, name := range r.reads.times.names {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", name, ms(quantile(r.reads.times.byName[name], 0.5)), ms(quantile(r.reads.times.byName[name], 0.99)))
	}
	if err := writeReport(path, text.String()); err != nil {
		return err
	}
	fmt.Print(text.String())
	return nil
}

// rows returns the table of the levels: a name, the values and the goal.
func (r storedReport) rows() [][]string {
	var rows [][]string
	row := func(name, goal string, value func(l level) string) {
		cells := []string{name}
		for _, l := range r.levels {
			cells = append(cells, value(l))
		}
		rows = append(rows, append(cells, goal))
	}
	row("processor time for an instance, ms", "", func(l level) string { return ms(l.processor) })
	row("that of the service with few instances, ms", "", func(l level) string {
		if l.beside == 0 {
			return ""
		}
		return ms(l.beside)
	})
	row("ratio", "≤ 1.05 at 10 000, ≤ 1.1 at 50 000", func(l level) string { return fmt.Sprintf("%.2f", l.ratio()) })
	row("instances created per second", "", func(l level) string { return fmt.Sprintf("%.0f", l.rate) })
	for i, list := range lists {
		row("page of "+list.name+", first and last, ms", list.goal, func(l level) string { return ms(l.pages[i].first) + ", " + l.pages[i].lastText() })
	}
	row("start until ready, s", "≤ 1.5 at 10 000", func(l level) string { return fmt.Sprintf("%.2f", l.start.Seconds()) })
	row("database file, all files of the store, MiB", "≤ 250 at 10 000", func(l level) string { return mib(int(l.database)) + ", " + mib(int(l.all)) })
	row("memory, its part that is not mapped from files, MiB", "≤ 400 at 10 000", func(l level) string { return mib(l.memory.resident) + ", " + mib(l.memory.anonymous) })
	row("the same after a minute without requests, MiB", "≤ 400 at 10 000", func(l level) string { return l.ifRested(mib(l.rested.resident) + ", " + mib(l.rested.anonymous)) })
	row("heap in use, then, MiB", "", func(l level) string { return mib(l.memory.heap) + l.ifRested(", "+mib(l.rested.heap)) })
	return rows
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", milliseconds(d)) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ifRested returns a text, or nothing if the level had no minute without requests.
func (l level) ifRested(text string) string {
	if l.stored != restedLevel {
		return ""
	}
	return text
}

func (p pageTimes) lastText() string {
	if p.last == 0 {
		return "not reached"
	}
	return ms(p.last)
}

func mib(bytes int) string { return fmt.Sprintf("%.0f", mebibytes(bytes)) }

func mebibytes(bytes int) float64 { return float64(bytes) / (1 << 20) }

// writeReport writes a report, followed by its notes, which are the file of the
// same name with -notes appended.
func writeReport(path, text string) error {
	notes, err := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + "-notes.md")
	if err == nil {
		text += "\n" + string(notes)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
