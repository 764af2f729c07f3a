package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// progress displays an operation's progress. On a terminal it redraws a block
// of lines; otherwise it prints a line for each change. A nil progress displays
// nothing.
type progress struct {
	out    io.Writer
	live   bool
	colour bool
	now    func() time.Time
	report func(operation) // prints each new state instead

	last  operation
	drawn int             // lines of the block on the screen
	said  map[string]bool // printed lines, so that a state that returns is not printed again
}

// progress returns the display on standard error.
func (pr *printer) progress() *progress {
	return &progress{
		out: pr.stderr, live: pr.errTerminal, colour: pr.colour(pr.errTerminal), now: pr.clock, said: map[string]bool{},
	}
}

// states returns the display of a command that only watches: each state in the
// output format for programs, or the progress.
func (pr *printer) states() *progress {
	if pr.format.people() || pr.format.name == formatName {
		return pr.progress()
	}
	return &progress{report: pr.report}
}

// show displays a new state of the operation.
func (p *progress) show(op operation) {
	if p == nil {
		return
	}
	before := p.last
	p.last = op
	if p.report != nil {
		if !bytes.Equal(before.sent, op.sent) { // a reopened stream starts with the known state
			p.report(op)
		}
		return
	}
	if p.live {
		p.redraw()
		return
	}
	for _, line := range changes(before, op) {
		if !p.said[line] {
			fmt.Fprintln(p.out, flat(line))
		}
		p.said[line] = true
	}
}

// redraw replaces the previous block.
func (p *progress) redraw() {
	if p == nil || !p.live || p.last.ID == "" {
		return
	}
	width, height := sizeOf(p.out)
	lines := p.block()
	if room := max(height-2, 1); len(lines) > room {
		lines = append(lines[:1], lines[len(lines)-room+1:]...)
	}
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + p.paint(clip(line, width)) + "\n")
	}
	b.WriteString("\x1b[J")
	p.drawn = len(lines)
	_, _ = io.WriteString(p.out, b.String())
}

// sizeOf returns the columns and rows of a terminal.
func sizeOf(w io.Writer) (width, height int) {
	if f, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// clip cuts a line that would wrap, because a wrapped line breaks the next
// redraw.
func clip(line string, width int) string {
	if runes := []rune(line); len(runes) >= width {
		return string(runes[:max(width-2, 0)]) + "…"
	}
	return line
}

// The marks of steps and objects on a terminal.
const (
	markGood    = "✔"
	markBad     = "✘"
	markRunning = "•"
)

// paint colors the mark at the start of a line.
func (p *progress) paint(line string) string {
	if !p.colour {
		return line
	}
	for mark, code := range markColours() {
		if rest, ok := strings.CutPrefix(line, "  "+mark); ok {
			return "  " + code + mark + noColour + rest
		}
	}
	return line
}

const (
	red      = "\x1b[31m"
	green    = "\x1b[32m"
	yellow   = "\x1b[33m"
	noColour = "\x1b[0m"
)

func markColours() map[string]string {
	return map[string]string{markGood: green, markBad: red, markRunning: yellow}
}

// block returns the lines for the operation: its state, then its steps.
func (p *progress) block() []string {
	op := p.last
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", op.title(), op.elapsed(p.now()))
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for i, st := range op.Steps {
		fmt.Fprintf(t, "  %s %s\t%s\t%s\t%s\n", op.mark(i), oneLine(st.Title), op.count(i),
			took(span(st.Started, st.Finished, p.now())), flat(op.message(i)))
	}
	_ = t.Flush() // a strings.Builder does not fail
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// changes returns a line for each change of an operation since before.
func changes(before, op operation) []string {
	var lines []string
	if op.state() != before.state() && !op.State.Final() {
		lines = append(lines, op.title())
	}
	for i := range op.Steps {
		if line := op.line(i); i >= len(before.Steps) || line != before.line(i) {
			lines = append(lines, line)
		}
	}
	if op.State.Final() && op.State != before.State {
		lines = append(lines, op.title()+" after "+op.elapsed(op.Finished))
	}
	return lines
}

// title returns "instantiate f00d: running".
func (op operation) title() string {
	return fmt.Sprintf("%s %s: %s", op.Verb, op.object(), op.state())
}

// verb returns "terminate, leaving the objects".
func (op operation) verb() string {
	switch {
	case op.Orphan:
		return string(op.Verb) + ", leaving the objects"
	case op.Claims == wire.ClaimsDelete:
		return string(op.Verb) + ", with volume claims"
	case op.KeepHosts:
		return string(op.Verb) + ", leaving the hosts"
	}
	return string(op.Verb)
}

// phase returns "running", or "undoing".
func (op operation) phase() string {
	if op.Undoing && !op.State.Final() {
		return "undoing"
	}
	return string(op.State)
}

// state returns "running", or "running, waiting: cloud region east is
// unreachable".
func (op operation) state() string {
	if op.Waiting == nil || op.State.Final() {
		return op.phase()
	}
	return op.phase() + ", " + op.waiting()
}

func (op operation) elapsed(now time.Time) string { return took(span(op.Accepted, op.Finished, now)) }

// span returns the time from started to finished, or to now if it is still
// running.
func span(started, finished, now time.Time) time.Duration {
	if started.IsZero() {
		return 0
	}
	if finished.IsZero() {
		finished = now
	}
	return finished.Sub(started)
}

// The states of steps.
const (
	stepDone    = "done"
	stepFailed  = "failed"
	stepRunning = "running"
)

// stepState returns the state of the i-th step.
func (op operation) stepState(i int) string {
	switch st := op.Steps[i]; {
	case st.Failed:
		return stepFailed
	case !st.Finished.IsZero():
		return stepDone
	}
	return stepRunning
}

// mark returns the state of the i-th step as one character.
func (op operation) mark(i int) string {
	return map[string]string{stepDone: markGood, stepFailed: markBad, stepRunning: markRunning}[op.stepState(i)]
}

// message returns the message of the i-th step. It returns "" if the
// operation's failure, which is shown elsewhere, contains it.
func (op operation) message(i int) string {
	if op.Steps[i].InFailure {
		return ""
	}
	return op.Steps[i].Message
}

// count returns "3/4", the number of ready objects of the step, or "4" if the
// step is done.
func (op operation) count(i int) string {
	switch st := op.Steps[i]; {
	case st.Objects == 0:
		return ""
	case op.stepState(i) == stepDone:
		return strconv.Itoa(st.Objects)
	default:
		return fmt.Sprintf("%d/%d", st.Current, st.Objects)
	}
}

// line returns "databases: 3/4", or "databases: done after 3s". It omits the
// objects that the step waits for, because they change too often for a log.
func (op operation) line(i int) string {
	st := op.Steps[i]
	if st.Finished.IsZero() {
		return joined(st.Title, op.count(i))
	}
	return joined(st.Title, op.stepState(i)+" after "+took(st.Finished.Sub(op.Accepted)), op.failureOf(i))
}

// failureOf returns the message of the i-th step if it failed.
func (op operation) failureOf(i int) string {
	if op.stepState(i) != stepFailed {
		return ""
	}
	return op.message(i)
}

// joined joins the parts that are not empty with ": ".
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}
