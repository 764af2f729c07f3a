package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// report collects faults and warnings.
type report struct {
	found    nf.Violations
	warnings []string
	secrets  []string // values that must not be shown
	mask     nf.Redactor
}

const (
	maxFound = 1000 // violations that are collected
	maxShown = 50   // violations and warnings that are shown to a client
	maxQuote = 400  // bytes of a message
)

// place is a line of a file of the package; line 0 is the file as a whole.
type place struct {
	file string
	line int
}

func (r *report) add(at place, field, format string, args ...any) {
	if len(r.found) >= maxFound {
		return
	}
	r.found = append(r.found, nf.Violation{
		Field: r.shown(field), File: r.shown(at.file), Line: at.line, Message: r.shown(fmt.Sprintf(format, args...)),
	})
}

func (r *report) warn(format string, args ...any) {
	text := r.shown(fmt.Sprintf(format, args...))
	if len(r.warnings) < maxShown && !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// hide masks values in all later violations and warnings.
func (r *report) hide(values []string) {
	r.secrets = append(r.secrets, values...)
	r.mask = nf.NewRedactor(r.secrets)
}

// shown returns a text on one line, without secrets, with control characters
// replaced, and with limited length.
func (r *report) shown(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsGraphic(c):
			return unicode.ReplacementChar
		}
		return c
	}, r.mask.Text(text))
	return nf.Clip(text, maxQuote)
}

func (r *report) ok() bool { return len(r.found) == 0 }

// err returns the faults as an error of kind nf.Invalid, ordered by file, line
// and field, or nil.
func (r *report) err(op string) error {
	if r.ok() {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b nf.Violation) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Field, b.Field))
	})
	found := slices.CompactFunc(r.found, func(a, b nf.Violation) bool { return a.String() == b.String() })
	if more := len(found) - maxShown; more > 0 {
		found = append(found[:maxShown], nf.Violation{Message: fmt.Sprintf("and %d more", more)})
	}
	return nf.E(nf.Invalid, op, "package", found)
}
