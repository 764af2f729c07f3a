package shared

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Plan returns the resource that Ensure would hold: the present one, if it is equal to
// the wanted one, or else the one that it would create. It changes nothing. It returns
// nf.Exists with the differences, and otherwise fails as Create does.
func (r *Resources) Plan(ctx context.Context, wanted nf.Shared) (nf.Shared, error) {
	s, exists, err := r.plan(ctx, wanted)
	if err != nil || exists {
		return s, err
	}
	_, _, err = r.check(ctx, s)
	return s, err
}

func (r *Resources) plan(ctx context.Context, wanted nf.Shared) (_ nf.Shared, exists bool, err error) {
	if wanted, err = r.normalized(ctx, wanted); err != nil {
		return wanted, false, err
	}
	there, err := r.table.Get(ctx, wanted.ID)
	if err != nil {
		return wanted, false, nf.IgnoreNotFound(err)
	}
	if v := r.differences(there, wanted); len(v) > 0 {
		return there, true, nf.E(nf.Exists, "create", r.noun(wanted.ID), v)
	}
	return there, true, nil
}

// Ensure adds a holder to a resource as Use does, and creates the resource if it does
// not exist. It returns nf.Exists if the resource is another one, unless the holder
// holds it already. While the resource is being created, it returns nf.Busy. It is
// idempotent. If its process dies, the hold may remain without the resource: the holder
// must then release it.
func (r *Resources) Ensure(ctx context.Context, wanted nf.Shared, holder nf.Holder) error {
	for attempt := 0; ; attempt++ {
		again, err := r.ensure(ctx, wanted, holder)
		if !again {
			return err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// ensure makes one attempt. It reports whether another request has created or removed
// the resource in the meantime.
func (r *Resources) ensure(ctx context.Context, wanted nf.Shared, holder nf.Holder) (again bool, err error) {
	id := nf.SharedID(wanted.Region, wanted.Name)
	had, err := r.holds.Has(ctx, id, holder)
	if err != nil {
		return false, err
	}
	if !had {
		s, exists, err := r.plan(ctx, wanted)
		if err != nil {
			return false, err
		}
		if !exists {
			_, err = r.accept(ctx, id, nf.RequestKey{}, func() (operation.Request, error) { return r.create(ctx, s, holder, nf.SharedRequest{}) })
		}
		if err != nil {
			return nf.KindOf(err) == nf.Exists, err
		}
	}
	_, err = r.Use(ctx, id, holder)
	return err != nil && nf.KindOf(err) == nf.NotFound, err
}
