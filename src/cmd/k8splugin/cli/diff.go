package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// differs reports whether anything would change.
func (p preview) differs() bool {
	for _, o := range p.Changes {
		if o.differs() {
			return true
		}
	}
	return false
}

func (o object) differs() bool { return o.Action != nf.Unchanged && o.Action != nf.Kept }

// writeDiff prints changes in the manner of a unified diff: a file for each
// object, a hunk for each field.
func writeDiff(w io.Writer, list []object, colour bool) error {
	d := diffWriter{out: bufio.NewWriter(w), colour: colour}
	for _, o := range list {
		if o.differs() {
			d.object(o)
		}
	}
	return d.out.Flush()
}

// diffWriter prints lines; what goes wrong is told by the last flush.
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

func (d diffWriter) object(o object) {
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
	case nf.Configured, nf.Recreated, nf.Unchanged, nf.Kept, nf.Orphaned:
	}
	d.line(bold, "--- "+before)
	d.line(bold, "+++ "+after)
	for _, f := range o.Fields {
		d.line(cyan, "@@ "+f.Path+" @@")
		d.field(textLines(f.Old), textLines(f.New))
	}
}

// around is how many equal lines are shown beside those that differ.
const around = 3

// field prints the lines of both sides, of which equal ones at the beginning
// and the end are left out but for a few.
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

// common counts the equal lines at the beginning and at the end. Sides that are
// equal altogether differ in what is masked, and have none.
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

// textLines is a JSON value as lines: a text as it is, anything else as YAML. A
// value that is absent has none.
func textLines(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		out, err := yaml.JSONToYAML(raw)
		if err != nil {
			out = raw
		}
		text = string(out)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// summary counts the changes by what is done.
func (p preview) summary() string {
	count := map[nf.Action]int{}
	for _, o := range p.Changes {
		count[o.Action]++
	}
	text := fmt.Sprintf("%d created, %d configured, %d deleted, %d unchanged",
		count[nf.Created], count[nf.Configured], count[nf.Deleted], count[nf.Unchanged])
	if again := count[nf.Recreated]; again > 0 {
		text += fmt.Sprintf(", %d deleted and made again", again)
	}
	return text
}
