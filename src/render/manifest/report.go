package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// place is a line of a file of the package.
type place struct {
	file string
	line int
}

// report collects what is wrong. What it is told must not contain values of
// variables: they may be secret.
type report struct {
	found nf.Violations
}

const (
	maxFound = 1000 // violations that are kept at all
	maxShown = 50   // violations and warnings that a client gets to see
)

func (r *report) add(at place, field, format string, args ...any) {
	if len(r.found) < maxFound {
		r.found = append(r.found, nf.Violation{Field: field, File: at.file, Line: at.line, Message: fmt.Sprintf(format, args...)})
	}
}

func (r *report) ok() bool { return len(r.found) == 0 }

// err returns what was found as an error of kind nf.Invalid, in the order of
// the files and lines, or nil.
func (r *report) err(op string) error {
	if r.ok() {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b nf.Violation) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	found := slices.Compact(r.found) // an alias repeats what is wrong with its anchor
	if more := len(found) - maxShown; more > 0 {
		found = append(found[:maxShown], nf.Violation{Message: fmt.Sprintf("and %d more", more)})
	}
	return nf.E(nf.Invalid, op, "package", found)
}
