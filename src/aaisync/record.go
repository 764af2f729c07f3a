package aaisync

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
)

const (
	firstPause     = time.Second // after A&AI did not respond; doubled after each failure
	longestPause   = 5 * time.Minute
	firstWait      = 30 * time.Second // for an object of others
	longestWait    = 15 * time.Minute
	deniedPause    = 5 * time.Minute
	gonePause      = 500 * time.Millisecond // between readings of a record that is to go
	unknownVersion = ""
)

// Condition is the relation between a subject and A&AI.
type Condition string

// The conditions.
const (
	Clean   Condition = "clean"   // A&AI is equal
	Dirty   Condition = "dirty"   // it is to be written, or to be deleted
	Waiting Condition = "waiting" // for an object of others
	Parked  Condition = "parked"  // A&AI rejects an object, until something changes
)

// State is what is known of a subject in A&AI.
type State struct {
	Condition Condition
	Since     time.Time         // when it was last clean; zero: it is, or never was
	Reason    string            // of the last failure
	Missing   []string          // paths of objects of others that it waits for
	Parked    map[string]string // reasons by path
	Objects   aai.Written
	Retry     time.Time // zero: after a change
}

// record is what is stored of a subject.
type record struct {
	ID       string            `json:"id"`
	Tried    string            `json:"tried"`           // the version that was written last, whether or not that succeeded
	Clean    bool              `json:"clean,omitempty"` // it did
	Since    time.Time         `json:"since,omitzero"`  // when it was last clean
	Failures int               `json:"failures,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Missing  []string          `json:"missing,omitempty"`
	Parked   map[string]string `json:"parked,omitempty"`
	Retry    time.Time         `json:"retry,omitzero"`
	Verified time.Time         `json:"verified,omitzero"` // when it was last compared with A&AI
	Written  aai.Written       `json:"written,omitempty"`
}

// request asks for a comparison of a subject with A&AI.
type request struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// mark is the part of a record that the replica that writes keeps in memory.
type mark struct {
	tried     string
	condition Condition // of that version
	retry     time.Time
	verified  time.Time
}

func (r record) mark() mark {
	m := mark{tried: r.Tried, condition: Dirty, retry: r.Retry, verified: r.Verified}
	switch {
	case r.Clean:
		m.condition = Clean
	case len(r.Missing) > 0:
		m.condition = Waiting
	case len(r.Parked) > 0:
		m.condition = Parked
	}
	return m
}

// of returns the condition of a version.
func (m mark) of(version string) Condition {
	if m.tried != version {
		return Dirty
	}
	return m.condition
}

// due reports whether a subject is to be written now, and whether A&AI is to be read
// even if nothing has changed.
func (m mark) due(version string, now time.Time, every time.Duration) (due, verify bool) {
	switch {
	case m.tried != version:
		return true, false
	case now.Before(m.retry):
		return false, false
	case !m.retry.IsZero():
		return true, false
	}
	verify = !now.Before(m.verified.Add(every))
	return verify, verify
}

func (r record) state(version string) State {
	return State{
		Condition: r.mark().of(version), Since: r.Since, Reason: r.Reason, Missing: r.Missing, Parked: r.Parked, Objects: r.Written, Retry: r.Retry,
	}
}

// conclude records the result of writing a version.
func (r *record) conclude(version string, report aai.Report, failure error, now time.Time) {
	wasClean := r.Clean
	r.Tried, r.Written, r.Missing, r.Parked = version, report.Written, report.Missing, report.Parked
	r.Clean, r.Reason, r.Retry = failure == nil && report.Done(), "", time.Time{}
	switch {
	case r.Clean:
		r.Failures, r.Since = 0, time.Time{}
		return
	case failure != nil:
		r.Failures++
		r.Reason, r.Retry = failure.Error(), now.Add(delay.Doubled(firstPause, longestPause, r.Failures-1))
	case len(r.Missing) > 0:
		r.Failures++
		r.Retry = now.Add(delay.Doubled(firstWait, longestWait, r.Failures-1))
	default:
		r.Failures = 0 // an object is parked until something changes
	}
	if wasClean || r.Since.IsZero() {
		r.Since = now
	}
}
