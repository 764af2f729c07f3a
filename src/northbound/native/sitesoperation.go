package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// siteOperation is an operation of a site as clients see it.
type siteOperation struct {
	ID              string            `json:"operation_id"`
	Site            string            `json:"site_id"`
	Region          string            `json:"cloud_region_id"`
	Project         string            `json:"project"`
	Verb            nf.SiteVerb       `json:"verb"`
	State           nf.OperationState `json:"state"`
	Instances       []string          `json:"vnf_instances,omitempty"` // that are terminated with the site
	KeepHosts       bool              `json:"keep_hosts,omitempty"`
	CancelRequested bool              `json:"cancel_requested,omitempty"`
	Attempts        int               `json:"attempts,omitempty"`
	Steps           []step            `json:"steps"`
	Failure         *fault            `json:"failure,omitempty"`
	Warnings        []string          `json:"warnings,omitempty"`
	AcceptedAt      time.Time         `json:"accepted_at"`
	StartedAt       time.Time         `json:"started_at,omitzero"`
	FinishedAt      time.Time         `json:"finished_at,omitzero"`
	Deadline        time.Time         `json:"deadline"`
}

func fromSiteOperation(op nf.SiteOperation) siteOperation {
	out := siteOperation{
		ID: op.ID, Site: op.Site, Region: op.Region, Project: nf.ProjectOf(op.Project), Verb: op.Verb, State: op.State,
		Instances: op.Instances, KeepHosts: op.KeepHosts, CancelRequested: op.Cancel, Attempts: op.Attempts,
		Steps: each(op.Steps, fromStep), Warnings: op.Warnings,
		AcceptedAt: op.Accepted, StartedAt: op.Started, FinishedAt: op.Finished, Deadline: op.Deadline,
	}
	// Until the operation has ended, its site may not know yet that it will.
	if f := op.Failure; f != nil && op.State.Final() {
		out.Failure = &fault{Kind: f.Kind, Reason: f.Reason, Step: f.Step, Message: f.Message, Errors: northbound.Violations(f.Violations)}
	}
	return out
}

// siteEvent is an event of an operation as clients see it.
type siteEvent struct {
	Number  int              `json:"number"`
	Time    time.Time        `json:"time"`
	Kind    nf.SiteEventKind `json:"kind"`
	Step    string           `json:"step,omitempty"`
	Play    string           `json:"play,omitempty"`
	Task    string           `json:"task,omitempty"`
	Host    string           `json:"host,omitempty"`
	Message string           `json:"message,omitempty"`
}

func (a *API) listSiteOperations(w http.ResponseWriter, r *http.Request) error {
	_, operations, err := a.sites("list")
	if err != nil {
		return err
	}
	all, err := operations.SiteOperations(r.Context(), mux.Vars(r)["site_id"])
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := paginate(r, all, func(op nf.SiteOperation) string { return op.ID }, func(op nf.SiteOperation) bool {
		return !query.Has("state") || query.Get("state") == string(op.State)
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []siteOperation `json:"operations"`
		Next  string          `json:"next,omitempty"`
	}{each(page.items, fromSiteOperation), page.next})
}

func (a *API) getSiteOperation(w http.ResponseWriter, r *http.Request) error {
	_, operations, err := a.sites("get")
	if err != nil {
		return err
	}
	vars := mux.Vars(r)
	op, err := operations.SiteOperation(r.Context(), vars["site_id"], vars["operation_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromSiteOperation(op))
}

func (a *API) cancelSiteOperation(w http.ResponseWriter, r *http.Request) error {
	_, operations, err := a.sites("cancel")
	if err != nil {
		return err
	}
	vars := mux.Vars(r)
	op, err := operations.CancelSite(r.Context(), vars["site_id"], vars["operation_id"])
	if err != nil {
		return err
	}
	w.Header().Set("Location", siteOperationPath(op.Site, op.ID))
	return northbound.Answer(w, http.StatusAccepted, fromSiteOperation(op))
}

// followSiteOperation streams an operation and its events as server-sent events
// until it has ended or the client goes away. A comment now and then keeps
// proxies from closing a quiet stream.
func (a *API) followSiteOperation(w http.ResponseWriter, r *http.Request) error {
	if _, _, err := a.sites("follow"); err != nil {
		return err
	}
	vars := mux.Vars(r)
	s := &siteStream{stream: stream{w: w, out: http.NewResponseController(w)}, site: vars["site_id"], id: vars["operation_id"]}
	for {
		more, err := a.streamSite(r.Context(), s)
		switch {
		case err != nil && !s.begun:
			return err
		case err != nil:
			a.cfg.Logger.WarnContext(r.Context(), "a stream of events was cut off", "operation", s.id, "error", err)
			return nil
		case !more:
			return nil
		}
	}
}

// siteStream is a stream of what one operation of a site does.
type siteStream struct {
	stream

	site, id string
	told     int // number of the event that was sent last
}

// streamSite sends what is new of an operation for as long as a stream may be
// quiet, and then a sign of life. It reports whether there may be more.
func (a *API) streamSite(ctx context.Context, s *siteStream) (more bool, err error) {
	quiet, cancel := context.WithTimeout(ctx, a.cfg.Heartbeat)
	defer cancel()
	for u, err := range a.cfg.SiteOperations.FollowSite(quiet, s.site, s.id, s.told) {
		if err != nil && quiet.Err() != nil {
			break
		}
		if err != nil {
			return false, err
		}
		if err := s.tell(u); err != nil || u.Operation != nil && u.Operation.State.Final() {
			return false, err
		}
	}
	if ctx.Err() != nil || quiet.Err() == nil {
		return false, nil
	}
	return true, s.comment("still here")
}

// tell sends an update, unless it says what the last one said.
func (s *siteStream) tell(u nf.SiteUpdate) error {
	if u.Operation == nil {
		s.told = u.Event.Number
		document, err := json.Marshal(siteEvent(u.Event))
		if err != nil {
			return fmt.Errorf("cannot write the event: %w", err)
		}
		return s.write(fmt.Sprintf("event: log\nid: %d\ndata: %s\n\n", u.Event.Number, document))
	}
	document, err := json.Marshal(fromSiteOperation(*u.Operation))
	if err != nil {
		return fmt.Errorf("cannot write the event: %w", err)
	}
	if bytes.Equal(document, s.last) {
		return nil
	}
	s.last = document
	return s.write(fmt.Sprintf("event: operation\ndata: %s\n\n", document))
}
