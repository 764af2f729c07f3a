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
// an entry without a scope requires it for the whole service. An identity that may
// not read all entries reads of a hidden object that it was not found: the object
// may belong to another project.
func (l *AuditLog) Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		id, err := l.guard.asker(ctx)
		if err == nil && !l.guard.authorizer.anywhere(ctx, id, nf.ReadAudit) {
			err = l.guard.may(ctx, nf.ReadAudit, nf.Scope{Project: f.Project, Region: f.Region})
		}
		if err == nil {
			f.In, err = l.guard.mayRead(ctx, nf.ReadAudit)
		}
		if err != nil {
			yield(nf.AuditEntry{}, err)
			return
		}
		scope := func(e nf.AuditEntry) nf.Scope { return nf.Scope{Project: e.Project, Region: e.Region} }
		list[nf.AuditEntry]{l.audits.Entries(ctx, f), scope, f.In}.shown(func(e nf.AuditEntry) (nf.AuditEntry, error) {
			if f.In != nil && e.Outcome == nf.AuditHidden {
				e.Outcome = nf.NotFound.String()
			}
			return e, nil
		})(yield)
	}
}
