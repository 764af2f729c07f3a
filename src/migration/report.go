package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Result is the result of importing one item.
type Result string

// The results of an item.
const (
	Imported    Result = "imported"
	WouldImport Result = "would be imported"
	Present     Result = "there already" // and equal to the imported one
	Different   Result = "different"     // exists, differs and is unchanged
	Failed      Result = "failed"
	Skipped     Result = "left out" // something that it needs was not imported
)

// Item is the result of one item of the import.
type Item struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Result   Result   `json:"result"`
	Reason   string   `json:"reason,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Report holds the results of an import.
type Report struct {
	Dry      bool                      `json:"dry_run"`
	Items    []Item                    `json:"items"`
	Counts   map[string]map[Result]int `json:"counts"` // by kind
	Warnings []string                  `json:"warnings"`

	kinds []string
}

// NewReport returns a report without items. The kinds of items are in the order of import.
func NewReport(dry bool, kinds ...string) *Report {
	return &Report{Dry: dry, Items: []Item{}, Counts: map[string]map[Result]int{}, Warnings: []string{}, kinds: kinds}
}

// Add adds items and counts them. In a dry run, an imported item would be imported.
func (r *Report) Add(items ...Item) {
	for _, it := range items {
		if it.Result == Imported && r.Dry {
			it.Result = WouldImport
		}
		r.Items = append(r.Items, it)
		if r.Counts[it.Kind] == nil {
			r.Counts[it.Kind] = map[Result]int{}
		}
		r.Counts[it.Kind][it.Result]++
	}
}

// Warn adds a warning that belongs to no item.
func (r *Report) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Err returns nil if everything was imported or was there already.
func (r *Report) Err() error {
	missing := 0
	for _, it := range r.Items {
		if it.Result == Different || it.Result == Failed || it.Result == Skipped {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d items could not be imported: see the report", missing, len(r.Items))
}

// Print writes the report as a table for people, or as JSON.
func (r *Report) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(t, "KIND\tNAME\tRESULT\tREASON")
	for _, it := range r.Items {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", it.Kind, printable(it.Name), it.Result, printable(it.Reason))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, it := range r.Items {
		for _, warning := range it.Warnings {
			fmt.Fprintf(w, "warning: %s %s: %s\n", it.Kind, printable(it.Name), printable(warning))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", printable(warning))
	}
	for _, kind := range r.kinds {
		if line := r.counted(kind); line != "" {
			fmt.Fprintf(w, "%s: %s\n", kind, line)
		}
	}
	if r.Dry {
		fmt.Fprintln(w, "Dry run: nothing was written.")
	}
	return nil
}

func (r *Report) counted(kind string) string {
	var parts []string
	for _, result := range []Result{Imported, WouldImport, Present, Different, Failed, Skipped} {
		if n := r.Counts[kind][result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, result))
		}
	}
	return strings.Join(parts, ", ")
}

// Sort sorts items that were imported concurrently, by kind and name.
func (r *Report) Sort(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(slices.Index(r.kinds, a.Kind), slices.Index(r.kinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
}

// printable replaces control characters and line breaks in foreign text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
