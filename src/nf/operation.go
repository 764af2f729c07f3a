package nf

import (
	"encoding/json"
	"fmt"
	"time"
)

// Operation is one change to its subject, from its acceptance to its end. The
// record is written ahead of every step, so a reader knows the steps that are
// done and the step that may be.
type Operation struct {
	ID            string         `json:"id"` // operations sort by the time they were accepted
	Subject       Subject        `json:"subject"`
	Region        string         `json:"region"`
	Project       string         `json:"project,omitempty"`
	Verb          Verb           `json:"verb"`
	State         OperationState `json:"state"`
	OnFailure     OnFailure      `json:"on_failure,omitempty"`
	Undoing       bool           `json:"undoing,omitempty"`         // the change failed and is being undone
	Succeeding    bool           `json:"succeeding,omitempty"`      // all steps have succeeded; only its subject must still be updated
	Cancel        bool           `json:"cancel,omitempty"`          // a client asked to cancel it
	WaitForRegion bool           `json:"wait_for_region,omitempty"` // waits for an unreachable region beyond the deadline
	Request       RequestKey     `json:"request,omitzero"`          // the client's key for the request
	Trace         string         `json:"trace,omitempty"`           // W3C traceparent of the request that started it
	Claim         string         `json:"claim,omitempty"`           // the token of the replica that runs it: a replica with a different one has lost it
	Attempts      int            `json:"attempts,omitempty"`        // how many replicas have started it
	Waiting       *Wait          `json:"waiting,omitempty"`         // for the region; nil if it does not wait
	UndoBy        time.Time      `json:"undo_deadline,omitzero"`    // the undo's own deadline
	Steps         []Step         `json:"steps"`                     // in the order they run; the last is the current one
	Entries       int            `json:"entries,omitempty"`         // number of the last entry of its log
	Batches       int            `json:"batches,omitempty"`         // number of batches of its log; a batch that it does not count is not part of the log
	Failure       *Failure       `json:"failure,omitempty"`
	// UndoFailure says why the undo failed; Failure's message contains its
	// message. It is nil while the undo runs, and if it succeeded.
	UndoFailure *Failure  `json:"undo_failure,omitempty"`
	Warnings    []string  `json:"warnings,omitempty"`
	Accepted    time.Time `json:"accepted"`
	Started     time.Time `json:"started,omitzero"`
	Applied     time.Time `json:"applied,omitzero"` // every object has been applied (or deleted)
	Finished    time.Time `json:"finished,omitzero"`
	Deadline    time.Time `json:"deadline"`

	// What only the kind of the subject has. The others are zero.
	Instance InstanceTask `json:"instance,omitzero"`
	Site     SiteTask     `json:"site,omitzero"`
	Network  SharedTask   `json:"network,omitzero"`
	Volume   SharedTask   `json:"volume,omitzero"`
	VNF      VNFTask      `json:"vnf,omitzero"`
	Service  ServiceTask  `json:"service,omitzero"`
}

// InstanceTask is what an operation on a VNF instance has to do.
type InstanceTask struct {
	Namespace string            `json:"namespace"`
	Revision  int               `json:"revision,omitempty"` // the revision it activates; 0 for terminate
	Target    Revision          `json:"target,omitzero"`    // the content of that revision; zero for terminate
	Orphan    bool              `json:"orphan,omitempty"`   // of terminate: the objects stay, unowned
	Volumes   bool              `json:"volumes,omitempty"`  // of terminate: also delete the volume claims of StatefulSets
	Cascade   bool              `json:"cascade,omitempty"`  // of terminate: first terminate the instances in its clusters' regions
	Grace     *time.Duration    `json:"grace,omitempty"`    // of terminate: the longest grace period of pods; nil: their own
	NoWait    bool              `json:"no_wait,omitempty"`  // waits only for CRDs and hooks
	Adopts    *AdoptionSelector `json:"adopts,omitempty"`   // of adopt: selects the objects
	Repeats   string            `json:"retry_of,omitempty"` // the failed operation that this one retries
	After     string            `json:"after,omitempty"`    // of test: the last operation before it that is no test, if the instance has failed
	Fresh     bool              `json:"fresh,omitempty"`    // of instantiate: none of its objects existed when it was accepted
	Settings  []Setting         `json:"settings,omitempty"` // of scale and restart: the fields that it sets
	Placed    *Placed           `json:"placed,omitempty"`   // of instantiate: how the region was chosen; nil: the request named it
	Heal      HealTask          `json:"heal,omitzero"`      // of heal
}

// SiteTask is what an operation on a site has to do.
type SiteTask struct {
	UID       string   `json:"uid"`                  // of the site
	Instances []string `json:"instances,omitempty"`  // of remove: the instances that are terminated first
	KeepHosts bool     `json:"keep_hosts,omitempty"` // of remove: the hosts stay as they are
}

// SharedTask is what an operation on a shared resource has to do.
type SharedTask struct {
	Spec   json.RawMessage `json:"spec,omitempty"`   // of change: the new one, as the kind has normalized it
	Holder string          `json:"holder,omitempty"` // of create: the name that holds the resource
	Used   bool            `json:"used,omitempty"`   // of remove: the resource is in use again, and remains
	Failed bool            `json:"failed,omitempty"` // of remove: the resource had failed before

	Restart []string     `json:"restart,omitempty"` // of change: the instances whose workloads are restarted
	Former  *SharedAbout `json:"former,omitempty"`  // of change: what the undo restores besides the spec, except that the resource is kept; nil: nothing
}

