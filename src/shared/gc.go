package shared

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// sweep is one search for resources that nothing holds: a process has crashed after it
// had released one.
type sweep struct {
	resources *Resources
	idle      map[string]bool // resources that are not kept, and that no operation changes
}

var _ operation.Sweep = (*sweep)(nil)

// Subjects implements operation.Sweep.
func (w *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return w.resources.locks.Scan(ctx, named, func(s nf.Shared) { w.idle[s.ID] = s.Operation == "" && !s.Keep }, func(_ context.Context, s *nf.Shared) error {
		s.State, s.Failure = nf.SharedFailed, nf.Textf("operation %s was given up", s.Operation)
		return nil
	})
}

// Operation implements operation.Sweep.
func (w *sweep) Operation(nf.Operation) {}

// Find implements operation.Sweep.
func (w *sweep) Find(ctx context.Context, found operation.StaleRecords) error {
	for id, idle := range w.idle {
		if !idle {
			continue
		}
		used, err := w.resources.holds.Used(ctx, id)
		if err != nil {
			return err
		}
		if !used {
			found[w.resources.noun(id)+" without holders"] = func(ctx context.Context) error { return w.resources.collect(ctx, id) }
		}
	}
	return nil
}
