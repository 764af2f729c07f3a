package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// recordRevision records the revision, before the first step runs. Order matters:
// holds are released for the packages that revisions name.
func (w *work) recordRevision() {
	rev := w.run.op().Instance.Target
	w.run.attempt.Also(func(context.Context) ([]store.Op, error) {
		op, err := w.records.revisions.PutOp(revisionKey(rev.Instance, rev.Number), rev)
		return []store.Op{op}, err
	})
}

// reserve prevents the removal of the revision's region and packages, and acquires
// its namespaces.
func (w *work) reserve(ctx context.Context) error {
	rev := w.run.op().Instance.Target
	if err := w.shared.retain(ctx, rev, rev.Restores > 0); err != nil {
		return err
	}
	return w.namespaces.acquireNamespaces(ctx)
}

// activate makes the revision the active one and unlocks the instance.
// Cancellation and the deadline no longer apply: once the instance is unlocked, the operation
// must not be undone.
func (w *work) activate(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	rev := w.run.op().Instance.Target
	var revisions []nf.Revision
	if rev.Number > 1 { // the first one is the only one
		var err error
		if revisions, err = w.revisions(ctx); err != nil {
			return err
		}
	}
	if err := w.releasePackages(ctx, revisions, rev); err != nil {
		return err
	}
	if err := w.shared.release(ctx, revisions, rev); err != nil {
		return err
	}
	revisions, err := w.deleteFailedRevisions(ctx, revisions, rev.Number)
	if err != nil {
		return err
	}
	w.run.unlock(func(in *nf.Instance) {
		describe(in, rev)
		in.Revision, in.Inventory, in.Settings = rev.Number, itemsOf(w.run.plan, in.Inventory), w.run.settings
		in.Become(nf.Ready, "")
	})
	return w.trim(ctx, revisions, rev.Number)
}

// deleteFailedRevisions deletes those of the instance's revisions that failed after the
// active one, and returns the others. The failed ones can no longer be retried, and are
// not worth a rollback.
func (w *work) deleteFailedRevisions(ctx context.Context, revisions []nf.Revision, newest int) (kept []nf.Revision, err error) {
	in, err := w.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	for _, rev := range revisions {
		if rev.Number <= in.Revision || rev.Number >= newest {
			kept = append(kept, rev)
			continue
		}
		if err := w.records.dropRevision(ctx, rev); err != nil {
			return nil, operation.RecordError(err)
		}
	}
	return kept, nil
}

// restoreRecord restores the instance's record to its state before the change.
func (w *work) restoreRecord(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	in, err := w.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	failed := w.run.op().Instance.Target
	revisions, err := w.revisions(ctx)
	if err != nil {
		return err
	}
	if err := w.releasePackages(ctx, revisions, inForce(in)); err != nil {
		return err
	}
	if err := w.shared.release(ctx, revisions, inForce(in)); err != nil {
		return err
	}
	if err := errors.Join(w.records.deleteRevision(ctx, failed), w.records.dropPlan(ctx, failed)); err != nil {
		return operation.RecordError(err)
	}
	why := nf.Textf("revision %d was undone: %s", failed.Number, w.run.op().Failure.Said())
	w.run.unlock(func(in *nf.Instance) {
		in.Inventory = itemsOf(w.run.plan, in.Inventory)
		in.Become(nf.Ready, why.Message, why.Mentions...)
	})
	return nil
}

// revisions returns the instance's revisions, ascending. They are not those of a
// later instance with the id: the claim is compared after they were read.
func (w *work) revisions(ctx context.Context) ([]nf.Revision, error) {
	// Collected first: a store need not support changes while it is listed.
	revisions, err := w.records.revisions.List(ctx, w.run.op().Subject.ID+"/")
	if err != nil {
		return nil, operation.RecordError(err)
	}
	return revisions, w.run.attempt.Held(ctx)
}

