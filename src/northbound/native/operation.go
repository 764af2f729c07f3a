package native

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Operations is what the API asks of the operations.
type Operations interface {
	// Operation returns an operation, or nf.NotFound.
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// Operations returns every operation, ordered by id, which is the order in
	// which they were accepted.
	Operations(ctx context.Context) ([]nf.Operation, error)
	// Changes returns what an operation has done to objects so far.
	Changes(ctx context.Context, id string) ([]nf.Change, error)
	// Follow yields the operation as it is, and again whenever it changes,
	// until it is final or the context ends.
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
	// Cancel asks an operation to stop; nf.Conflict when it has ended.
	Cancel(ctx context.Context, id string) (nf.Operation, error)
}

// operation is an operation as clients see it.
type operation struct {
	ID              string            `json:"operation_id"`
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
	Repeats         string            `json:"repeats,omitempty"`
	Undoing         bool              `json:"undoing,omitempty"`
	UndoBy          time.Time         `json:"undo_by,omitzero"`
	CancelRequested bool              `json:"cancel_requested,omitempty"`
	Attempts        int               `json:"attempts,omitempty"`
	Waiting         *waiting          `json:"waiting,omitempty"`
	Steps           []step            `json:"steps"`
	Passed          *bool             `json:"passed,omitempty"` // nil: it has run no tests, or not all
	Tests           []test            `json:"tests,omitzero"`   // nil: it runs none
	Changes         []change          `json:"changes,omitzero"` // nil: not asked
	Failure         *fault            `json:"failure,omitempty"`
	Warnings        []string          `json:"warnings,omitempty"`
	AcceptedAt      time.Time         `json:"accepted_at"`
	StartedAt       time.Time         `json:"started_at,omitzero"`
	AppliedAt       time.Time         `json:"applied_at,omitzero"`
	FinishedAt      time.Time         `json:"finished_at,omitzero"`
	Deadline        time.Time         `json:"deadline"`
}

// waiting is what an operation waits for.
type waiting struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	For    string    `json:"for"`
	Next   time.Time `json:"next_attempt_at,omitzero"`
}

type step struct {
	Name       string    `json:"name"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Message    string    `json:"message,omitempty"`
	Failed     bool      `json:"failed,omitempty"`
	Objects    int       `json:"objects,omitempty"`
	Current    int       `json:"current,omitempty"`
}

// change is what was done, or would be, to one object.
type change struct {
	objectName

	Action  nf.Action `json:"action"`
	Message string    `json:"message,omitempty"`
	Fields  []field   `json:"fields,omitempty"`
}

type field struct {
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// fault is why an operation ended badly.
type fault struct {
	Kind    nf.Kind                `json:"kind"`
	Reason  string                 `json:"reason,omitempty"`
	Step    string                 `json:"step,omitempty"`
	Message string                 `json:"message"`
	Errors  []northbound.Violation `json:"errors,omitempty"`
}

// fromOperation returns an operation as clients see it. Who runs it, and under
// which claim, is nobody's business.
func fromOperation(op nf.Operation) operation {
	out := operation{
		ID: op.ID, Instance: op.Instance, Region: op.Region, Namespace: op.Namespace, Project: nf.ProjectOf(op.Project),
		Verb: op.Verb, State: op.State, Revision: op.Revision, OnFailure: op.OnFailure, Orphan: op.Orphan, Repeats: op.Repeats,
		Undoing: op.Undoing, UndoBy: op.UndoBy, CancelRequested: op.Cancel, Attempts: op.Attempts,
		Steps: each(op.Steps, fromStep), Passed: verdict(op), Tests: testsOf(op), Warnings: op.Warnings,
		AcceptedAt: op.Accepted, StartedAt: op.Started, AppliedAt: op.Applied, FinishedAt: op.Finished, Deadline: op.Deadline,
	}
	if op.Patient {
		out.OnUnreachable = wait
	}
	if op.Volumes {
		out.Claims = claimsDelete
	}
	if op.NoWait {
		out.Wait = waitApplied
	}
	if op.Waiting != nil {
		out.Waiting = &waiting{Since: op.Waiting.Since, Reason: op.Waiting.Reason, For: op.Waiting.For, Next: op.Waiting.Next}
	}
	if f := op.Failure; f != nil {
		out.Failure = &fault{Kind: f.Kind, Reason: f.Reason, Step: f.Step, Message: f.Message, Errors: northbound.Violations(f.Violations)}
	}
	return out
}

func fromStep(s nf.Step) step {
	return step{
		Name: s.Name, StartedAt: s.Started, FinishedAt: s.Finished, Message: s.Message, Failed: s.Failed, Objects: s.Objects, Current: s.Current,
	}
}

func fromChange(c nf.Change) change {
	out := change{objectName: nameOf(c.Ref), Action: c.Action, Message: c.Message}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, field(f))
	}
	return out
}

func (a *API) listOperations(w http.ResponseWriter, r *http.Request) error {
	all, err := a.cfg.Operations.Operations(r.Context())
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := paginate(r, all, func(op nf.Operation) string { return op.ID }, func(op nf.Operation) bool {
		return (!query.Has("vnf_id") || query.Get("vnf_id") == op.Instance) &&
			(!query.Has("state") || query.Get("state") == string(op.State)) &&
			(!query.Has("project") || query.Get("project") == nf.ProjectOf(op.Project))
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []operation `json:"operations"`
		Next  string      `json:"next,omitempty"`
	}{each(page.items, fromOperation), page.next})
}

func (a *API) getOperation(w http.ResponseWriter, r *http.Request) error {
	op, err := a.cfg.Operations.Operation(r.Context(), mux.Vars(r)["operation_id"])
	if err != nil {
		return err
	}
	changes, err := a.cfg.Operations.Changes(r.Context(), op.ID)
	if err != nil {
		return err
	}
	out := fromOperation(op)
	out.Changes = each(changes, fromChange)
	return northbound.Answer(w, http.StatusOK, out)
}

func (a *API) cancelOperation(w http.ResponseWriter, r *http.Request) error {
	op, err := a.cfg.Operations.Cancel(r.Context(), mux.Vars(r)["operation_id"])
	if err != nil {
		return err
	}
	w.Header().Set("Location", northbound.OperationPath(op.ID))
	return northbound.Answer(w, http.StatusAccepted, fromOperation(op))
}
