package audit

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Put writes an entry into the store as it is.
func Put(ctx context.Context, l *Log, e nf.AuditEntry) error {
	return l.entries.Insert(ctx, e.Place(), e)
}
