package lifecycle

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// performer opens the work of operations on instances.
type performer struct {
	records   *records
	catalog   Catalog
	networks  Networks
	volumes   Volumes
	workloads Workloads
	engine    *Engine // terminates instances in regions that are deregistered
	directory Directory
	open      OpenCluster
	apart     bool // see Config
	kept      int  // revisions kept per instance
}

// work returns the work of one attempt at an operation.
func (p *performer) work(a *operation.Attempt) operation.Work {
	r := &run{attempt: a, records: p.records}
	return &work{
		run: r, records: p.records, open: p.open, kept: p.kept,
		applier: &applier{run: r, tried: map[int]bool{}}, namespaces: &namespaceUser{run: r, catalog: p.catalog, apart: p.apart},
		shared:    &sharedUser{run: r, networks: p.networks, volumes: p.volumes},
		workloads: &workloadUser{run: r, workloads: p.workloads, engine: p.engine},
		directory: p.directory,
	}
}

var (
	_ operation.Work   = (*work)(nil)
	_ operation.Undoer = (*work)(nil)
	_ operation.Waiter = (*work)(nil)
)

// Bind implements operation.Work.
func (w *work) Bind(ctx context.Context) (locked bool, err error) {
	in, locked, err := w.records.locks.Bind(ctx, w.run.attempt)
	w.run.redactor = newRedactor(w.run.op().Instance.Target, inForce(in))
	return locked, err
}

// Release implements operation.Work. The last step of an operation that succeeds
// unlocks the instance.
func (w *work) Release(context.Context) error {
	op := w.run.op()
	if op.Failure == nil {
		return nil
	}
	sound := op.Verb == nf.Test || stays(op.Verb) // the instance is as it was, or better
	w.run.unlock(func(in *nf.Instance) {
		if acted(op) {
			in.Settings = nf.MergeSettings(in.Settings, op.Instance.Settings) // until it is undone, they may be in force
		}
		if !sound {
			in.Become(nf.Broken, op.Failure.Message, op.Failure.Mentions...)
		}
	})
	return nil
}

// Failure implements operation.Work.
func (w *work) Failure(ctx context.Context, step string, err error) *nf.Failure {
	return nf.FailureOf(step, w.run.redactor.error(w.applier.elaborate(ctx, err)))
}

// WaitReason implements operation.Waiter.
func (w *work) WaitReason(err error) *nf.Wait {
	reason := operation.RegionAway(err)
	if reason != nil {
		said := reason.Said().Map(w.run.redactor.values.Text)
		reason.For, reason.Mentions = said.Message, said.Mentions
	}
	return reason
}

// Reopen implements operation.Waiter: the region may be registered with another
// kubeconfig by now.
func (w *work) Reopen(ctx context.Context) (err error) {
	op := w.run.op()
	w.run.cluster, err = w.open(ctx, op.Region, nf.ProjectOf(op.Project))
	return operation.RecordError(err) // open does not dial: only the store can be unreachable
}
