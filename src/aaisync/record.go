package aaisync

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstPause   = time.Second // after A&AI did not respond; doubled after each failure
	longestPause = 5 * time.Minute
	firstWait    = 30 * time.Second // for an object of others
	longestWait  = 15 * time.Minute
	deniedPause  = 5 * time.Minute
	gonePause    = 500 * time.Millisecond // between readings of a record that is to go
	requestPause = time.Second            // between readings of the requests of other replicas
)

// State is what is known of a subject in A&AI.
type State struct {
	ID        string // of the subject
	Condition nf.ListingState
	Since     time.Time         // when it was last clean; zero: it is, or never was
	Reason    string            // of the last failure
	Missing   []string          // paths of objects of others that it waits for
	Parked    map[string]string // reasons by path
	Objects   aai.Written
	Retry     time.Time // zero: after a change
	Asked     time.Time // when Refresh was last called; zero: never
	Pending   bool      // what Refresh has asked for has not been done yet
}

// record is what is stored of a subject.
type record struct {
	ID       string            `json:"id"`
	Tried    string            `json:"tried"`           // the version that was written last, whether or not that succeeded; empty: of a removed subject
	Live     string            `json:"live,omitempty"`  // Subject.Live of that version
	Clean    bool              `json:"clean,omitempty"` // it did
	Since    time.Time         `json:"since,omitzero"`  // when it was last clean
	Failures int               `json:"failures,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Missing  []string          `json:"missing,omitempty"`
	Parked   map[string]string `json:"parked,omitempty"`
	Retry    time.Time         `json:"retry,omitzero"`
	Verified time.Time         `json:"verified,omitzero"` // when it was last compared with A&AI
	Asked    time.Time         `json:"asked,omitzero"`    // the last request that was answered
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
	live      string
	condition nf.ListingState // of that version
	retry     time.Time
	verified  time.Time
}

func (r record) mark() mark {
	m := mark{tried: r.Tried, live: r.Live, condition: nf.ListingDirty, retry: r.Retry, verified: r.Verified}
	switch {
	case r.Clean:
		m.condition = nf.ListingClean
	case len(r.Missing) > 0:
		m.condition = nf.ListingWaiting
	case len(r.Parked) > 0:
		m.condition = nf.ListingParked
	}
	return m
}

// differs reports whether a subject has changed since it was written.
func (m mark) differs(s Subject) bool {
	return m.tried != s.Version || s.Live != "" && m.live != s.Live
}

// of returns the condition of a subject; one without a version no longer exists.
func (m mark) of(s Subject) nf.ListingState {
	if m.differs(s) {
		return nf.ListingDirty
	}
	return m.condition
}

// due reports whether a subject is to be written now, and whether A&AI is to be read
// even if nothing has changed.
func (m mark) due(s Subject, now time.Time, every time.Duration) (due, verify bool) {
	switch {
	case s.Busy:
		return false, false
	case m.differs(s):
		return true, false
	case now.Before(m.retry):
		return false, false
	case !m.retry.IsZero():
		return true, false
	}
	verify = !now.Before(m.verified.Add(every))
	return verify, verify
}

func (r record) state(s Subject) State {
	return State{
		ID: r.ID, Condition: r.mark().of(s), Since: r.Since, Reason: r.Reason, Missing: r.Missing, Parked: r.Parked, Objects: r.Written, Retry: r.Retry,
		Asked: r.Asked,
	}
}

// conclude records the result of writing a subject.
func (r *record) conclude(s Subject, report aai.Report, failure error, now time.Time) {
	wasClean := r.Clean
	r.Tried, r.Live, r.Written, r.Missing, r.Parked = s.Version, s.Live, report.Written, report.Missing, report.Parked
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
