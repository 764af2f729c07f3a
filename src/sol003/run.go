package sol003

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// run is the work of one attempt at an occurrence.
type run struct {
	m       *Manager
	attempt *operation.Attempt
	vnf     nf.VNF
	journal *journal
	reading bool // the current step only reads from the region
}

var (
	_ operation.Work   = (*run)(nil)
	_ operation.Undoer = (*run)(nil)
	_ operation.Waiter = (*run)(nil)
)

// work returns the work of one attempt.
func (m *Manager) work(a *operation.Attempt) operation.Work {
	return &run{m: m, attempt: a, journal: &journal{m: m, attempt: a}}
}

func (r *run) op() nf.Operation { return r.attempt.Op() }

// engine returns the engine that carries out the occurrence.
func (r *run) engine() Engine { return r.m.cfg.engineOf(r.record().Task.Before, r.record().Task.After) }

// record returns the occurrence with all changes of this attempt.
func (r *run) record() *record { return &r.journal.record }

// undoes reports whether the attempt rolls the occurrence back.
func (r *run) undoes() bool { return r.op().Verb == nf.Rollback }

// Bind implements operation.Work. The first write of an attempt that is not the first
// makes the occurrence enter its state; that of the first one only adds the notice.
func (r *run) Bind(ctx context.Context) (locked bool, err error) {
	r.vnf, locked, err = r.m.locks.Bind(ctx, r.attempt)
	if err != nil || !locked {
		return locked, err
	}
	if err := r.journal.bind(ctx); err != nil {
		return true, err
	}
	rec, op := r.record(), r.op().ID
	switch {
	case !slices.Contains(rec.Attempts, op):
		r.journal.add(stateOf(r.op().Verb), r.vnf, func(rec *record) {
			rec.Attempts, rec.Cancel, rec.Engine.Outcome = append(rec.Attempts, op), false, "" // the failure stays until the end
			rec.Forceful = false
		})
	case rec.Noticed != rec.State:
		r.journal.add(rec.State, r.vnf, nil)
	}
	return true, nil
}

// Failure implements operation.Work. Errors of the engine have no secrets.
func (r *run) Failure(_ context.Context, step string, err error) *nf.Failure {
	return nf.FailureOf(step, err)
}

// WaitReason implements operation.Waiter: an attempt waits for a region only to read the
// pods. What the engine does waits in the engine's operation.
func (r *run) WaitReason(err error) *nf.Wait {
	if !r.reading {
		return nil
	}
	return operation.RegionAway(err)
}

// Reopen implements operation.Waiter.
func (r *run) Reopen(context.Context) error { return nil }

// step returns a step of the attempt. Each is recorded before it runs.
func (r *run) step(phase nf.Phase, do func(context.Context) error) operation.Step {
	return operation.Step{Step: nf.Step{StepID: nf.StepID{Phase: phase, Undo: r.op().Undoing}}, Do: do, Recorded: true}
}

// Steps implements operation.Work.
func (r *run) Steps(ctx context.Context) ([]operation.Step, error) {
	var steps []operation.Step
	switch {
	case r.record().State.Final():
		return nil, nil // only the VNF is to be updated
	case r.record().Operation == nf.OccurrenceModify:
		return []operation.Step{r.step(nf.PhaseFinish, func(context.Context) error { return nil })}, nil
	case r.m.cfg.Granter != nil && r.record().State == nf.OccurrenceStarting:
		steps = append(steps, r.step(nf.PhaseGrant, r.grant))
	}
	before, after, err := scripts{r}.steps(ctx)
	if err != nil {
		return nil, err
	}
	by := carrierOf(r)
	steps = append(append(steps, before...), r.step(nf.PhaseBegin, by.begin), r.step(nf.PhaseWait, by.wait))
	return append(append(steps, after...), r.step(nf.PhaseObserve, by.observe)), nil
}

// begin begins the engine's operation. From then on, the occurrence is processed.
func (r *run) begin(ctx context.Context) error {
	if err := r.attempt.Held(ctx); err != nil {
		return err
	}
	op, err := r.start(ctx)
	if err != nil {
		return err
	}
	return r.begun(ctx, op.ID)
}

// begun records the engine's operation. It is empty if there is nothing to do.
func (r *run) begun(ctx context.Context, id string) error {
	state, undoes := stateOf(r.op().Verb), r.undoes()
	return r.journal.save(ctx, state, r.vnf, func(rec *record) {
		if undoes {
			rec.Engine.Undo = id
		} else {
			rec.Engine.Forward = id
		}
	})
}

