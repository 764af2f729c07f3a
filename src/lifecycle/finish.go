package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// hold keeps what the revision needs from being removed, writes the revision
// down, and sees to the namespaces.
func (r *run) hold(ctx context.Context) error {
	rev := r.op.Target
	// The revision comes first: holds are released by what revisions name.
	if err := r.revisions.Put(ctx, revisionKey(rev.Instance, rev.Number), rev); err != nil {
		return recordError(err)
	}
	for _, pkg := range packagesOf(rev) {
		err := r.cfg.Catalog.Hold(ctx, nf.Holding{Instance: rev.Instance, Region: r.op.Region, Package: pkg})
		if rev.Restores > 0 {
			err = nf.UnlessGone(err) // the plan is kept: whether its package is, too, does not matter
		}
		if err != nil {
			return recordError(err)
		}
	}
	return r.enterNamespaces(ctx)
}

// packagesOf returns the packages that a revision was made from.
func packagesOf(rev nf.Revision) []string {
	out := []string{rev.Package}
	for _, a := range rev.Amendments {
		out = append(out, a.Package)
	}
	return out
}

// finish brings the revision into force and unlocks the instance. From here on
// there is nothing left to cancel or to be late for: an instance that has been
// let go of must not be undone.
func (r *run) finish(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	rev := r.op.Target
	if err := r.releasePackages(ctx, rev); err != nil {
		return err
	}
	if err := r.forgetFailed(ctx, rev.Number); err != nil {
		return err
	}
	if err := r.unlock(ctx, func(in *nf.Instance) {
		describe(in, rev)
		in.Revision, in.Inventory = rev.Number, itemsOf(r.plan, in.Inventory)
		in.State, in.Message = nf.Ready, ""
	}); err != nil {
		return err
	}
	if err := r.trim(ctx, rev.Number); err != nil {
		r.log.WarnContext(ctx, "old revisions are left for the next change to forget", "error", err)
	}
	return nil
}

// forgetFailed removes the revisions that failed and were kept since the one in
// force: now there is nothing left to try again, and nobody wants to go back to
// what never worked.
func (r *run) forgetFailed(ctx context.Context, newest int) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	revisions, err := r.revisions.List(ctx, in.ID+"/")
	if err != nil {
		return recordError(err)
	}
	for _, rev := range revisions {
		if rev.Number <= in.Revision || rev.Number >= newest {
			continue
		}
		if err := r.dropRevision(ctx, rev); err != nil {
			return recordError(err)
		}
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
	if err := r.releasePackages(ctx, inForce(in)); err != nil {
		return err
	}
	gone := nf.UnlessGone(r.revisions.Delete(ctx, revisionKey(in.ID, failed.Number)))
	if err := errors.Join(gone, r.dropPlan(ctx, failed)); err != nil {
		return recordError(err)
	}
	return r.unlock(ctx, func(in *nf.Instance) {
		in.Inventory, in.State = itemsOf(r.plan, in.Inventory), nf.Ready
		in.Message = fmt.Sprintf("revision %d was undone: %s", failed.Number, r.op.Failure.Message)
	})
}

// unlock edits the instance and lets the next operation have it, once.
func (r *run) unlock(ctx context.Context, edit func(*nf.Instance)) error {
	_, err := r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
		switch {
		case in.Operation != r.op.ID:
			return nil // this step is being repeated
		case in.Claim != r.job.token:
			return errTaken
		}
		edit(in)
		in.Operation, in.Claim, in.Updated = "", "", r.now()
		return nil
	})
	return recordError(err)
}

// releasePackages lets go of every package that the instance has held, but those
// of one revision.
func (r *run) releasePackages(ctx context.Context, except nf.Revision) error {
	kept := packagesOf(except)
	revisions, err := r.revisions.List(ctx, r.op.Instance+"/")
	if err != nil {
		return recordError(err)
	}
	for _, rev := range revisions {
		for _, pkg := range packagesOf(rev) {
			if slices.Contains(kept, pkg) {
				continue
			}
			if err := r.cfg.Catalog.Release(ctx, nf.Holding{Instance: r.op.Instance, Package: pkg}); err != nil {
				return recordError(err)
			}
		}
	}
	return nil
}

// trim forgets the revisions that are too old to be kept.
func (r *run) trim(ctx context.Context, newest int) error {
	// Collected first: a store need not bear being changed while it is listed.
	revisions, err := r.revisions.List(ctx, r.op.Instance+"/")
	if err != nil {
		return recordError(err)
	}
	for _, rev := range revisions[:max(0, len(revisions)-r.cfg.Revisions)] {
		if rev.Number >= newest {
			return nil
		}
		if err := r.dropRevision(ctx, rev); err != nil {
			return recordError(err)
		}
	}
	return nil
}

func (e *Engine) dropRevision(ctx context.Context, rev nf.Revision) error {
	if err := e.dropPlan(ctx, rev); err != nil {
		return err
	}
	return nf.UnlessGone(e.revisions.Delete(ctx, revisionKey(rev.Instance, rev.Number)))
}

// forget removes the instance's records; its own comes last, because the others
// are found through it.
func (r *run) forget(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(nf.UnlessGone(err))
	}
	if err := r.releasePackages(ctx, nf.Revision{}); err != nil {
		return err
	}
	revisions, err := r.revisions.List(ctx, in.ID+"/")
	if err != nil {
		return recordError(err)
	}
	for _, rev := range revisions {
		if err := r.dropRevision(ctx, rev); err != nil {
			return recordError(err)
		}
	}
	err = errors.Join(
		r.cfg.Catalog.Release(ctx, nf.Holding{Instance: in.ID, Region: in.Region, Package: in.Package}),
		r.dropPlan(ctx, r.op.Target),
		r.releaseName(ctx, in),
	)
	if err != nil {
		return recordError(err)
	}
	return recordError(nf.UnlessGone(r.instances.Delete(ctx, in.ID)))
}
