package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// cleanPause is how often the store is looked through for what a death has left
// behind. What is found is removed when the next look finds it still: a request
// that is being accepted has leftovers too, for a moment.
const cleanPause = 10 * time.Minute

// leftovers are things that nothing leads to any more, and what removes each.
type leftovers map[string]func(context.Context) error

// clean removes what deaths leave behind, now and again, until the context ends.
func (e *Engine) clean(ctx context.Context) {
	var before leftovers
	for {
		now, err := e.leftovers(ctx)
		if err == nil {
			err = e.sweep(ctx, before, now)
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.WarnContext(ctx, "leftovers could not be removed", "error", err)
		}
		before = now
		if pause(ctx, cleanPause) != nil {
			return
		}
	}
}

// sweep removes what was found twice.
func (e *Engine) sweep(ctx context.Context, before, now leftovers) error {
	var errs []error
	for what, drop := range now {
		if before[what] == nil {
			continue
		}
		if err := drop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove %s: %w", what, err))
			continue
		}
		e.cfg.Logger.InfoContext(ctx, "a leftover was removed", "what", what)
	}
	return errors.Join(errs...)
}

// leftovers looks through the store.
func (e *Engine) leftovers(ctx context.Context) (leftovers, error) {
	known, found := map[string]bool{}, leftovers{}
	entered := map[string]bool{} // namespaces that an operation may be about to enter or to leave
	for in, err := range e.instances.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		known[in.ID] = true
		for _, namespace := range in.Entered {
			entered[tenancyKey(in.Region, namespace)] = in.Operation != "" || entered[tenancyKey(in.Region, namespace)]
		}
		if err := e.addLock(ctx, found, in); err != nil {
			return nil, err
		}
	}
	needed := map[string]bool{} // operations whose plans are
	for op, err := range e.operations.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		needed[op.ID] = true
		if !op.State.Final() {
			known[op.Instance] = true
			entered[tenancyKey(op.Region, op.Namespace)] = true
		}
	}
	return found, errors.Join(e.addNames(ctx, found, known), e.addTenants(ctx, found, known, entered), e.addHolds(ctx, found, known),
		e.addRevisions(ctx, found, known, needed), e.addBlobs(ctx, found, needed))
}

// addLock finds an instance that is locked by an operation that will never
// finish it: one that was given up while a late write of the store still bound
// the instance.
func (e *Engine) addLock(ctx context.Context, found leftovers, in nf.Instance) error {
	if in.Operation == "" {
		return nil
	}
	op, err := e.operations.Get(ctx, in.Operation)
	if err == nil && !op.State.Final() || err != nil && nf.KindOf(err) != nf.NotFound {
		return err
	}
	found["lock of VNF instance "+in.ID+" by "+in.Operation] = func(ctx context.Context) error {
		_, err := e.instances.Update(ctx, in.ID, func(now *nf.Instance) error {
			if now.Operation != in.Operation {
				return nil
			}
			now.Message = "operation " + now.Operation + " was given up"
			now.Operation, now.Claim, now.State, now.Updated = "", "", nf.Broken, e.now()
			return nil
		})
		return nf.UnlessGone(err)
	}
	return nil
}

// addNames finds the names of instances that do not exist: their requests died
// before they were accepted.
func (e *Engine) addNames(ctx context.Context, found leftovers, known map[string]bool) error {
	for n, err := range e.names.All(ctx, "") {
		if err != nil {
			return err
		}
		if known[n.Instance] {
			continue
		}
		found["name "+n.key()+" of "+n.Instance] = func(ctx context.Context) error {
			return e.releaseName(ctx, nf.Instance{ID: n.Instance, Name: n.Name, Region: n.Region, Namespace: n.Namespace})
		}
	}
	return nil
}

// addTenants finds what instances that do not exist have left of the use of
// namespaces.
func (e *Engine) addTenants(ctx context.Context, found leftovers, known, entered map[string]bool) error {
	abandoned, err := e.namespaces.Abandoned(ctx, known, entered)
	maps.Copy(found, abandoned)
	return err
}

// addRevisions finds revisions of instances that do not exist. The plans of the
// others are needed.
func (e *Engine) addRevisions(ctx context.Context, found leftovers, known, needed map[string]bool) error {
	for rev, err := range e.revisions.All(ctx, "") {
		if err != nil {
			return err
		}
		if known[rev.Instance] {
			needed[rev.Operation] = true
			continue
		}
		found[fmt.Sprintf("revision %d of %s", rev.Number, rev.Instance)] = func(ctx context.Context) error {
			return e.dropRevision(ctx, rev)
		}
	}
	return nil
}

// addHolds finds regions and packages that are held for instances that do not
// exist.
func (e *Engine) addHolds(ctx context.Context, found leftovers, known map[string]bool) error {
	for h, err := range e.cfg.Catalog.Holdings(ctx) {
		if err != nil {
			return err
		}
		if known[h.Instance] {
			continue
		}
		found[fmt.Sprintf("hold of %s on %s%s", h.Instance, h.Region, h.Package)] = func(ctx context.Context) error {
			return e.cfg.Catalog.Release(ctx, h)
		}
	}
	return nil
}

// addBlobs finds plans that are held for operations that do not exist, and
// content that no record names.
func (e *Engine) addBlobs(ctx context.Context, found leftovers, needed map[string]bool) error {
	for use, err := range e.blobs.Uses(ctx) {
		if err != nil {
			return err
		}
		op, isPlan := strings.CutPrefix(use.User, planUser(""))
		if isPlan && !needed[op] {
			found["plan of operation "+op] = func(ctx context.Context) error { return e.blobs.Release(ctx, use.User, use.Digest) }
		}
	}
	uploads, err := e.blobs.Unfinished(ctx)
	for _, id := range uploads {
		found["upload "+id] = func(ctx context.Context) error { return e.blobs.Finish(ctx, id) }
	}
	return err
}
