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

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// progress shows how an operation comes along: on a terminal a block of lines
// that is drawn over and over, elsewhere a line for each change. A nil progress
// shows nothing.
type progress struct {
	out    io.Writer
	live   bool
	colour bool
	now    func() time.Time
	report func(operation) // shows each new state, instead of all that

	last  operation
	drawn int             // lines of the block on the screen
	said  map[string]bool // lines that were printed: a state that comes back is no news
}

// progress returns the display on standard error.
func (s *session) progress() *progress {
	return &progress{
		out: s.Stderr, live: s.ErrIsTerminal, now: s.Now, said: map[string]bool{},
		colour: s.ErrIsTerminal && !s.noColor && s.Getenv("NO_COLOR") == "",
	}
}

// show takes the operation's new state.
func (p *progress) show(op operation) {
	if p == nil {
		return
	}
	before := p.last
	p.last = op
	if p.report != nil {
		if !bytes.Equal(before.sent, op.sent) { // a stream that is opened again begins with what is known
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

// redraw draws the block over the one before.
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

// clip cuts a line that would wrap, which would spoil the next redraw.
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

// paint colours the mark that a line begins with.
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

// block is the operation as lines: its state, then its steps.
func (p *progress) block() []string {
	op := p.last
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", op.title(), op.elapsed(p.now()))
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for i, st := range op.Steps {
		fmt.Fprintf(t, "  %s %s\t%s\t%s\t%s\n", op.mark(i), oneLine(st.Name), op.count(i),
			took(span(st.Started, st.Finished, p.now())), flat(op.message(i)))
	}
	_ = t.Flush() // a strings.Builder does not fail
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// changes are the lines that tell what is new in an operation since before.
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

// title says "instantiate f00d: running".
func (op operation) title() string {
	return fmt.Sprintf("%s %s: %s", op.Verb, op.Instance, op.state())
}

// verb says "terminate, leaving the objects".
func (op operation) verb() string {
	switch {
	case op.Orphan:
		return string(op.Verb) + ", leaving the objects"
	case op.Claims == claimsDelete:
		return string(op.Verb) + ", with volume claims"
	}
	return string(op.Verb)
}

// phase says "running", or "undoing".
func (op operation) phase() string {
	if op.Undoing && !op.State.Final() {
		return "undoing"
	}
	return string(op.State)
}

// state says "running", or "running, waiting: cloud region east is unreachable".
func (op operation) state() string {
	if op.Waiting == nil || op.State.Final() {
		return op.phase()
	}
	return op.phase() + ", " + op.Waiting.String()
}

func (op operation) elapsed(now time.Time) string { return took(span(op.Accepted, op.Finished, now)) }

// span is the time from started to finished, or to now when it goes on.
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

// stepState says how the i-th step went. A step that was running when the
// operation failed is the one that failed.
func (op operation) stepState(i int) string {
	switch st := op.Steps[i]; {
	case st.Failed, op.failedIn(i):
		return stepFailed
	case !st.Finished.IsZero():
		return stepDone
	case op.State == nf.OperationFailed || op.State == nf.OperationCancelled:
		return stepFailed
	}
	return stepRunning
}

// failedIn reports whether the i-th step is the one that failed the operation.
func (op operation) failedIn(i int) bool {
	return op.Failure != nil && op.Failure.Step == op.Steps[i].Name
}

// mark is the state of the i-th step as one character.
func (op operation) mark(i int) string {
	return map[string]string{stepDone: markGood, stepFailed: markBad, stepRunning: markRunning}[op.stepState(i)]
}

// message is the message of the i-th step, unless the operation's failure, which
// is shown in full elsewhere, says the same.
func (op operation) message(i int) string {
	if message := op.Steps[i].Message; !op.failedIn(i) || !strings.Contains(op.Failure.Message, message) {
		return message
	}
	return ""
}

// count says "3/4", how many of the step's objects are as they should be, and
// "4" when the step is done.
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

// line says "databases: 3/4", or "databases: done after 3s". What is waited for
// changes too often for a log; the count is what matters there.
func (op operation) line(i int) string {
	st := op.Steps[i]
	if st.Finished.IsZero() {
		return joined(st.Name, op.count(i))
	}
	return joined(st.Name, op.stepState(i)+" after "+took(st.Finished.Sub(op.Accepted)), op.failureOf(i))
}

// failureOf is the message of the i-th step, if it failed.
func (op operation) failureOf(i int) string {
	if op.stepState(i) != stepFailed {
		return ""
	}
	return op.message(i)
}

// joined joins those of the parts that are not empty with ": ".
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}
