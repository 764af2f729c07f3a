package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Values of fields that nf has as booleans.
const (
	OnUnreachableWait = "wait"    // of on_unreachable
	WaitApplied       = "applied" // of wait
	ClaimsDelete      = "delete"  // of claims
)

// Execution holds the options of a request that starts an operation on a VNF
// instance. It is the whole body of a request to retry or undo an operation, or
// to run tests. swagger.yaml says which of the options each request may have.
type Execution struct {
	OnFailure     nf.OnFailure `json:"on_failure,omitempty"`
	OnUnreachable string       `json:"on_unreachable,omitempty"` // fail or wait; default fail
	Timeout       any          `json:"timeout,omitempty"`        // of the operation: a string such as "10m", or a number of seconds
	Wait          string       `json:"wait,omitempty"`           // ready or applied; default ready
	Validate      string       `json:"validate,omitempty"`       // server: a dry run of every object before the request is accepted
	Confirm       string       `json:"confirm,omitempty"`        // digest of the deletions that the client confirms
}

// Options returns the options themselves. A request that embeds them has the
// method.
func (e *Execution) Options() *Execution { return e }

// Operation is an operation on a VNF instance.
type Operation struct {
	ID              string            `json:"operation_id"`
	Subject         Subject           `json:"subject"`
	Instance        string            `json:"vnf_id"`
	Region          string            `json:"cloud_region_id"`
	Namespace       string            `json:"namespace"`
	Project         string            `json:"project"`
	Verb            nf.Verb           `json:"verb"`
	State           nf.OperationState `json:"state"`
	Revision        int               `json:"revision,omitempty"`
	OnFailure       nf.OnFailure      `json:"on_failure,omitempty"`
	OnUnreachable   string            `json:"on_unreachable,omitempty"`
	Wait            string            `json:"wait,omitempty"`
	Orphan          bool              `json:"orphan,omitempty"`
	Claims          string            `json:"claims,omitempty"`
	Repeats         string            `json:"retry_of,omitempty"`
	Undoing         bool              `json:"undoing,omitempty"`
	UndoBy          time.Time         `json:"undo_deadline,omitzero"`
	CancelRequested bool              `json:"cancel_requested,omitempty"`
	Attempts        int               `json:"attempts,omitempty"`
	Waiting         *Waiting          `json:"waiting,omitempty"`
	Steps           []Step            `json:"steps"`
	Passed          *bool             `json:"passed,omitempty"` // nil: no tests, or not all have run
	Tests           []Test            `json:"tests,omitzero"`   // nil: the operation runs no tests
	Changes         []Change          `json:"changes,omitzero"` // nil: not requested
	Failure         *Failure          `json:"failure,omitempty"`
	UndoFailure     *Failure          `json:"undo_failure,omitempty"` // why the undo failed
	Warnings        []string          `json:"warnings,omitempty"`
	Placement       *Placement        `json:"placement,omitempty"` // nil: the request named the region
	Accepted        time.Time         `json:"accepted_at"`
	Started         time.Time         `json:"started_at,omitzero"`
	Applied         time.Time         `json:"applied_at,omitzero"`
	Finished        time.Time         `json:"finished_at,omitzero"`
	Deadline        time.Time         `json:"deadline"`
}

// Subject is the object that an operation changes.
type Subject struct {
	Kind nf.SubjectKind `json:"kind"`
	ID   string         `json:"id"`
}

// Waiting says what an operation is waiting for.
type Waiting struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	For    string    `json:"message"`
	Next   time.Time `json:"next_attempt_at,omitzero"`
}

// Step is a step of an operation on an instance or on a site.
type Step struct {
	Title     string    `json:"name"` // for people
	Started   time.Time `json:"started_at"`
	Finished  time.Time `json:"finished_at,omitzero"`
	Message   string    `json:"message,omitempty"`
	Failed    bool      `json:"failed,omitempty"`
	InFailure bool      `json:"in_failure,omitempty"` // the operation's failure contains Message
	Objects   int       `json:"objects,omitempty"`
	Current   int       `json:"current,omitempty"`
}

