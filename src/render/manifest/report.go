package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// place is a line of a file of the package.
type place struct {
	file string
	line int
}

// report collects faults. Its arguments must not contain values of variables,
// which may be secret.
type report struct {
	found nf.Violations
}

const (
	maxFound = 1000 // violations that are collected
	maxShown = 50   // violations and warnings that are shown to a client
	maxQuote = 200  // bytes of a package's text that a violation quotes
)

func (r *report) add(at place, field, format string, args ...any) {
	if len(r.found) >= maxFound {
		return
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = nf.Clip(arg, maxQuote)
		case error:
			args[i] = nf.Clip(arg.Error(), 2*maxQuote) // the error may contain quotes, too
		}
	}
	r.found = append(r.found, nf.Violation{
		Field: shown(nf.Clip(field, maxQuote)), File: at.file, Line: at.line, Message: shown(fmt.Sprintf(format, args...)),
	})
}

// capped returns the warnings that are shown to a client. If there are too
// many, the last one counts the rest.
func capped(warnings []string, rest string) []string {
	if more := len(warnings) - maxShown; more > 0 {
		return append(warnings[:maxShown:maxShown], fmt.Sprintf("and %d more %s", more, rest))
	}
	return warnings
}

// shown returns a text with control characters replaced, which could otherwise
// control the reader's terminal.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// hidden reports whether a character is not graphic, such as a control
// character.
func hidden(r rune) bool { return !unicode.IsGraphic(r) }

// suggest suggests the intended name for a misspelled one. It compares all
// candidates, so it stops after as many violations as are shown to a client.
func (r *report) suggest(name string, candidates ...string) string {
	if len(r.found) >= maxShown {
		return ""
	}
	return suggestionText(nearest(name, candidates))
}

func (r *report) ok() bool { return len(r.found) == 0 }

// err returns the faults as nf.Violations, ordered by file and line, or nil.
func (r *report) err() error {
	if r.ok() {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b nf.Violation) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	found := slices.CompactFunc(r.found, func(a, b nf.Violation) bool { return a.String() == b.String() }) // an alias repeats the faults of its anchor
	if more := len(found) - maxShown; more > 0 {
		found = append(found[:maxShown], nf.Violation{Message: fmt.Sprintf("and %d more", more)})
	}
	return found
}
