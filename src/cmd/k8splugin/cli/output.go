package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"
)

// format says how an answer is printed.
type format string

const (
	formatTable format = "table"
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func formats() []string {
	return []string{string(formatTable), string(formatWide), string(formatJSON), string(formatYAML)}
}

// String, Set and Type make a format a flag.
func (f *format) String() string {
	if *f == "" {
		return string(formatTable)
	}
	return string(*f)
}

func (f *format) Set(text string) error {
	if !slices.Contains(formats(), text) {
		return fmt.Errorf("want one of %s", strings.Join(formats(), ", "))
	}
	*f = format(text)
	return nil
}

func (f *format) Type() string { return "format" }

// people reports whether answers are printed for people.
func (f format) people() bool { return f != formatJSON && f != formatYAML }

// print prints an answer: as the server sent it for -o json, translated for
// -o yaml, and by the function otherwise.
func (s *session) print(a answer, show func(w io.Writer) error) error {
	out := a.body
	switch s.output {
	case formatJSON:
	case formatYAML:
		text, err := yaml.JSONToYAML(a.body)
		if err != nil {
			return &exitError{exitNoServer, fmt.Errorf("cannot read the server's answer: %w", err)}
		}
		out = text
	default:
		return show(s.Stdout)
	}
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(slices.Clip(out), '\n')
	}
	_, err := s.Stdout.Write(out)
	return err
}

// column is one column of a table.
type column[T any] struct {
	head string
	wide bool // shown with -o wide only
	cell func(T) string
}

// printAll prints a collection as a table with a row for each item.
func printAll[T any](s *session, p page, columns []column[T]) error {
	a, err := p.answer()
	if err != nil {
		return err
	}
	return s.print(a, func(w io.Writer) error {
		items, err := decodeAll[T](p)
		if err != nil {
			return err
		}
		if p.next != "" {
			defer fmt.Fprintf(s.Stderr, "there are more: --marker %s\n", p.next)
		}
		return table(w, s.output == formatWide, columns, items)
	})
}

// printOne prints one thing as a table with a single row.
func printOne[T any](s *session, a answer, columns []column[T]) error {
	return s.print(a, func(w io.Writer) error {
		var item T
		if err := a.decode(&item); err != nil {
			return err
		}
		return table(w, s.output == formatWide, columns, []T{item})
	})
}

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
	row(func(c column[T]) string { return c.head })
	for _, item := range items {
		row(func(c column[T]) string { return oneLine(c.cell(item)) })
	}
	return t.Flush()
}

// field is one line of what is shown of a single thing.
type field struct{ name, value string }

// printFields prints names and values side by side, without those that are empty.
func printFields(w io.Writer, list []field) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range list {
		if f.value != "" {
			fmt.Fprintf(t, "%s:\t%s\n", f.name, oneLine(f.value))
		}
	}
	return t.Flush()
}

// printable replaces what could drive a terminal; lines and tabs stay.
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

// oneLine is flat, and never empty.
func oneLine(text string) string { return cmp.Or(flat(text), "-") }

// pairsOf prints a map as k=v,k=v in the order of its keys.
func pairsOf[V any](m map[string]V) string {
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, m[k]))
	}
	return strings.Join(parts, ",")
}

// age prints how long ago something was, in one unit.
func (s *session) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return short(s.Now().Sub(t))
}

// stamp prints a time, and how long ago it was.
func (s *session) stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + " (" + s.age(t) + " ago)"
}

// until prints a time that is to come, and how long that is; of one that is past
// it says so.
func (s *session) until(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(s.Now()):
		return t.UTC().Format(time.RFC3339) + " (in " + short(t.Sub(s.Now())) + ")"
	}
	return s.stamp(t)
}

// short prints a duration in its largest unit.
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

// took prints how long something took, to a tenth of a second while that
// matters.
func took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	}
	return short(d)
}

// size prints a number of bytes.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
