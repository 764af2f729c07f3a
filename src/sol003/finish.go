package sol003

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Release implements operation.Work. With the end of the attempt, the occurrence enters
// its next state, and the VNF is unlocked as that state leaves it.
func (r *run) Release(context.Context) error {
	rec := r.record()
	if !rec.State.Final() {
		r.conclude()
	}
	task, state := rec.Task, rec.State
	r.m.locks.Release(r.attempt, func(v *nf.VNF) { settle(v, task, state) })
	if !state.Final() {
		return nil
	}
	after := r.vnf
	settle(&after, task, state)
	if in := stackedIn(task); in != nil && after.Instantiated == nil {
		r.release(cloudHolding(r.vnf, in.Region))
	}
	for _, pkg := range unheld(after, task.Before, task.After) {
		r.release(holding(r.vnf, pkg))
	}
	return nil
}

// release releases, with the end of the attempt, what the VNF does not need after it.
func (r *run) release(h nf.Holding) {
	r.attempt.Also(func(ctx context.Context) ([]store.Op, error) { return r.m.cfg.Packages.ReleaseOps(ctx, h) })
}

// conclude makes the occurrence enter the state that follows from the attempt.
func (r *run) conclude() {
	rec, failure := r.record(), r.op().Failure
	state := nf.OccurrenceFailedTemp
	switch {
	case r.undoes() && failure == nil, r.undoes() && rec.Engine.Outcome != "":
		state = nf.OccurrenceRolledBack
	case r.undoes():
	case failure == nil, rec.Engine.Outcome != "":
		state = nf.OccurrenceCompleted
	case rec.State == nf.OccurrenceStarting: // nothing has begun
		state = nf.OccurrenceRolledBack
	}
	if state == nf.OccurrenceCompleted {
		failure = nil
	}
	after := r.vnf
	settle(&after, rec.Task, state)
	undone := r.undoes()
	r.journal.add(state, after, func(rec *record) {
		rec.Cancel, rec.Forceful = false, false
		if state.Final() {
			rec.Task.Inputs, rec.Task.Secret = withoutHosts(rec.Task.Inputs), nil
		}
		if failure != nil || !undone { // a rollback keeps the cause
			rec.Failure = failure
		}
		if state == nf.OccurrenceCompleted && (rec.Operation == nf.OccurrenceModify || rec.Operation == nf.OccurrenceCurrentPackage) {
			rec.Changed = changedOf(rec.Task)
		}
	})
}

// packagesOf returns the packages that VNFs hold: the ones that they run, and those that
// their next instantiations use.
func packagesOf(vnfs ...nf.VNF) (out []string) {
	for _, v := range vnfs {
		out = append(out, v.Package, v.Running())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unheld returns the packages of VNFs that another one does not hold.
func unheld(by nf.VNF, of ...nf.VNF) []string {
	held := packagesOf(by)
	return slices.DeleteFunc(packagesOf(of...), func(pkg string) bool { return slices.Contains(held, pkg) })
}

// settle edits a VNF whose occurrence has entered a state.
func settle(v *nf.VNF, t task, state nf.OccurrenceState) {
	if state == nf.OccurrenceCompleted {
		a := t.After
		v.Name, v.Description, v.Package, v.VNFD, v.Metadata, v.Extensions, v.Configurable, v.VIMs, v.Instantiated = a.Name, a.Description, a.Package, a.VNFD, a.Metadata, a.Extensions, a.Configurable, a.VIMs, a.Instantiated
	}
	if state.Final() {
		v.Occurrence = ""
	}
	if v.Instantiated != nil && t.Found != nil {
		in := *v.Instantiated
		in.VNFCs = slices.Clone(t.Found)
		v.Instantiated = &in
	}
}
