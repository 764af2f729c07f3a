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
	Asked    int               `json:"asked,omitempty"`   // requests to compare it
	Written  aai.Written       `json:"written,omitempty"`
}

func (r record) state(version string) State {
	s := State{Since: r.Since, Reason: r.Reason, Missing: r.Missing, Parked: r.Parked, Objects: r.Written, Retry: r.Retry}
	switch {
	case r.Tried != version:
		s.Condition = Dirty
	case r.Clean:
		s.Condition = Clean
	case len(r.Missing) > 0:
		s.Condition = Waiting
	case len(r.Parked) > 0:
		s.Condition = Parked
	default:
		s.Condition = Dirty
	}
	return s
}

// due reports whether a subject is to be written now, and whether A&AI is to be read
// even if nothing has changed.
func (r record) due(version string, now time.Time, every time.Duration) (due, verify bool) {
	switch {
	case r.Tried != version:
		return true, false
	case now.Before(r.Retry):
		return false, false
	case !r.Retry.IsZero():
		return true, false
	}
	verify = !now.Before(r.Verified.Add(every))
	return verify, verify
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
