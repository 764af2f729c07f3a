package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// hold keeps what the revision needs from being removed, writes the revision
// down, and sees to the namespace.
func (r *run) hold(ctx context.Context) error {
	rev := r.op.Target
	// The revision comes first: holds are released by what revisions name.
	if err := r.revisions.Put(ctx, revisionKey(rev.Instance, rev.Number), rev); err != nil {
		return recordError(err)
	}
	if err := r.cfg.Catalog.Hold(ctx, rev.Instance, r.op.Region, rev.Package); err != nil {
		return recordError(err)
	}
	return r.enterNamespace(ctx)
}

// finish brings the revision into force and unlocks the instance. From here on
// there is nothing left to cancel or to be late for: an instance that has been
// let go of must not be undone.
func (r *run) finish(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	rev := r.op.Target
	if err := r.releasePackages(ctx, rev.Package); err != nil {
		return err
	}
	if err := r.unlock(ctx, func(in *nf.Instance) {
		describe(in, rev)
		in.Revision, in.Inventory = rev.Number, itemsOf(r.plan)
		in.State, in.Message = nf.Ready, ""
	}); err != nil {
		return err
	}
	if err := r.trim(ctx, rev.Number); err != nil {
		r.log.WarnContext(ctx, "old revisions are left for the next change to forget", "error", err)
	}
	return nil
}

// finishUndo leaves the instance as it was before the change.
func (r *run) finishUndo(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	failed := r.op.Target
	if err := r.releasePackages(ctx, in.Package); err != nil {
		return err
	}
	gone := unlessGone(r.revisions.Delete(ctx, revisionKey(in.ID, failed.Number)))
	if err := errors.Join(gone, r.dropPlan(ctx, failed)); err != nil {
		return recordError(err)
	}
	return r.unlock(ctx, func(in *nf.Instance) {
		in.Inventory, in.State = itemsOf(r.plan), nf.Ready
		in.Message = fmt.Sprintf("revision %d was undone: %s", failed.Number, r.op.Failure.Message)
	})
}

// unlock edits the instance and lets the next operation have it, once.
func (r *run) unlock(ctx context.Context, edit func(*nf.Instance)) error {
	_, err := r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
		if in.Operation != r.op.ID {
			return nil // this step is being repeated
		}
		edit(in)
		in.Operation, in.Updated = "", r.now()
		return nil
	})
	return recordError(err)
}

// releasePackages lets go of every package that the instance has held, but one.
func (r *run) releasePackages(ctx context.Context, except string) error {
	for rev, err := range r.revisions.All(ctx, r.op.Instance+"/") {
		if err != nil {
			return recordError(err)
		}
		if rev.Package == except {
			continue
		}
		if err := r.cfg.Catalog.ReleasePackage(ctx, r.op.Instance, rev.Package); err != nil {
			return recordError(err)
		}
	}
	return nil
}

// trim forgets the revisions that are too old to be kept.
func (r *run) trim(ctx context.Context, newest int) error {
	for rev, err := range r.revisions.All(ctx, r.op.Instance+"/") {
		if err != nil {
			return recordError(err)
		}
		if rev.Number > newest-r.cfg.Revisions {
			return nil
		}
		if err := r.dropRevision(ctx, rev); err != nil {
			return recordError(err)
		}
	}
	return nil
}

func (r *run) dropRevision(ctx context.Context, rev nf.Revision) error {
	if err := r.dropPlan(ctx, rev); err != nil {
		return err
	}
	return unlessGone(r.revisions.Delete(ctx, revisionKey(rev.Instance, rev.Number)))
}

// forget removes the instance's records; its own comes last, because the others
// are found through it.
func (r *run) forget(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(unlessGone(err))
	}
	if err := r.releasePackages(ctx, ""); err != nil {
		return err
	}
	for rev, err := range r.revisions.All(ctx, in.ID+"/") {
		if err != nil {
			return recordError(err)
		}
		if err := r.dropRevision(ctx, rev); err != nil {
			return recordError(err)
		}
	}
	err = errors.Join(
		r.cfg.Catalog.ReleasePackage(ctx, in.ID, in.Package),
		r.cfg.Catalog.ReleaseRegion(ctx, in.ID, in.Region),
		r.dropPlan(ctx, r.op.Target),
		r.releaseName(ctx, in),
	)
	if err != nil {
		return recordError(err)
	}
	return recordError(unlessGone(r.instances.Delete(ctx, in.ID)))
}
