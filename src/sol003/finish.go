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
	if in := stackedIn(task); in != nil {
		leave(r, in.Region, state)
	}
	kept := packageOf(task, state)
	for _, pkg := range []string{task.Before.Package, task.After.Package} {
		if pkg == kept {
			continue
		}
		r.attempt.Also(func(ctx context.Context) ([]store.Op, error) {
			return r.m.cfg.Packages.ReleaseOps(ctx, holding(r.vnf, pkg))
		})
		break
	}
	return nil
}

// leave releases the OpenStack cloud of a VNF that is not instantiated after an occurrence.
func leave(r *run, region string, state nf.OccurrenceState) {
	after := r.vnf
	settle(&after, r.record().Task, state)
	if after.Instantiated != nil {
		return
	}
	r.attempt.Also(func(ctx context.Context) ([]store.Op, error) {
		return r.m.cfg.Packages.ReleaseOps(ctx, cloudHolding(r.vnf, region))
	})
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

// packageOf returns the package of a VNF after an occurrence.
func packageOf(t task, state nf.OccurrenceState) string {
	if state == nf.OccurrenceCompleted {
		return t.After.Package
	}
	return t.Before.Package
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
