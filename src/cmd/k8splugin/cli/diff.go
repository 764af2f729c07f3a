package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// preview is what a request would do.
type preview struct{ wire.Preview }

// differs reports whether anything would change.
func (p preview) differs() bool { return slices.ContainsFunc(p.Changes, differs) }

func differs(c wire.Change) bool { return c.Action != nf.Unchanged && c.Action != nf.Kept }

// writeDiff prints changes like a unified diff: a file for each object, a hunk
// for each field.
func writeDiff(w io.Writer, list []wire.Change, colour bool) error {
	d := diffWriter{out: bufio.NewWriter(w), colour: colour}
	for _, o := range list {
		if differs(o) {
			d.object(o)
		}
	}
	return d.out.Flush()
}

// diffWriter prints lines. The last flush returns the error.
type diffWriter struct {
	out    *bufio.Writer
	colour bool
}

const (
	bold = "\x1b[1m"
	cyan = "\x1b[36m"
)

func (d diffWriter) line(code, text string) {
	text = printable(text)
	if d.colour && code != "" {
		text = code + text + noColour
	}
	_, _ = d.out.WriteString(text + "\n")
}

func (d diffWriter) object(o wire.Change) {
	name := o.APIVersion + " " + o.Kind + " " + o.Name
	if o.Namespace != "" {
		name = o.APIVersion + " " + o.Kind + " " + o.Namespace + "/" + o.Name
	}
	before, after := name, name
	switch o.Action {
	case nf.Created:
		before = "/dev/null"
	case nf.Deleted:
		after = "/dev/null"
	case nf.Configured, nf.Recreated, nf.Unchanged, nf.Kept, nf.Orphaned, nf.Adopted:
	}
	d.line(bold, "--- "+before)
	d.line(bold, "+++ "+after)
	for _, f := range o.Fields {
		d.line(cyan, "@@ "+f.Path+" @@")
		d.field(textLines(f.Old), textLines(f.New))
	}
}

// around is the number of equal context lines around a difference.
const around = 3

// field prints the lines of both sides, with only a few of the equal ones at
// both ends.
func (d diffWriter) field(before, after []string) {
	head, tail := common(before, after)
	for _, line := range before[max(head-around, 0):head] {
		d.line("", " "+line)
	}
	for _, line := range before[head : len(before)-tail] {
		d.line(red, "-"+line)
	}
	for _, line := range after[head : len(after)-tail] {
		d.line(green, "+"+line)
	}
	rest := before[len(before)-tail:]
	for _, line := range rest[:min(around, len(rest))] {
		d.line("", " "+line)
	}
}

// common counts the equal lines at the start and at the end. If both sides are
// equal, the difference is masked and it returns 0.
func common(before, after []string) (head, tail int) {
	if slices.Equal(before, after) {
		return 0, 0
	}
	shorter := min(len(before), len(after))
	for head < shorter && before[head] == after[head] {
		head++
	}
	for tail < shorter-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	return head, tail
}

// textLines splits a JSON value into lines: a string as it is, any other value
// as YAML. An absent value has no lines.
func textLines(v any) []string {
	if v == nil {
		return nil
	}
	text, ok := v.(string)
	if !ok {
		raw := jsonOf(v)
		out, err := yaml.JSONToYAML(raw)
		if err != nil {
			out = raw
		}
		text = string(out)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// summary counts the changes by action.
func (p preview) summary() string {
	count := map[nf.Action]int{}
	for _, o := range p.Changes {
		count[o.Action]++
	}
	text := fmt.Sprintf("%d created, %d configured, %d deleted, %d unchanged",
		count[nf.Created], count[nf.Configured], count[nf.Deleted], count[nf.Unchanged])
	if again := count[nf.Recreated]; again > 0 {
		text += fmt.Sprintf(", %d recreated", again)
	}
	if adopted := count[nf.Adopted]; adopted > 0 {
		text += fmt.Sprintf(", %d adopted", adopted)
	}
	if stay := count[nf.Kept] + count[nf.Orphaned]; stay > 0 {
		text += fmt.Sprintf(", %d left in place", stay)
	}
	return text
}
