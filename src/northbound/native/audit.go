package native

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Audit is what the API asks of the audit log.
type Audit interface {
	// Entries yields the entries that the filter selects, the newest first.
	Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error]
}

// auditEntry is an entry of the audit log as clients see it.
type auditEntry struct {
	ID           string        `json:"id"`
	Phase        nf.AuditPhase `json:"phase"`
	Time         time.Time     `json:"time"`
	Replica      string        `json:"replica,omitempty"`
	Request      string        `json:"request_id,omitempty"`
	IdentityKind string        `json:"identity_kind,omitempty"`
	Identity     string        `json:"identity,omitempty"`
	Remote       string        `json:"remote,omitempty"`
	Method       string        `json:"method,omitempty"`
	Route        string        `json:"route,omitempty"`
	Permission   nf.Permission `json:"permission,omitempty"`
	Project      string        `json:"project,omitempty"`
	Region       string        `json:"region,omitempty"`
	Subjects     []string      `json:"subjects,omitempty"`
	Status       int           `json:"status,omitempty"`
	Outcome      string        `json:"outcome,omitempty"`
	Operation    string        `json:"operation_id,omitempty"`
	Digest       string        `json:"digest,omitempty"`
	Missed       int           `json:"missed,omitempty"`
}

func fromAuditEntry(e nf.AuditEntry) auditEntry {
	return auditEntry{
		ID: e.ID, Phase: e.Phase, Time: e.Time, Replica: e.Replica, Request: e.Request,
		IdentityKind: e.Kind, Identity: e.Identity, Remote: e.Remote, Method: e.Method, Route: e.Route,
		Permission: e.Permission, Project: e.Project, Region: e.Region, Subjects: e.Subjects,
		Status: e.Status, Outcome: e.Outcome, Operation: e.Operation, Digest: e.Digest, Missed: e.Missed,
	}
}

func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.Audit == nil {
		return nf.E(nf.NotFound, "read", "the audit log", errors.New("this service keeps none"))
	}
	query := r.URL.Query()
	filter := nf.AuditFilter{
		Kind: query.Get("identity_kind"), Identity: query.Get("identity"),
		Project: query.Get("project"), Region: query.Get("region"), Before: query.Get("marker"),
	}
	for name, bound := range map[string]*time.Time{"since": &filter.From, "until": &filter.To} {
		if err := instant(name, query.Get(name), bound); err != nil {
			return err
		}
	}
	page, err := a.auditPage(r, filter)
	if err != nil {
		return err
	}
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []auditEntry `json:"entries"`
		Next  string       `json:"next,omitempty"`
	}{each(page.items, fromAuditEntry), page.next})
}

// auditPage reads as many entries as the request wants, and whether there are
// more. It is not paginate: the log is too long to be read whole.
func (a *API) auditPage(r *http.Request, filter nf.AuditFilter) (page[nf.AuditEntry], error) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = defaultLimit
	}
	var out page[nf.AuditEntry]
	for e, err := range a.cfg.Audit.Entries(r.Context(), filter) {
		if err != nil {
			return out, err
		}
		if len(out.items) == limit {
			out.next = out.items[limit-1].Place()
			break
		}
		out.items = append(out.items, e)
	}
	return out, nil
}

// instant reads a time, if there is one.
func instant(field, text string, into *time.Time) (err error) {
	if text == "" {
		return nil
	}
	if *into, err = time.Parse(time.RFC3339, text); err != nil {
		return invalid(field, "must be a time such as 2026-11-20T09:00:00Z")
	}
	return nil
}
