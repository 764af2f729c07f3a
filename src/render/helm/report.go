package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// report collects what is wrong, and what is odd.
type report struct {
	found    nf.Violations
	warnings []string
	secrets  []string // values that must not be shown
	mask     *strings.Replacer
}

const (
	maxFound = 1000 // violations that are kept at all
	maxShown = 50   // violations and warnings that a client gets to see
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

const shortestSecret = 4 // bytes; a shorter value is part of many words

// hidden masks values in all later violations and warnings, also where they are
// quoted.
func (r *report) hidden(values []string) {
	for _, value := range values {
		quoted := strconv.Quote(value)
		r.secrets = append(r.secrets, value, quoted[1:len(quoted)-1])
	}
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.secrets = slices.Compact(r.secrets)
	pairs := make([]string, 0, 2*len(r.secrets))
	for _, secret := range r.secrets {
		pairs = append(pairs, secret, nf.Masked)
	}
	r.mask = strings.NewReplacer(pairs...)
}

// shown returns a text on one line, without secrets, without what would command
// the terminal that it is shown on, and not too long.
func (r *report) shown(text string) string {
	if r.mask != nil {
		text = r.mask.Replace(text)
	}
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsGraphic(c):
			return unicode.ReplacementChar
		}
		return c
	}, text)
	return clip(text, maxQuote)
}

// clip shortens a text that may be as long as a file.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func (r *report) ok() bool { return len(r.found) == 0 }

// err returns what was found as an error of kind nf.Invalid, in the order of
// the files, lines and fields, or nil.
func (r *report) err(op string) error {
	if r.ok() {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b nf.Violation) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Field, b.Field))
	})
	found := slices.Compact(r.found)
	if more := len(found) - maxShown; more > 0 {
		found = append(found[:maxShown], nf.Violation{Message: fmt.Sprintf("and %d more", more)})
	}
	return nf.E(nf.Invalid, op, "package", found)
}
