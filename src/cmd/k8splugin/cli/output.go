package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// printer prints responses on standard output, and warnings and progress on
// standard error.
type printer struct {
	stdout, stderr           io.Writer
	outTerminal, errTerminal bool // the stream is a terminal
	colourless               bool // the environment forbids color
	clock                    clock

	format    format
	noColor   bool
	noHeaders bool // of lists
}

func (pr *printer) define(flags *pflag.FlagSet) {
	flags.VarP(&pr.format, "output", "o", "output format: "+strings.Join(formats(), ", "))
	flags.BoolVar(&pr.noColor, "no-color", false, "print without color (env NO_COLOR)")
}

// colour reports whether color may be written to a stream.
func (pr *printer) colour(terminal bool) bool {
	return terminal && !pr.noColor && !pr.colourless
}

// inFormat has an error reported as JSON if that is the output format.
func (pr *printer) inFormat(err error) error {
	if err == nil || pr.format.name != formatJSON || errors.Is(err, errSilent) {
		return err
	}
	if all, ok := errors.AsType[multiError](err); ok {
		documents := make(multiError, len(all))
		for i, one := range all {
			documents[i] = asJSON{one}
		}
		return documents
	}
	return asJSON{err}
}

func (pr *printer) warn(texts ...string) {
	for _, text := range texts {
		fmt.Fprintf(pr.stderr, "warning: %s\n", printable(text))
	}
}

// print prints a response: as the server sent it for -o json, converted for -o
// yaml, by the user's template, and by show otherwise.
func (pr *printer) print(a answer, show func(w io.Writer) error) error {
	out := a.body
	switch pr.format.name {
	case formatJSON:
	case formatColumns:
		return printColumns(pr, [][]byte{a.body})
	case formatJSONPath:
		return printPath(pr.stdout, pr.format.path, a.body)
	case formatName:
		return usagef("-o name cannot be used here: the output is not an object or a list of objects")
	case formatYAML:
		text, err := yaml.JSONToYAML(a.body)
		if err != nil {
			return &exitError{exitNoServer, fmt.Errorf("cannot read the server's response: %w", err)}
		}
		out = text
	default:
		return show(pr.stdout)
	}
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(slices.Clip(out), '\n')
	}
	_, err := pr.stdout.Write(out)
	return err
}

// column is one column of a table.
type column[T any] struct {
	head string
	wide bool // shown with -o wide only
	cell func(T) string
}

// printAll prints a collection as a table with a row for each item.
func printAll[T any](pr *printer, p page, columns func(clock) []column[T]) error {
	switch {
	case pr.format.name == formatColumns:
		return printColumns(pr, p.items)
	case pr.format.people() || pr.format.name == formatName:
		items, err := decodeAll[T](p)
		if err != nil {
			return err
		}
		if p.next != "" {
			defer fmt.Fprintf(pr.stderr, "more items: --marker %s\n", p.next)
		}
		return printItems(pr, columns(pr.clock), items)
	}
	a, err := p.answer()
	if err != nil {
		return err
	}
	return pr.print(a, nil)
}

// printOne prints an object as a table with one row.
func printOne[T any](pr *printer, a answer, columns func(clock) []column[T]) error {
	if !pr.format.people() && pr.format.name != formatName {
		return pr.print(a, nil)
	}
	var item T
	if err := a.decode(&item); err != nil {
		return err
	}
	return printItems(pr, columns(pr.clock), []T{item})
}

// printItems prints a table for people, or the first cell of each row as the item's
// name.
func printItems[T any](pr *printer, columns []column[T], items []T) error {
	if pr.format.name == formatName {
		for _, item := range items {
			fmt.Fprintln(pr.stdout, flat(columns[0].cell(item)))
		}
		return nil
	}
	if pr.noHeaders {
		columns = slices.Clone(columns)
		for i := range columns {
			columns[i].head = ""
		}
	}
	return table(pr.stdout, pr.format.name == formatWide, columns, items)
}

// section prints a table below others, unless it is empty.
func section[T any](w io.Writer, wide bool, items []T, columns []column[T]) error {
	if len(items) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, wide, columns, items)
}

// table prints a table. It has no line of heads if all of them are empty.
func table[T any](w io.Writer, wide bool, columns []column[T], items []T) error {
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool { return c.wide && !wide })
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	row := func(cell func(column[T]) string) {
		for i, c := range shown {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell(c))
		}
		fmt.Fprintln(t)
	}
	if slices.ContainsFunc(shown, func(c column[T]) bool { return c.head != "" }) {
		row(func(c column[T]) string { return c.head })
	}
	for _, item := range items {
		row(func(c column[T]) string { return oneLine(c.cell(item)) })
	}
	return t.Flush()
}

// field is one line of the output for an object.
type field struct{ name, value string }

// printFields prints names and values in two columns, and omits empty values.
func printFields(w io.Writer, list []field) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range list {
		if f.value != "" {
			fmt.Fprintf(t, "%s:\t%s\n", f.name, oneLine(f.value))
		}
	}
	return t.Flush()
}

// printable replaces terminal control characters, but keeps newlines and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}

// flat makes a text printable and puts it on one line.
func flat(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// oneLine is flat, with "-" for an empty text.
func oneLine(text string) string { return cmp.Or(flat(text), "-") }

// pairsOf formats a map as k=v,k=v, sorted by key.
func pairsOf[V any](m map[string]V) string {
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, m[k]))
	}
	return strings.Join(parts, ",")
}

// clock returns the time that ages are relative to.
type clock func() time.Time

// age formats the time since t in one unit.
func (now clock) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return short(now().Sub(t))
}

// stamp formats a time and how long ago it was.
func (now clock) stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + now.age(t) + " ago)"
}

// until formats a future time and the time until it. It marks a time that has
// passed.
func (now clock) until(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now()):
		return t.UTC().Format(time.RFC3339) + " (in " + short(t.Sub(now())) + ")"
	}
	return now.stamp(t)
}

// short formats a duration in its largest unit.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// took formats a duration, with tenths of a second below 10 s.
func took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	}
	return short(d)
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
