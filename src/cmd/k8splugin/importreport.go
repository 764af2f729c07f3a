package main

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

// importResult is what has become of one thing.
type importResult string

const (
	imported      importResult = "imported"
	wouldImport   importResult = "would be imported"
	importedThere importResult = "there already" // and as it is in ONAP
	importDiffers importResult = "different"     // it is there, is not the same, and stays
	importFailed  importResult = "failed"
	importSkipped importResult = "left out" // something that it needs was not brought over
)

// importItem is one thing that was to be brought over.
type importItem struct {
	Kind     string       `json:"kind"`
	Name     string       `json:"name"`
	Result   importResult `json:"result"`
	Reason   string       `json:"reason,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
}

// importReport is what has become of everything.
type importReport struct {
	Dry      bool                            `json:"dry_run"`
	Items    []importItem                    `json:"items"`
	Counts   map[string]map[importResult]int `json:"counts"` // by kind
	Warnings []string                        `json:"warnings"`
}

func newImportReport(dry bool) *importReport {
	return &importReport{Dry: dry, Items: []importItem{}, Counts: map[string]map[importResult]int{}, Warnings: []string{}}
}

// add tells what has become of things.
func (r *importReport) add(items ...importItem) {
	for _, it := range items {
		if it.Result == imported && r.Dry {
			it.Result = wouldImport
		}
		r.Items = append(r.Items, it)
		if r.Counts[it.Kind] == nil {
			r.Counts[it.Kind] = map[importResult]int{}
		}
		r.Counts[it.Kind][it.Result]++
	}
}

func (r *importReport) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// err is nil when everything was brought over.
func (r *importReport) err() error {
	missing := 0
	for _, it := range r.Items {
		if it.Result == importDiffers || it.Result == importFailed || it.Result == importSkipped {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d could not be brought over: see the report", missing, len(r.Items))
}

func (r *importReport) print(w io.Writer, asJSON bool) error {
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
	for _, kind := range importKinds() {
		if line := r.counted(kind); line != "" {
			fmt.Fprintf(w, "%s: %s\n", kind, line)
		}
	}
	if r.Dry {
		fmt.Fprintln(w, "Nothing was written: it was a dry run.")
	}
	return nil
}

// The kinds of what is brought over, in the order in which that is done.
func importKinds() []string {
	return []string{"record", "definition", "profile", "template", "region", "instance", "configuration"}
}

func (r *importReport) counted(kind string) string {
	var parts []string
	for _, result := range []importResult{imported, wouldImport, importedThere, importDiffers, importFailed, importSkipped} {
		if n := r.Counts[kind][result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, result))
		}
	}
	return strings.Join(parts, ", ")
}

// sort puts the items of what was done side by side into an order.
func sortItems(items []importItem) {
	slices.SortStableFunc(items, func(a, b importItem) int {
		kinds := importKinds()
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
}

// printable keeps what others have written from driving a terminal, and on one
// line.
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
