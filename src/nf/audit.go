package nf

import "time"

// AuditEntry says what somebody asked of the service and what came of it. A
// request that may change something has two entries with the same ID, one from
// before it was carried out and one from after; a refusal has one. An entry
// holds names and ids, never what a request carried.
type AuditEntry struct {
	ID         string     `json:"id"`
	Phase      AuditPhase `json:"phase"`
	Time       time.Time  `json:"time"`
	Replica    string     `json:"replica,omitempty"`       // that answered
	Request    string     `json:"request_id,omitempty"`    // X-Request-Id
	Kind       string     `json:"identity_kind,omitempty"` // of who asked; empty: nobody knows
	Identity   string     `json:"identity,omitempty"`      // the name of who asked
	Remote     string     `json:"remote,omitempty"`        // address that the request came from
	Method     string     `json:"method,omitempty"`
	Route      string     `json:"route,omitempty"`      // template of the path; empty: no such path
	Permission Permission `json:"permission,omitempty"` // that decided
	Project    string     `json:"project,omitempty"`
	Region     string     `json:"region,omitempty"`
	Subjects   []string   `json:"subjects,omitempty"` // ids of what it is about
	Status     int        `json:"status,omitempty"`   // of the answer; 0 in an intent
	Outcome    string     `json:"outcome,omitempty"`  // AuditDone, AuditHidden, or the kind of the error
	Operation  string     `json:"operation,omitempty"`
	Digest     string     `json:"digest,omitempty"` // "sha256:<hex>" of the body, when all of it was read
	Missed     int        `json:"missed,omitempty"` // refusals of the same client before this one that have no entry
	Prev       string     `json:"prev,omitempty"`   // SHA-256 of the entry before, in the file that it was written to
}

// AuditPhase says when an entry was written.
type AuditPhase string

// The phases.
const (
	AuditIntent  AuditPhase = "intent"  // before a change
	AuditOutcome AuditPhase = "outcome" // after it
	AuditRefusal AuditPhase = "refusal" // of what was not let through
)

// Outcomes that are no kind of error.
const (
	AuditDone   = "done"
	AuditHidden = "hidden" // it is there, and who asked was told that it does not exist
)

// AuditFilter selects entries. A zero field selects every entry.
type AuditFilter struct {
	From, To time.Time // of the entry: From <= Time < To
	Kind     string
	Identity string
	Project  string
	Region   string
	Before   string // the place of an entry: only those that come after it in the list
}

// Matches reports whether the filter selects an entry, Before aside.
func (f AuditFilter) Matches(e AuditEntry) bool {
	same := func(wanted, is string) bool { return wanted == "" || wanted == is }
	return same(f.Kind, e.Kind) && same(f.Identity, e.Identity) && same(f.Project, e.Project) && same(f.Region, e.Region) &&
		!e.Time.Before(f.From) && (f.To.IsZero() || e.Time.Before(f.To))
}

// Place is where an entry stands in the order of time: what AuditFilter.Before
// continues a list from.
func (e AuditEntry) Place() string {
	return e.Time.UTC().Format("2006-01-02T15/04:05.000000000") + "-" + e.ID + "-" + string(e.Phase)
}
