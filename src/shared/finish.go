package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// checkHolders finds out whether a resource that is to be removed is in use again. Then
// it is again what it was before, and the next steps do nothing.
func (r *run) checkHolders(ctx context.Context) error {
	used, err := r.all.holds.Used(ctx, r.op().Subject.ID)
	if err != nil || !used {
		return operation.RecordError(err)
	}
	r.attempt.Note(func(op *nf.Operation) {
		r.all.cfg.Task(op).Used = true
		op.Warnings = []string{fmt.Sprintf("the %s is in use again, and remains", op.Subject.Kind)}
	})
	failed := r.task().Failed
	r.all.locks.Release(r.attempt, func(s *nf.Shared) {
		if s.State = nf.SharedFailed; !failed {
			s.State, s.Failure = nf.SharedActive, nf.Text{}
		}
	})
	return nil
}

// finish records the resource as it is now, and unlocks it.
func (r *run) finish(s nf.Shared) error {
	refs, err := r.all.cfg.Kind.Refs(s)
	if err != nil {
		return err
	}
	failure := nf.Text{}
	if f := r.op().Failure; f != nil {
		failure = nf.Textf("the last change was undone: %s", f.Said())
	}
	r.all.locks.Release(r.attempt, func(stored *nf.Shared) {
		stored.State, stored.Spec, stored.Inventory, stored.Failure = nf.SharedActive, s.Spec, refs, failure
		if was := r.task().Former; was != nil && r.op().Undoing {
			// The last user may have left during the change, because the resource was kept.
			stored.Keep, stored.Description, stored.Labels = stored.Keep || was.Keep, was.Description, was.Labels
		}
	})
	return nil
}

// deleteRecords deletes the resource, with the end of the operation.
func (r *run) deleteRecords(ctx context.Context) error {
	if _, err := r.all.locks.Get(ctx, r.attempt); err != nil {
		return operation.RecordError(nf.IgnoreNotFound(err)) // an earlier attempt has deleted it
	}
	id := r.op().Subject.ID
	var named []nf.Holder // whose requests have failed
	for holder, err := range r.all.Holders(ctx, id) {
		if err != nil {
			return operation.RecordError(err)
		}
		if holder.Subject.Kind == nf.HolderSubject {
			named = append(named, holder)
		}
	}
	if err := r.attempt.Held(ctx); err != nil {
		return err
	}
	var failed error
	for _, holder := range named {
		failed = errors.Join(failed, r.all.holds.Drop(ctx, id, holder))
	}
	if err := errors.Join(failed, r.all.cfg.Regions.Release(ctx, r.holding())); err != nil {
		return operation.RecordError(err)
	}
	r.all.locks.Delete(r.attempt)
	return nil
}

// Release implements operation.Work. The last step of an operation that succeeds, or is
// undone, unlocks the resource.
func (r *run) Release(context.Context) error {
	failure := r.op().Failure
	if failure == nil {
		return nil
	}
	r.all.locks.Release(r.attempt, func(s *nf.Shared) { s.State, s.Failure = nf.SharedFailed, failure.Said() })
	return nil
}