// Change is a change of one object, made or previewed.
type Change struct {
	Ref

	Action  nf.Action     `json:"action"`
	Message string        `json:"message,omitempty"`
	Fields  []FieldChange `json:"fields,omitempty"`
}

// FieldChange is a field of an object that differs. A side is nil if it is
// absent.
type FieldChange struct {
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// Failure is the cause of an operation's failure.
type Failure struct {
	Kind    nf.Kind     `json:"kind"`
	Reason  string      `json:"reason,omitempty"`
	Step    string      `json:"step,omitempty"` // title
	Message string      `json:"message"`
	Errors  []Violation `json:"errors,omitempty"`
}

// OperationOf converts an operation, without the replica that runs it and its
// claim.
func OperationOf(op nf.Operation) Operation {
	out := Operation{
		ID: op.ID, Subject: Subject(op.Subject), Instance: op.Subject.ID, Region: op.Region, Namespace: op.Instance.Namespace, Project: nf.ProjectOf(op.Project),
		Verb: op.Verb, State: op.State, Revision: op.Instance.Revision, OnFailure: op.OnFailure, Orphan: op.Instance.Orphan, Repeats: op.Instance.Repeats,
		Undoing: op.Undoing, UndoBy: op.UndoBy, CancelRequested: op.Cancel, Attempts: op.Attempts,
		Steps: List(op.Steps, stepOf), Passed: Verdict(op), Tests: testsOf(op), Failure: failureOf(op.Failure), UndoFailure: failureOf(op.UndoFailure),
		Warnings: op.Warnings, Placement: placementOf(op.Instance.Placed), Accepted: op.Accepted, Started: op.Started, Applied: op.Applied, Finished: op.Finished, Deadline: op.Deadline,
	}
	if op.WaitForRegion {
		out.OnUnreachable = OnUnreachableWait
	}
	if op.Instance.Volumes {
		out.Claims = ClaimsDelete
	}
	if op.Instance.NoWait {
		out.Wait = WaitApplied
	}
	if w := op.Waiting; w != nil {
		out.Waiting = &Waiting{Since: w.Since, Reason: w.Reason, For: w.Said().String(), Next: w.Next}
	}
	return out
}

func stepOf(s nf.Step) Step {
	return Step{
		Title: s.Title(), Started: s.Started, Finished: s.Finished, Message: s.Said().String(), Failed: s.Failed, InFailure: s.InFailure,
		Objects: s.Objects, Current: s.Current,
	}
}

func failureOf(f *nf.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Kind: f.Kind, Reason: f.Reason, Step: f.Step, Message: f.Said().String(), Errors: ViolationsOf(f.Violations)}
}

// ChangeOf converts a change of an object.
func ChangeOf(c nf.Change) Change {
	out := Change{Ref: RefOf(c.Ref), Action: c.Action, Message: c.Said().String()}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, FieldChange(f))
	}
	return out
}

// Preview is what a request would do.
type Preview struct {
	Changes  []Change `json:"changes"`
	Warnings []string `json:"warnings"`
	Confirm  string   `json:"confirm,omitempty"`

	Placement *Placement `json:"placement,omitempty"` // nil: the request names the region

	Objects []Manifest `json:"objects,omitempty"` // only if the request asks for them
}

// Manifest is an object as a package renders it.
type Manifest struct {
	Stage  string         `json:"stage,omitempty"`
	File   string         `json:"file,omitempty"`
	Line   int            `json:"line,omitempty"`
	Events []nf.HookEvent `json:"hook_events,omitempty"`
	Object map[string]any `json:"object"`
}

// ManifestOf converts a manifest.
func ManifestOf(m nf.Manifest) Manifest { return Manifest(m) }

// WithObjects returns the preview with the objects of its plan.
func (p Preview) WithObjects(list []nf.Manifest) Preview {
	p.Objects = List(list, ManifestOf)
	return p
}

// PreviewOf converts a preview.
func PreviewOf(p nf.Preview) Preview {
	return Preview{Changes: List(p.Changes, ChangeOf), Warnings: notNil(p.Warnings), Confirm: p.Confirm, Placement: placementOf(p.Placed)}
}