// releasePackages releases the holds on the packages of the instance's revisions,
// except the packages of one revision.
func (w *work) releasePackages(ctx context.Context, revisions []nf.Revision, except nf.Revision) error {
	kept := packagesOf(except)
	for _, rev := range revisions {
		for _, pkg := range packagesOf(rev) {
			if slices.Contains(kept, pkg) {
				continue
			}
			kept = append(kept, pkg) // it is released once
			if err := w.run.attempt.Held(ctx); err != nil {
				return err
			}
			if err := w.records.holds.Release(ctx, nf.Holding{Holder: holderOf(w.run.op()), Package: pkg}); err != nil {
				return operation.RecordError(err)
			}
		}
	}
	return nil
}

// trim deletes the oldest revisions, so that at most Config.Revisions remain. One that
// cannot be deleted now is deleted after the next change.
func (w *work) trim(ctx context.Context, revisions []nf.Revision, newest int) error {
	if len(revisions) <= w.kept {
		return nil
	}
	// The newest one must be in force before another one is deleted.
	if err := w.run.attempt.Save(ctx, func(*nf.Operation) {}); err != nil {
		return err
	}
	for _, rev := range revisions[:len(revisions)-w.kept] {
		if rev.Number >= newest {
			break
		}
		if err := w.records.dropRevision(ctx, rev); err != nil {
			w.run.attempt.Log().WarnContext(ctx, "failed to delete old revisions; the next change deletes them", "error", err)
			break
		}
	}
	return nil
}

// deleteRecords deletes the instance's records, with the end of the operation. After
// another replica has claimed the operation, a new instance may have the id and the
// name: then it returns operation.ErrTaken.
func (w *work) deleteRecords(ctx context.Context) error {
	in, err := w.records.locks.Get(ctx, w.run.attempt)
	if err != nil {
		return operation.RecordError(nf.IgnoreNotFound(err))
	}
	w.run.attempt.Also(func(ctx context.Context) ([]store.Op, error) {
		revisions, err := w.revisions(ctx)
		if err != nil {
			return nil, err
		}
		ops, err := w.records.deletion(ctx, in, w.run.op(), revisions)
		if err != nil {
			return nil, err
		}
		// Order matters: what was read is not what a new instance with the id has.
		return ops, w.run.attempt.Held(ctx)
	})
	w.records.locks.Delete(w.run.attempt) // the last one, because the others are found through it
	return nil
}

// deletion returns the ops that delete what an instance has, except its own record.
// They fail if something is not as it was read.
func (s *records) deletion(ctx context.Context, in nf.Instance, op nf.Operation, revisions []nf.Revision) ([]store.Op, error) {
	var ops []store.Op
	var failed error
	add := func(more []store.Op, err error) { ops, failed = append(ops, more...), errors.Join(failed, err) }
	// Order matters: the packages that are held are found through the revisions.
	packages := []string{in.Package}
	for _, rev := range revisions {
		packages = append(packages, packagesOf(rev)...)
	}
	slices.Sort(packages)
	for _, pkg := range slices.Compact(packages) {
		add(s.holds.ReleaseOps(ctx, nf.Holding{Holder: holderOf(op), Package: pkg}))
	}
	users := map[string][]string{} // of each plan
	for _, rev := range append(slices.Clip(revisions), op.Instance.Target) {
		if rev.Plan != "" {
			users[rev.Plan] = append(users[rev.Plan], planUser(rev.Operation))
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(users)) {
		add(s.blobs.ReleaseOp(ctx, digest, users[digest]...))
	}
	for _, rev := range revisions {
		add(s.revisions.DeleteWhereOps(ctx, revisionKey(rev.Instance, rev.Number), sameRevision(rev)))
	}
	add(s.holds.ReleaseOps(ctx, nf.Holding{Holder: holderOf(op), Region: in.Region}))
	if in.Name != "" {
		add(s.names.DeleteWhereOps(ctx, nameKey(in), heldBy(in)))
	}
	return ops, operation.RecordError(failed)
}
