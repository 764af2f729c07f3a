package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Report is what an audit file says of itself.
type Report struct {
	Entries int
	Torn    int    // lines that a process died over: no entry, and nothing was done that they would have told
	First   string // the hash that the first entry continues; empty: it begins an audit
	Last    string // the hash of the last line: what the next file has to continue
}

// Verify reads an audit file, or several of them one after the other, and
// returns nf.Invalid with a violation for every line that does not continue the
// one before it. Of the hashes that are known, from the Prev of entries in the
// store or from the log, each must be that of a line: an end that was cut off
// can be told from nothing else.
func Verify(r io.Reader, known ...string) (Report, error) {
	v := verification{known: map[string]bool{}}
	for _, hash := range known {
		if hash != "" {
			v.known[hash] = true
		}
	}
	lines := bufio.NewReader(r)
	for {
		text, err := lines.ReadSlice('\n')
		var long []byte
		for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine {
			long = append(long, text...)
			text, err = lines.ReadSlice('\n')
		}
		text = append(slices.Clip(long), text...)
		if err != nil && !errors.Is(err, io.EOF) {
			return v.report, fmt.Errorf("cannot read the audit: %w", err)
		}
		if len(text) > 0 {
			v.line(text)
		}
		if err != nil {
			return v.end()
		}
	}
}

// verification is how far a file has been read.
type verification struct {
	report Report
	number int
	torn   bool            // the last line is no entry: the next one must vouch for it
	known  map[string]bool // that have not been met
	wrong  nf.Violations
}

func (v *verification) line(text []byte) {
	v.number++
	whole := text[len(text)-1] == '\n'
	if whole {
		text = text[:len(text)-1]
	}
	var e nf.AuditEntry
	switch {
	case !whole || json.Unmarshal(text, &e) != nil:
		if v.torn {
			v.refuse("is no entry, and neither is the one before it")
		}
		v.torn = true
		v.report.Torn++
	case v.number == 1:
		v.report.First = e.Prev
		v.report.Entries++
	default:
		if e.Prev != v.report.Last {
			v.refuse("does not continue the one before it: either was changed, or there were others between them")
		}
		v.torn = false
		v.report.Entries++
	}
	v.report.Last = hashOf(text)
	delete(v.known, v.report.Last)
}

func (v *verification) refuse(message string) {
	v.wrong = append(v.wrong, nf.Violation{Line: v.number, Field: fmt.Sprintf("line %d", v.number), Message: message})
}

func (v *verification) end() (Report, error) {
	delete(v.known, v.report.First)
	if n := len(v.known); n > 0 {
		v.wrong = append(v.wrong, nf.Violation{Message: fmt.Sprintf("%d of the lines that are known to have been written are not there", n)})
	}
	if len(v.wrong) > 0 {
		return v.report, nf.E(nf.Invalid, "trust", "the audit", v.wrong)
	}
	return v.report, nil
}
