package native

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Audit reads the audit log.
type Audit interface {
	// Entries yields the entries that the filter selects, newest first.
	Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error]
}

// auditLog serves the entries of the audit log.
type auditLog struct{ log Audit }

func (as auditLog) routes(on route) { on(http.MethodGet, "/audit", as.list) }

func (as auditLog) list(w http.ResponseWriter, r *http.Request) error {
	if as.log == nil {
		return nf.E(nf.NotFound, "read", "the audit log", errors.New("the audit log is not enabled"))
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
	// The log is too long to be read completely.
	found, err := collect(r, as.log.Entries(r.Context(), filter), nf.AuditEntry.Place)
	if err != nil {
		return err
	}
	return answerPage(w, "entries", found, wire.AuditEntryOf)
}

// instant parses a time, unless the text is empty.
func instant(field, text string, into *time.Time) (err error) {
	if text == "" {
		return nil
	}
	if *into, err = time.Parse(time.RFC3339, text); err != nil {
		return invalid(field, "must be a time such as 2026-11-20T09:00:00Z")
	}
	return nil
}
