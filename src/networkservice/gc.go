package networkservice

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// sweep is one search for services whose request was withdrawn.
type sweep struct{ services *Services }

var _ operation.Sweep = (*sweep)(nil)

// Subjects implements operation.Sweep.
func (w *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return w.services.locks.Scan(ctx, named, func(nf.NetworkService) {}, func(_ context.Context, s *nf.NetworkService) error {
		s.State, s.Failure = nf.ServiceFailed, nf.Textf("operation %s was given up", s.Operation)
		return nil
	})
}

// Operation implements operation.Sweep.
func (w *sweep) Operation(nf.Operation) {}

// Find implements operation.Sweep.
func (w *sweep) Find(context.Context, operation.StaleRecords) error { return nil }
