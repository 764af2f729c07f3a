package network

import (
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// checkHolders finds out whether a network that is to be removed is in use again. Then
// it becomes active, and the next steps do nothing.
func (r *run) checkHolders(ctx context.Context) error {
	used, err := r.s.holds.Used(ctx, r.op().Subject.ID)
	if err != nil || !used {
		return operation.RecordError(err)
	}
	r.attempt.Note(func(op *nf.Operation) {
		op.Network.Used, op.Warnings = true, []string{"the network is in use again, and remains"}
	})
	r.s.locks.Release(r.attempt, func(n *nf.Network) { n.State, n.Failure = nf.NetworkActive, nf.Text{} })
	return nil
}

// finish records the network as it is now, and unlocks it.
func (r *run) finish(n nf.Network) error {
	refs, err := r.refs(n)
	if err != nil {
		return err
	}
	failure := nf.Text{}
	if f := r.op().Failure; f != nil {
		failure = nf.Textf("the last change was undone: %s", f.Said())
	}
	r.s.locks.Release(r.attempt, func(stored *nf.Network) {
		stored.State, stored.Spec, stored.Inventory, stored.Failure = nf.NetworkActive, n.Spec, refs, failure
	})
	return nil
}

// deleteRecords deletes the network, with the end of the operation.
func (r *run) deleteRecords(ctx context.Context) error {
	if _, err := r.s.locks.Get(ctx, r.attempt); err != nil {
		return operation.RecordError(nf.IgnoreNotFound(err)) // an earlier attempt has deleted it
	}
	id := r.op().Subject.ID
	var named []nf.Holder // whose requests have failed
	for holder, err := range r.s.Holders(ctx, id) {
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
		failed = errors.Join(failed, r.s.holds.Drop(ctx, id, holder))
	}
	if err := errors.Join(failed, r.s.cfg.Regions.Release(ctx, r.holding())); err != nil {
		return operation.RecordError(err)
	}
	r.s.locks.Delete(r.attempt)
	return nil
}

// Release implements operation.Work. The last step of an operation that succeeds, or is
// undone, unlocks the network.
func (r *run) Release(context.Context) error {
	failure := r.op().Failure
	if failure == nil {
		return nil
	}
	r.s.locks.Release(r.attempt, func(n *nf.Network) { n.State, n.Failure = nf.NetworkFailed, failure.Said() })
	return nil
}
