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

// report collects what is wrong. What it is told must not contain values of
// variables: they may be secret.
type report struct {
	found nf.Violations
}

const (
	maxFound = 1000 // violations that are kept at all
	maxShown = 50   // violations and warnings that a client gets to see
	maxQuote = 200  // bytes of a text of the package that a violation repeats
)

func (r *report) add(at place, field, format string, args ...any) {
	if len(r.found) >= maxFound {
		return
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = clip(arg, maxQuote)
		case error:
			args[i] = clip(arg.Error(), 2*maxQuote) // it may quote, too
		}
	}
	r.found = append(r.found, nf.Violation{
		Field: shown(clip(field, maxQuote)), File: at.file, Line: at.line, Message: shown(fmt.Sprintf(format, args...)),
	})
}

// capped returns as many warnings as a client gets to see, the last of which
// counts the rest.
func capped(warnings []string, rest string) []string {
	if more := len(warnings) - maxShown; more > 0 {
		return append(warnings[:maxShown:maxShown], fmt.Sprintf("and %d more %s", more, rest))
	}
	return warnings
}

// clip shortens a text that may be as long as a file.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shown returns a text without what would command the terminal that it is shown
// on.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// hidden reports whether a character has no shape: it controls something.
func hidden(r rune) bool { return !unicode.IsGraphic(r) }

// meant suggests what was meant by a misspelt name. It compares all candidates,
// so it does so for as many violations as a client gets to see.
func (r *report) meant(name string, candidates ...string) string {
	if len(r.found) >= maxShown {
		return ""
	}
	return meant(nearest(name, candidates))
}

// unknownKey reports a key of the metadata that has no meaning where it is.
func (r *report) unknownKey(key *node, allowed ...string) {
	r.add(key.at, "", "unknown key %q%s; allowed: %s", key.text, r.meant(key.text, allowed...), strings.Join(allowed, ", "))
}

func (r *report) ok() bool { return len(r.found) == 0 }

// err returns what was found as nf.Violations, in the order of the files and
// lines, or nil.
func (r *report) err() error {
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
	return found
}
