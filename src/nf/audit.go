package nf

import (
	"slices"
	"time"
)

// AuditEntry records a request to the service and its outcome. A request that
// may change something has two entries with the same ID: one from before it is
// carried out, and one from after. A denied request has one. An entry contains
// names and ids, never the content of a request.
type AuditEntry struct {
	ID         string     `json:"id"`
	Phase      AuditPhase `json:"phase"`
	Time       time.Time  `json:"time"`
	Replica    string     `json:"replica,omitempty"`        // that answered the request
	Request    string     `json:"request_id,omitempty"`     // X-Request-Id
	Kind       string     `json:"identity_kind,omitempty"`  // of the caller; empty: the caller is unknown
	Identity   string     `json:"identity,omitempty"`       // the caller's name
	Remote     string     `json:"remote_address,omitempty"` // address that the request came from
	Method     string     `json:"method,omitempty"`
	Route      string     `json:"route,omitempty"`      // template of the path; empty: unknown path
	Permission Permission `json:"permission,omitempty"` // the one that decided
	Project    string     `json:"project,omitempty"`
	Region     string     `json:"region,omitempty"`
	Subjects   []string   `json:"subjects,omitempty"` // ids of the objects of the request
	Status     int        `json:"status,omitempty"`   // of the response; 0 in an intent
	Outcome    string     `json:"outcome,omitempty"`  // AuditDone, AuditAccepted, AuditHidden, or the kind of the error
	Operation  string     `json:"operation,omitempty"`
	Digest     string     `json:"digest,omitempty"`     // "sha256:<hex>" of the body, if all of it was read
	Missed     int        `json:"suppressed,omitempty"` // earlier denied requests of this client that have no entry
	Prev       string     `json:"prev,omitempty"`       // SHA-256 of the previous entry in the file that this one was written to
}

// AuditPhase says when an entry was written.
type AuditPhase string

// The phases.
const (
	AuditIntent  AuditPhase = "intent"  // before a change
	AuditOutcome AuditPhase = "outcome" // after it
	AuditRefusal AuditPhase = "refusal" // for a denied request
)

// Outcomes that are not the kind of an error.
const (
	AuditDone     = "done"
	AuditAccepted = "accepted" // by an operation, whose result is its own
	AuditHidden   = "hidden"   // it exists, but the caller was told that it does not
)

// AuditFilter selects entries. A zero field selects every entry.
type AuditFilter struct {
	From, To time.Time // of the entry: From <= Time < To
	Kind     string
	Identity string
	Project  string
	Region   string
	Before   string // the place of an entry: selects only the entries that follow it in the list
	// In is a condition that the caller checks itself, as in Cursor.
	In func(Scope) bool
}

// Where returns the attributes of the entries that the filter selects.
func (f AuditFilter) Where() []Attribute {
	all := []Attribute{{AttributeIdentityKind, f.Kind}, {AttributeIdentity, f.Identity}, {AttributeProject, f.Project}, {AttributeRegion, f.Region}}
	return slices.DeleteFunc(all, func(a Attribute) bool { return a.Value == "" })
}

// Matches reports whether the filter selects an entry, Before and In aside.
func (f AuditFilter) Matches(e AuditEntry) bool {
	return e.Summary().Has(f.Where()) && !e.Time.Before(f.From) && (f.To.IsZero() || e.Time.Before(f.To))
}

// Place returns the position of an entry in the order of time.
// AuditFilter.Before continues a list from it.
func (e AuditEntry) Place() string {
	return e.Time.UTC().Format("2006-01-02T15/04:05.000000000") + "-" + e.ID + "-" + string(e.Phase)
}
