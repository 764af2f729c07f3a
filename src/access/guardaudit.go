package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// AuditLog gives access to the audit log with the permissions of the identity in
// the context.
type AuditLog struct {
	guard  *guard
	audits Audits
}

var _ Audits = (*AuditLog)(nil)

// Entries implements Audits. It requires audit:read in the scope of the entry;
// an entry without a scope requires it for the whole service.
func (l *AuditLog) Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		id, err := l.guard.asker(ctx)
		if err == nil && !l.guard.authorizer.anywhere(ctx, id, nf.ReadAudit) {
			err = l.guard.may(ctx, nf.ReadAudit, nf.Scope{Project: f.Project, Region: f.Region})
		}
		if err != nil {
			yield(nf.AuditEntry{}, err)
			return
		}
		visible := l.guard.authorizer.Visible(ctx, id, nf.ReadAudit)
		for e, err := range l.audits.Entries(ctx, f) {
			if err == nil && !visible(nf.Scope{Project: e.Project, Region: e.Region}) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