// current returns the engine's operation of this attempt; empty if there is none.
func (r *run) current() string {
	if r.undoes() {
		return r.record().Engine.Undo
	}
	return r.record().Engine.Forward
}

// wait waits until the engine's operation ends. Others use this attempt's place in the
// meantime.
func (r *run) wait(ctx context.Context) error {
	id := r.current()
	if id == "" {
		return nil
	}
	ended, err := r.await(ctx, id)
	if err != nil {
		return err
	}
	return ended.Err()
}

func (r *run) await(ctx context.Context, id string) (nf.Operation, error) {
	defer r.attempt.Yield()()
	op, err := r.engine().Instances.Wait(ctx, id)
	return op, operation.RecordError(err)
}

// Undoable implements operation.Undoer. The undo of an attempt only stops the engine's
// operation: what that has done stays, until the occurrence is retried or rolled back.
func (r *run) Undoable(ctx context.Context) (bool, error) {
	rec := r.record()
	if rec.State.Final() || rec.Operation == nf.OccurrenceModify {
		return false, nil
	}
	if !r.steps(nf.PhaseBegin) {
		return false, nil
	}
	return carrierOf(r).active(ctx)
}

// steps reports whether a step of the phase has begun.
func (r *run) steps(phase nf.Phase) bool {
	return slices.ContainsFunc(r.op().Steps, func(s nf.Step) bool { return s.Phase == phase })
}

// UndoSteps implements operation.Undoer.
func (r *run) UndoSteps(context.Context) ([]operation.Step, error) {
	by := carrierOf(r)
	return []operation.Step{r.step(nf.PhaseStop, by.stop), r.step(nf.PhaseObserve, by.observe)}, nil
}

// mine returns the engine's operation of this attempt. The process may have died before
// it recorded it; so the instance is asked, too.
func (r *run) mine(ctx context.Context) (id string, found bool, err error) {
	key := r.key()
	recorded := r.current()
	if recorded != "" {
		op, err := r.engine().Instances.Operation(ctx, recorded)
		if err == nil && op.Request.Same(key) {
			return recorded, true, nil
		}
		if err := nf.IgnoreNotFound(err); err != nil {
			return "", false, operation.RecordError(err)
		}
	}
	in, err := r.engine().Instances.Instance(ctx, r.vnf.ID)
	if err != nil {
		return "", false, operation.RecordError(nf.IgnoreNotFound(err))
	}
	op, err := r.engine().Instances.Operation(ctx, in.LastOperation)
	if err != nil {
		return "", false, operation.RecordError(nf.IgnoreNotFound(err))
	}
	return op.ID, op.Request.Same(key), nil
}

// ending returns what cancels the engine's operation: before its next step if the occurrence
// is being cancelled gracefully.
func ending(by Repairs, o record) func(ctx context.Context, operation string) (nf.Operation, error) {
	if o.Cancel && !o.Forceful {
		return by.Stop
	}
	return by.Cancel
}

// stop cancels the engine's operation of an attempt that has failed or was cancelled, and
// waits for its end. If it has succeeded all the same, so has the attempt.
func (r *run) stop(ctx context.Context) error {
	id, found, err := r.mine(ctx)
	if err != nil || !found {
		return err
	}
	if id != r.current() {
		if err := r.begun(ctx, id); err != nil {
			return err
		}
	}
	op, err := r.engine().Instances.Operation(ctx, id)
	if err != nil {
		return operation.RecordError(err)
	}
	if !op.State.Final() {
		if err := r.attempt.Held(ctx); err != nil {
			return err
		}
		now, err := r.m.occurrences.Get(ctx, r.record().ID) // the request to cancel it has changed only the stored one
		if err != nil {
			return operation.RecordError(err)
		}
		if _, err := ending(r.engine().Repairs, now)(ctx, id); err != nil && nf.KindOf(err) != nf.Conflict {
			return err
		}
		if op, err = r.await(ctx, id); err != nil {
			return err
		}
	}
	if op.State != nf.Succeeded || (scripts{r}).concluded() {
		return nil
	}
	return r.journal.save(ctx, "", r.vnf, func(rec *record) { rec.Engine.Outcome = string(nf.Succeeded) })
}
