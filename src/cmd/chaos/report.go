package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tally counts what a snapshot contains.
func (t *testRun) tally(w snapshot) {
	for _, r := range w.requests {
		if r.Operation != "" && r.Verb != cancel {
			t.counts.add("operations accepted", 1)
		}
	}
	for _, op := range w.operations {
		if op.unheeded() {
			t.counts.add("operations never accepted", 1)
			continue
		}
		t.counts.add("operations "+op.State, 1)
		if op.Attempts > 1 {
			t.counts.add("operations resumed", 1)
		}
	}
	for _, in := range w.instances {
		t.counts.add("instances "+in.State, 1)
	}
	t.counts.add("records left for the janitor", len(w.staleRecords))
	for _, p := range t.rig.servers {
		t.counts.add("operations taken over", grepCount(p.log, `"msg":"operation taken over"`))
		t.counts.add("operations left to the replica that took them over", grepCount(p.log, `"msg":"operation left to the replica that has taken it over"`))
		t.counts.add("leases lost", grepCount(p.log, `"msg":"this replica has lost its lease`))
	}
	t.rig.mu.Lock()
	defer t.rig.mu.Unlock()
	t.counts.add("processes that ended by themselves", len(t.rig.deaths))
}

// report prints the counts.
func (t *testRun) report() {
	numbers, spans := t.counts.all()
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range sortedKeys(numbers) {
		fmt.Fprintf(table, "%s\t%d\t\n", name, numbers[name])
	}
	for _, name := range sortedKeys(spans) {
		fmt.Fprintf(table, "%s\t%s\t\n", name, spans[name].Round(time.Millisecond))
	}
	_ = table.Flush()
	t.rig.mu.Lock()
	defer t.rig.mu.Unlock()
	for _, death := range t.rig.deaths {
		fmt.Fprintln(t.out, "ended by itself:", death)
	}
	fmt.Fprintf(t.out, "to repeat it: -scenario %s -seed %d -kills %d -duration %s -instances %d -operations %d -quorum-loss=%t -lease-duration %s\n",
		t.options.scenario, t.options.seed, t.options.kills, t.options.duration, t.options.instances, t.options.operations, t.options.quorumLoss, t.options.lease)
}

// explain prints the findings, each with the record of its operation and the
// servers' log lines about it.
func (t *testRun) explain(ctx context.Context, findings []finding) {
	told := map[string]bool{}
	for _, f := range findings {
		fmt.Fprintf(t.out, "\nBROKEN %s\n", f)
		if f.Operation == "" || told[f.Operation] {
			continue
		}
		told[f.Operation] = true
		if a, err := t.client.insist(ctx, call{method: http.MethodGet, path: "/v1/operations/" + f.Operation}); err == nil {
			fmt.Fprintf(t.out, "    record %s\n", bytes.TrimSpace(a.body))
		}
		for _, line := range t.rig.grep(f.Operation, 25) {
			fmt.Fprintln(t.out, "   ", line)
		}
	}
}

// crashes returns the panics and data races in the servers' logs.
func (r *rig) crashes() []finding {
	var out []finding
	for _, p := range r.servers {
		for _, word := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE", `"msg":"panic`} {
			if n := grepCount(p.log, word); n > 0 {
				out = append(out, finding{Rule: "crash", Text: fmt.Sprintf("the log of %s has %q %d times", p.name, word, n)})
			}
		}
	}
	return out
}

// grep returns the last lines of the servers' logs that contain a word, ordered
// by time.
func (r *rig) grep(word string, last int) []string {
	type logged struct{ time, text string }
	var found []logged
	for _, p := range r.servers {
		eachLine(p.log, func(line []byte) {
			if !bytes.Contains(line, []byte(word)) {
				return
			}
			var entry struct{ Time string }
			_ = json.Unmarshal(line, &entry) // a line that is not a log entry has no time
			found = append(found, logged{entry.Time, p.name + " " + string(line)})
		})
	}
	slices.SortStableFunc(found, func(a, b logged) int { return strings.Compare(a.time, b.time) })
	var out []string
	for _, l := range found[max(0, len(found)-last):] {
		out = append(out, l.text)
	}
	return out
}

func grepCount(path, word string) int {
	n := 0
	eachLine(path, func(line []byte) {
		if bytes.Contains(line, []byte(word)) {
			n++
		}
	})
	return n
}

// eachLine calls f with each readable line of a file.
func eachLine(path string, f func([]byte)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		f(bytes.TrimSpace(line))
		if err == io.EOF || err != nil {
			return
		}
	}
}
