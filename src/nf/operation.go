package nf

import (
	"fmt"
	"time"
)

// Operation is one change to an instance, from its acceptance to its end. The
// record is written ahead of every step, so that whoever reads it knows what
// has been done and what may have been.
type Operation struct {
	ID        string         `json:"id"`
	Instance  string         `json:"instance"`
	Region    string         `json:"region"`
	Namespace string         `json:"namespace"`
	Project   string         `json:"project,omitempty"`
	Verb      Verb           `json:"verb"`
	State     OperationState `json:"state"`
	Revision  int            `json:"revision,omitempty"` // the revision it brings into force; 0 for terminate
	Target    Revision       `json:"target,omitzero"`    // what it brings into force; zero for terminate
	OnFailure OnFailure      `json:"on_failure,omitempty"`
	Undoing   bool           `json:"undoing,omitempty"`  // the change failed and is being taken back
	Cancel    bool           `json:"cancel,omitempty"`   // somebody asked to stop
	Orphan    bool           `json:"orphan,omitempty"`   // of terminate: the objects stay, and are nobody's
	Volumes   bool           `json:"volumes,omitempty"`  // of terminate: the volume claims of StatefulSets are deleted, too
	Patient   bool           `json:"patient,omitempty"`  // a region that is away is waited for beyond the deadline
	NoWait    bool           `json:"no_wait,omitempty"`  // only definitions and hooks are waited for
	Takes     *Claim         `json:"takes,omitempty"`    // of adopt: what the objects bear that become the instance's
	Repeats   string         `json:"repeats,omitempty"`  // the failed operation that this one tries again
	Request   RequestKey     `json:"request,omitzero"`   // under which its client asked for it
	Trace     string         `json:"trace,omitempty"`    // W3C traceparent of the request that began it
	Claim     string         `json:"claim,omitempty"`    // the token of the replica that runs it: whoever has another one has lost it
	Attempts  int            `json:"attempts,omitempty"` // how many replicas have begun it
	Waiting   *Wait          `json:"waiting,omitempty"`  // for the region; nil when it does not
	UndoBy    time.Time      `json:"undo_by,omitzero"`   // the undo's own deadline
	Steps     []Step         `json:"steps"`              // in the order they run; the last is the current one
	Failure   *Failure       `json:"failure,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
	Accepted  time.Time      `json:"accepted"`
	Started   time.Time      `json:"started,omitzero"`
	Applied   time.Time      `json:"applied,omitzero"` // every object has been applied (or deleted)
	Finished  time.Time      `json:"finished,omitzero"`
	Deadline  time.Time      `json:"deadline"`
}

// Wait is what an operation waits for before it can go on.
type Wait struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"` // "tcp", "timeout", "unauthorized", "breaker", …
	For    string    `json:"for"`              // in words
	Next   time.Time `json:"next,omitzero"`    // when it tries again; of a record, the first time
}

// Verb is what an operation does.
type Verb string

// The verbs.
const (
	Instantiate Verb = "instantiate"
	Upgrade     Verb = "upgrade"
	Rollback    Verb = "rollback"
	Terminate   Verb = "terminate"
	Configure   Verb = "configure" // other amendments; the package's own objects stay as they are
	Test        Verb = "test"      // the package's test hooks are run; nothing else changes
	Adopt       Verb = "adopt"     // what runs already becomes an instance
)

// OperationState says how far an operation is.
type OperationState string

// The states of an operation. The last three are final.
const (
	Queued             OperationState = "queued"
	Running            OperationState = "running"
	Succeeded          OperationState = "succeeded"
	OperationFailed    OperationState = "failed"
	OperationCancelled OperationState = "cancelled"
)

// Final reports whether the state is never left.
func (s OperationState) Final() bool {
	return s == Succeeded || s == OperationFailed || s == OperationCancelled
}

// Move changes the operation's state, or refuses a transition that no operation
// may make.
func (o *Operation) Move(to OperationState) error {
	ok := false
	switch o.State {
	case Queued:
		ok = to == Running || to == OperationCancelled || to == OperationFailed
	case Running:
		ok = to.Final() || to == Running
	case Succeeded, OperationFailed, OperationCancelled:
	}
	if !ok {
		return E(Conflict, "move", "operation "+o.ID, fmt.Errorf("from %s to %s", o.State, to))
	}
	o.State = to
	return nil
}

// OnFailure says what happens to a change that failed.
type OnFailure string

// The choices on failure.
const (
	Undo OnFailure = "undo" // take back what was done
	Keep OnFailure = "keep" // leave it for inspection
)

// Step is one named, idempotent part of an operation.
type Step struct {
	Name     string    `json:"name"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	Message  string    `json:"message,omitempty"`
	Failed   bool      `json:"failed,omitempty"`  // what it tried did not succeed; Message says why
	Changes  int       `json:"changes,omitempty"` // how many objects the step changed; they are kept beside the record
	Objects  int       `json:"objects,omitempty"` // how many objects the step is about
	Current  int       `json:"current,omitempty"` // how many of them are as they should be
}

// Failure is why an operation ended badly, kept so that every later reader gets
// the same error.
type Failure struct {
	Kind       Kind       `json:"kind"`
	Reason     string     `json:"reason,omitempty"`
	Step       string     `json:"step,omitempty"`
	Message    string     `json:"message"`
	Violations Violations `json:"violations,omitempty"`
}

// FailureOf keeps an error that happened in a step.
func FailureOf(step string, err error) *Failure {
	return &Failure{Kind: KindOf(err), Reason: ReasonOf(err), Step: step, Message: err.Error(), Violations: ViolationsOf(err)}
}
