package sol003

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Retry accepts another attempt at an occurrence that has failed temporarily. It returns
// nf.Conflict in another state.
func (m *Manager) Retry(ctx context.Context, id string, key nf.RequestKey) error {
	return m.again(ctx, id, key, "")
}

// Rollback accepts the rollback of an occurrence that has failed temporarily. It returns
// nf.Conflict in another state, and nf.Unsupported if the operation has no inverse.
func (m *Manager) Rollback(ctx context.Context, id string, key nf.RequestKey) error {
	return m.again(ctx, id, key, nf.Rollback)
}

// again accepts another attempt at an occurrence: with the verb, or, if that is empty, its
// own one.
func (m *Manager) again(ctx context.Context, id string, key nf.RequestKey, verb nf.Verb) error {
	o, err := m.occurrences.Get(ctx, id)
	if err != nil {
		return err
	}
	name := "retry"
	if verb != "" {
		name = "roll back"
	} else {
		verb = verbOf(o.Operation)
	}
	key.Client += "\x00" + name + " " + id
	_, err = m.accept(ctx, o.VNF, key, func() (operation.Request, error) {
		r, v, _, err := m.failed(ctx, name, id, nf.OccurrenceFailedTemp)
		if err != nil {
			return operation.Request{}, err
		}
		if verb == nf.Rollback && !r.CanUndo {
			return operation.Request{}, nf.E(nf.Unsupported, name, "occurrence "+id, fmt.Errorf("%s has no inverse; retry it or make it fail", r.Operation))
		}
		op := m.operation(v, verb, r.Task.Trace)
		op.VNF.Occurrence, op.Region = id, r.Region
		return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
			taken, err := m.locks.TakeOp(ctx, op, v, func(now *nf.VNF) error {
				if now.Occurrence != id {
					return nf.E(nf.Conflict, name, "occurrence "+id, errNotFailed)
				}
				return nil
			})
			return []store.Op{taken}, err
		}}, nil
	})
	return err
}

// failed returns an occurrence that has failed temporarily, with its VNF and the revisions
// of both. It may also be in the other state, if its VNF still names it. It returns
// nf.Conflict in another state, and nf.Busy while an attempt runs.
func (m *Manager) failed(ctx context.Context, verb, id string, or nf.OccurrenceState) (r record, v nf.VNF, read [2]store.Revision, err error) {
	if r, read[0], err = m.occurrences.GetRevision(ctx, id); err != nil {
		return r, v, read, err
	}
	if r.State != nf.OccurrenceFailedTemp && r.State != or {
		return r, v, read, notFailed(verb, r)
	}
	v, read[1], err = m.vnfs.GetRevision(ctx, r.VNF)
	switch {
	case err != nil && nf.KindOf(err) != nf.NotFound:
		return r, v, read, err
	case r.State.Final() && (err != nil || v.Occurrence != id):
		return r, v, read, notFailed(verb, r)
	case err != nil:
		return r, v, read, err
	}
	lock := lockOf(&v)
	if err := lock.Free(verb); err != nil {
		return r, v, read, err
	}
	if v.Occurrence != id {
		return r, v, read, nf.E(nf.Conflict, verb, "occurrence "+id, errNotFailed)
	}
	return r, v, read, nil
}

func notFailed(verb string, r record) error {
	return nf.E(nf.Conflict, verb, "occurrence "+r.ID, fmt.Errorf("it is %s: %w", r.State, errNotFailed))
}

// Fail makes an occurrence that has failed temporarily fail. What it has done stays: a VNF
// whose instantiation has failed is instantiated if it has an instance, so that it can be
// terminated. It returns nf.Conflict in another state.
func (m *Manager) Fail(ctx context.Context, id string) (nf.Occurrence, error) {
	for attempt := 0; ; attempt++ {
		r, ops, err := m.failing(ctx, id)
		if err == nil {
			_, err = store.Write(ctx, m.cfg.KV, ops)
		}
		if err == nil {
			m.noticed.Send()
			return r.Occurrence, nil
		}
		if kind := nf.KindOf(err); !changed(err) || kind != nf.Conflict && kind != nf.Exists {
			return nf.Occurrence{}, err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return nf.Occurrence{}, err
		}
	}
}

