package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Use adds a holder to a resource that may be used. It returns nf.NotFound if the
// resource does not exist, and nf.Conflict if it has failed; then the holder has no hold,
// except that which it had on a failed resource. It returns nf.Busy, with the operation,
// while the resource is being created or deleted: the holder must then use it again, or
// release it. It is idempotent.
func (r *Resources) Use(ctx context.Context, id string, holder nf.Holder) (nf.Shared, error) {
	had, err := r.holds.Has(ctx, id, holder)
	if err != nil {
		return nf.Shared{}, err
	}
	s, err := r.use(ctx, id, holder)
	if kind := nf.KindOf(err); err != nil && (kind == nf.NotFound || kind == nf.Conflict && !had) {
		err = errors.Join(err, r.holds.Drop(ctx, id, holder))
	}
	return s, err
}

func (r *Resources) use(ctx context.Context, id string, holder nf.Holder) (nf.Shared, error) {
	if err := r.holds.Add(ctx, id, holder); err != nil {
		return nf.Shared{}, err
	}
	s, err := r.table.Get(ctx, id)
	switch {
	case err != nil:
		return s, err
	case s.State == nf.SharedActive || s.State == nf.SharedChanging:
		return s, nil
	case s.State == nf.SharedFailed || s.Operation == "": // or its operation was given up
		return s, nf.E(nf.Conflict, "use", r.noun(id), nf.Errorf("it has failed: %s", s.Failure))
	}
	return s, r.lockOf(&s).Free("use")
}

// Leave ends a hold on a resource. The last holder begins the removal of the resource,
// unless the resource is kept. It returns nf.Busy, with the operation, if another
// operation of the resource runs: the holder must then leave again. It does not if that
// operation restarts instances, because it may wait for the holder; then the resource is
// removed later. Leave is idempotent, and returns nil if the resource does not exist.
func (r *Resources) Leave(ctx context.Context, id string, holder nf.Holder) error {
	if err := r.holds.Drop(ctx, id, holder); err != nil {
		return err
	}
	return r.collect(ctx, id)
}

// collect begins the removal of a resource that has no holder and is not kept.
func (r *Resources) collect(ctx context.Context, id string) error {
	for attempt := 0; ; attempt++ {
		s, err := r.table.Get(ctx, id)
		if err != nil || s.Keep {
			return nf.IgnoreNotFound(err)
		}
		used, err := r.holds.Used(ctx, id)
		if err != nil || used || s.State == nf.SharedDeleting && s.Operation != "" {
			return err
		}
		if restarts, err := isRestarting(ctx, r, s); err != nil || restarts {
			return err
		}
		if _, err = r.remove(ctx, s, nf.SharedReleaseRequest{}); nf.KindOf(err) != nf.Conflict || err == nil {
			return nf.IgnoreNotFound(err)
		}
		if err := store.Pause(ctx, attempt); err != nil { // another operation came first
			return err
		}
	}
}

// isRestarting reports whether the operation of a resource restarts instances.
func isRestarting(ctx context.Context, r *Resources, s nf.Shared) (bool, error) {
	if s.State != nf.SharedChanging || s.Operation == "" {
		return false, nil
	}
	op, err := r.ledger.Get(ctx, s.Operation)
	if err != nil {
		return false, nf.IgnoreNotFound(err)
	}
	return len(r.cfg.Task(&op).Restart) > 0, nil
}

// Release ends a hold for a client, and begins the removal of the resource if no
// holder is left, even if it is kept. It returns the operation, whose id is empty if
// there are other holders. It returns nf.Conflict for a request with IfUnused, with a
// violation for each other holder, and nf.Busy, with the operation, if there is none and
// another operation of the resource runs; then nothing has changed.
func (r *Resources) Release(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error) {
	s, err := r.table.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound && err != nil { // the request may be a repetition
		return r.accept(ctx, id, req.Key, func() (operation.Request, error) { return operation.Request{}, err })
	}
	if err != nil {
		return nf.Operation{}, err
	}
	holder := Named(req.Holder)
	if req.IfUnused {
		if err := r.unused(ctx, s, holder); err != nil {
			return nf.Operation{}, err
		}
	}
	used, err := usedBesides(ctx, r.holds, id, holder)
	if err == nil && used {
		if err = r.holds.Drop(ctx, id, holder); err == nil {
			used, err = r.holds.Used(ctx, id) // the others may have left in the meantime
		}
	}
	if err != nil || used {
		return nf.Operation{}, err
	}
	if s, err = r.table.Get(ctx, id); err != nil {
		return r.removedUnless(ctx, id, req, nf.Operation{}, err)
	}
	op, err := r.remove(ctx, s, req)
	return r.removedUnless(ctx, id, req, op, err)
}

// usedBesides reports whether a resource has a holder besides the given one.
func usedBesides(ctx context.Context, holds store.Holds, id string, but nf.Holder) (bool, error) {
	for holder, err := range holds.Holders(store.Expecting(ctx, 2), id, nil) {
		if err != nil || holder != but {
			return err == nil, err
		}
	}
	return false, nil
}

// removedUnless returns the operation, unless the error says that another holder has
// removed the resource. Then it returns the operation of a request that is repeated, or
// none.
func (r *Resources) removedUnless(ctx context.Context, id string, req nf.SharedReleaseRequest, op nf.Operation, err error) (nf.Operation, error) {
	if nf.KindOf(err) != nf.NotFound || err == nil {
		return op, err
	}
	op, err = r.accept(ctx, id, req.Key, func() (operation.Request, error) { return operation.Request{}, err })
	return op, nf.IgnoreNotFound(err)
}

// mostHolders is the number of holders that a refusal names.
const mostHolders = 10

// unused returns nf.Conflict if a resource has a holder besides the given one.
func (r *Resources) unused(ctx context.Context, s nf.Shared, but nf.Holder) error {
	var v nf.Violations
	for holder, err := range r.Holders(ctx, s.ID) {
		switch {
		case err != nil:
			return err
		case holder == but:
			continue
		case len(v) == mostHolders:
			v = append(v, nf.Violation{Message: fmt.Sprintf("it has more than %d holders", mostHolders)})
		default:
			v = append(v, nf.Violation{}.Saying(nf.Textf("it is used by %s", holder.Subject.Mention())))
		}
		if len(v) > mostHolders {
			break
		}
	}
	if len(v) == 0 {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: r.noun(s.ID), Reason: nf.ReasonHeld, Err: v}
}
