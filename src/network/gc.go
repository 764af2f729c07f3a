package network

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// sweep is one search for networks that nothing holds: a process has crashed after it
// had released one.
type sweep struct {
	s    *Networks
	idle map[string]bool // networks that are not kept, and that no operation changes
}

var _ operation.Sweep = (*sweep)(nil)

// Subjects implements operation.Sweep.
func (w *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return w.s.locks.Scan(ctx, named, func(n nf.Network) { w.idle[n.ID] = n.Operation == "" && !n.Keep }, func(_ context.Context, n *nf.Network) error {
		n.State, n.Failure = nf.NetworkFailed, nf.Textf("operation %s was given up", n.Operation)
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
		used, err := w.s.holds.Used(ctx, id)
		if err != nil {
			return err
		}
		if !used {
			found["network "+id+" without holders"] = func(ctx context.Context) error { return w.s.collect(ctx, id) }
		}
	}
	return nil
}
