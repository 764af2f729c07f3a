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

// Report describes the content of an audit file.
type Report struct {
	Entries int
	Torn    int    // lines left incomplete by a crash: not entries; a request announced by one was not carried out
	First   string // the hash that the first entry continues; empty: the file is the first of an audit log
	Last    string // the hash of the last line, which the next file must continue
}

// Verify reads one audit file, or several concatenated ones. It returns
// nf.Invalid with a violation for every line that does not continue the one
// before it.
//
// Each of the known hashes must be the hash of a line. They come from the Prev
// of entries in the store, or from the log. Without them, a truncated end
// cannot be detected.
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
			return v.report, fmt.Errorf("cannot read the audit file: %w", err)
		}
		if len(text) > 0 {
			v.line(text)
		}
		if err != nil {
			return v.end()
		}
	}
}

// verification is the state of reading a file.
type verification struct {
	report Report
	number int
	torn   bool            // the last line is not an entry: the next line must contain its hash
	known  map[string]bool // known hashes that were not found yet
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
			v.refuse("is not an audit entry, and neither is the previous line")
		}
		v.torn = true
		v.report.Torn++
	case v.number == 1:
		v.report.First = e.Prev
		v.report.Entries++
	default:
		if e.Prev != v.report.Last {
			v.refuse("does not continue the previous line: one of the two was changed, or lines between them were removed")
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
		v.wrong = append(v.wrong, nf.Violation{Message: fmt.Sprintf("%d of the known lines are missing", n)})
	}
	if len(v.wrong) > 0 {
		return v.report, nf.E(nf.Invalid, "verify", "the audit log", v.wrong)
	}
	return v.report, nil
}