// SharedAbout is what a shared resource has besides its spec, and can be changed.
type SharedAbout struct {
	Keep        bool              `json:"keep,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// ServiceTask is what an operation on a network service has to do.
type ServiceTask struct {
	Regions []string `json:"regions,omitempty"` // of all members that it may change, sorted
}

// Wait is a condition that an operation waits for before it can continue.
type Wait struct {
	Since    time.Time   `json:"since"`
	Reason   string      `json:"reason,omitempty"`   // "tcp", "timeout", "unauthorized", "breaker", …
	For      string      `json:"message"`            // for people
	Mentions []Mentioned `json:"mentions,omitempty"` // the mentions in For
	Next     time.Time   `json:"next,omitzero"`      // time of the next attempt; in a record, of the first attempt
}

// Said returns what For says, with its mentions.
func (w *Wait) Said() Text { return Text{w.For, w.Mentions} }

// Verb is the kind of change that an operation makes.
type Verb string

// The verbs.
const (
	Instantiate Verb = "instantiate"
	Upgrade     Verb = "upgrade"
	Rollback    Verb = "rollback"
	Terminate   Verb = "terminate"
	Configure   Verb = "configure" // changes the amendments; the package's own objects stay as they are
	Test        Verb = "test"      // the package's test hooks are run; nothing else changes
	Adopt       Verb = "adopt"     // makes running objects an instance
	Scale       Verb = "scale"     // sets the number of replicas of workloads
	Restart     Verb = "restart"   // restarts the pods of workloads, one after another, or virtual machines
	Start       Verb = "start"     // starts virtual machines
	Stop        Verb = "stop"      // stops virtual machines
	Migrate     Verb = "migrate"   // moves running virtual machines to other nodes
	Heal        Verb = "heal"      // creates missing objects again, and replaces pods
	Correct     Verb = "correct"   // applies objects again that other clients have changed or deleted

	SiteBuild  Verb = "build"
	SiteChange Verb = "change"
	SiteRemove Verb = "remove"

	SharedCreate Verb = "create"
	SharedChange Verb = "change"
	SharedRemove Verb = "remove"

	ServiceCreate    Verb = "create"
	ServiceChange    Verb = "change"
	ServiceUndo      Verb = "undo" // of the failed operation before it
	ServiceTerminate Verb = "terminate"
)

// QualifiedVerb returns the verb for metrics, traces and logs, where it tells
// the kind of the subject: "site_build".
func (o Operation) QualifiedVerb() Verb {
	if o.Subject.Kind == InstanceSubject || o.Subject.Kind == "" {
		return o.Verb
	}
	return Verb(o.Subject.Kind) + "_" + o.Verb
}

// OperationState is the progress of an operation.
type OperationState string

// The states of an operation. The last three are final.
const (
	Queued             OperationState = "queued"
	Running            OperationState = "running"
	Succeeded          OperationState = "succeeded"
	OperationFailed    OperationState = "failed"
	OperationCancelled OperationState = "cancelled"
)

// Final reports whether an operation never leaves the state.
func (s OperationState) Final() bool {
	return s == Succeeded || s == OperationFailed || s == OperationCancelled
}

// Move changes the operation's state. It returns nf.Conflict for a transition
// that no operation may make.
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

// OnFailure says how a failed change is treated.
type OnFailure string

// The choices on failure.
const (
	Undo OnFailure = "undo" // revert the change
	Keep OnFailure = "keep" // leave the objects for inspection
)

// Failure is the cause of an operation's failure. It is stored, so that every
// later reader gets the same error.
type Failure struct {
	Kind       Kind        `json:"kind"`
	Reason     string      `json:"reason,omitempty"`
	Step       string      `json:"step,omitempty"`
	Op         string      `json:"op,omitempty"`      // Message begins with "cannot <Op> <Subject>"; empty: it begins otherwise
	Subject    string      `json:"subject,omitempty"` // as Op
	Message    string      `json:"message"`
	Mentions   []Mentioned `json:"mentions,omitempty"` // the mentions in Message
	Violations Violations  `json:"violations,omitempty"`
}

// FailureOf returns the Failure for an error that occurred in a step.
func FailureOf(step string, err error) *Failure {
	text := TextOf(err)
	f := &Failure{Kind: KindOf(err), Reason: ReasonOf(err), Step: step, Message: text.Message, Mentions: text.Mentions, Violations: ViolationsOf(err)}
	if e, ok := any(err).(*Error); ok {
		f.Op, f.Subject = e.Op, e.Subject
	}
	return f
}

// Said returns the message with its mentions.
func (f *Failure) Said() Text { return Text{f.Message, f.Mentions} }

// OperationError is the error of an operation that has ended without success.
// All its attributes come from the operation's record, so every reader of the
// operation may see them.
type OperationError struct {
	text  Text
	cause error
}

// Error says "cannot <verb> <object>: <failure>".
func (e *OperationError) Error() string { return e.text.String() }

// Text returns the text of the error.
func (e *OperationError) Text() Text { return e.text }

// Unwrap returns an error with the attributes of the failure.
func (e *OperationError) Unwrap() error { return e.cause }

// Err returns an OperationError if the operation has ended without success, and
// nil otherwise.
func (o Operation) Err() error {
	if !o.State.Final() || o.State == Succeeded {
		return nil
	}
	f := o.Failure
	if f == nil {
		f = &Failure{Kind: Failed, Message: "the operation failed"}
		if o.State == OperationCancelled {
			f = &Failure{Kind: Cancelled, Message: "the operation was cancelled"}
		}
	}
	e := Error{Kind: f.Kind, Op: string(o.Verb), Subject: o.Subject.Noun(), Reason: f.Reason, Operation: o.ID}
	if len(f.Violations) > 0 {
		e.Err = f.Violations
	}
	text := f.Said()
	if f.Op != e.Op || f.Subject != e.Subject {
		text = Textf("cannot %s %s: %s", e.Op, e.Subject, text)
	}
	return &OperationError{text: text, cause: &e}
}