// failing returns the ops that make an occurrence fail: the notice, the occurrence, the
// VNF, and the release of the packages that the VNF does not need.
func (m *Manager) failing(ctx context.Context, id string) (r record, ops []store.Op, err error) {
	// A process that has died may have left a failed occurrence with its VNF unchanged.
	r, v, read, err := m.failed(ctx, "fail", id, nf.OccurrenceFailed)
	if err != nil {
		return r, nil, err
	}
	_, err = m.cfg.engineOf(v, r.Task.After).Instances.Instance(ctx, v.ID)
	exists := err == nil || stackedIn(r.Task) != nil
	if err := nf.IgnoreNotFound(err); err != nil {
		return r, nil, err
	}
	settle(&v, r.Task, nf.OccurrenceFailed)
	switch {
	case !exists:
		v.Instantiated = nil
	case v.Instantiated == nil && r.Task.After.Instantiated != nil:
		v.VIMs, v.Instantiated = r.Task.After.VIMs, r.Task.After.Instantiated
		settle(&v, r.Task, nf.OccurrenceFailed)
	}
	now := m.now()
	v.Updated = now
	if r.State != nf.OccurrenceFailed {
		r.Changes++
		r.enter(nf.OccurrenceFailed, now)
	}
	r.Noticed, r.Task.Inputs, r.Task.Secret = r.State, withoutHosts(r.Task.Inputs), nil
	if ops, err = noticeOps(ctx, m.notices, noticeOf(r, v)); err != nil {
		return r, nil, err
	}
	occurrence, err := m.occurrences.ReplaceOp(id, r, read[0])
	if err != nil {
		return r, nil, err
	}
	vnf, err := m.vnfs.ReplaceOp(v.ID, v, read[1])
	if err != nil {
		return r, nil, err
	}
	ops = append(ops, occurrence, vnf)
	for _, pkg := range unheld(v, r.Task.Before, r.Task.After) {
		released, err := m.cfg.Packages.ReleaseOps(ctx, holding(v, pkg))
		if err != nil {
			return r, nil, err
		}
		ops = append(ops, released...)
	}
	return r, ops, nil
}

// vnf returns a VNF and its revision. If a process has died after it stored that the VNF's
// occurrence has failed, vnf first completes this.
func (m *Manager) vnf(ctx context.Context, id string) (v nf.VNF, read store.Revision, err error) {
	v, read, err = m.vnfs.GetRevision(ctx, id)
	if err != nil || v.Occurrence == "" || v.Operation != "" {
		return v, read, err
	}
	o, err := m.occurrences.Get(ctx, v.Occurrence)
	if err != nil || o.State != nf.OccurrenceFailed {
		return v, read, nf.IgnoreNotFound(err)
	}
	if _, err := m.Fail(ctx, o.ID); err != nil && nf.KindOf(err) != nf.Conflict { // another request has completed it
		return v, read, err
	}
	return m.vnfs.GetRevision(ctx, id)
}

// Cancel cancels the present attempt at an occurrence. A graceful cancellation lets the
// engine complete its present step, except one that only waits until objects are ready; a
// forceful one ends it at once, and can follow a graceful one. An occurrence in the state
// STARTING ends as rolled back, unless the engine has begun; any other one has failed
// temporarily. An attempt that succeeds before it stops has succeeded. Cancel returns
// nf.Conflict in another state.
func (m *Manager) Cancel(ctx context.Context, id string, forceful bool) error {
	o, err := m.Occurrence(ctx, id)
	if err != nil {
		return err
	}
	if !o.State.Running() {
		return nf.E(nf.Conflict, "cancel", "occurrence "+id, fmt.Errorf("it is %s; only STARTING, PROCESSING and ROLLING_BACK can be cancelled", o.State))
	}
	v, err := m.vnfs.Get(ctx, o.VNF)
	if err != nil {
		return err
	}
	if v.Occurrence != id || v.Operation == "" {
		return nf.E(nf.Conflict, "cancel", "occurrence "+id, errors.New("its attempt has ended"))
	}
	pending := false
	r, err := m.occurrences.Update(ctx, id, func(r *record) error { // first: what ends the attempt reads it
		pending = r.Cancel
		r.Cancel = r.State.Running()
		r.Forceful = r.Cancel && (forceful || r.Forceful)
		return nil
	})
	if err != nil {
		return err
	}
	_, err = m.ledger.Cancel(ctx, v.Operation)
	if pending && forceful && nf.KindOf(err) == nf.Conflict { // it is being stopped
		err = nil
	}
	if err != nil {
		return err
	}
	if op := r.engineOperation(); pending && forceful && op != "" {
		_, err = m.cfg.engineOf(r.Task.Before, r.Task.After).Repairs.Cancel(ctx, op)
		if nf.KindOf(err) == nf.Conflict || nf.KindOf(err) == nf.NotFound { // it has ended
			err = nil
		}
	}
	return err
}

// engineOperation returns the engine's operation of the present attempt; empty if there is
// none.
func (r *record) engineOperation() string {
	if r.State == nf.OccurrenceRollingBack {
		return r.Engine.Undo
	}
	return r.Engine.Forward
}

// expired reports whether an occurrence whose VNF was deleted is past the retention.
func expired(r record, now time.Time, retention time.Duration) bool {
	return r.State.Final() && r.Entered.Before(now.Add(-retention))
}
