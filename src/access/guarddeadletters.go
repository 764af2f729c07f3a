package access

import (
	"context"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// DeadLetterKeeper stores dead letters: notifications, and kubeconfigs that are handed
// over, that could not be delivered. L is a dead letter, as callers see it.
type DeadLetterKeeper[L any] interface {
	DeadLetters(ctx context.Context) ([]L, error)
	Resend(ctx context.Context, id string) (L, error)
	Discard(ctx context.Context, id string) error
	// Names returns the id of a dead letter, and its owner: all dead letters of one
	// owner belong to the same instance.
	Names(l L) (id, owner string)
	// Engine returns the engine's id of the instance that a dead letter belongs to.
	Engine(ctx context.Context, l L) (string, error)
}

// DeadLetters gives access to a DeadLetterKeeper with the permissions of the
// identity in the context. A dead letter belongs to its instance; store:admin
// gives access to all, including those of deleted instances.
type DeadLetters[L any] struct {
	guard     *guard
	instances *Instances
	keeper    DeadLetterKeeper[L]
}

// NewDeadLetters returns the guarded dead letters of a keeper.
func NewDeadLetters[L any](guarded *Guarded, keeper DeadLetterKeeper[L]) DeadLetters[L] {
	return DeadLetters[L]{guarded.guard, guarded.Instances, keeper}
}

// DeadLetters returns the dead letters of the instances that the identity may
// read, in the keeper's order.
func (d DeadLetters[L]) DeadLetters(ctx context.Context) ([]L, error) {
	// Order matters: read the letters first, because each is younger than its
	// instance.
	all, err := d.keeper.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	sees, err := d.guard.sees(ctx)
	if err != nil {
		return nil, err
	}
	if d.guard.may(ctx, nf.AdministerStore, nf.Scope{}) == nil {
		return all, nil
	}
	out := []L{}
	engines := map[string]string{} // by owner
	for _, l := range all {
		_, owner := d.keeper.Names(l)
		engine, known := engines[owner]
		if !known {
			if engine, err = d.keeper.Engine(ctx, l); err != nil {
				return nil, err
			}
			engines[owner] = engine
		}
		visible, err := sees(engine)
		if err != nil {
			return nil, err
		}
		if visible {
			out = append(out, l)
		}
	}
	return out, nil
}

// Resend queues a dead letter for delivery and returns it. It requires
// instance:change.
func (d DeadLetters[L]) Resend(ctx context.Context, id string) (L, error) {
	if err := d.allowed(ctx, id); err != nil {
		var none L
		return none, err
	}
	return d.keeper.Resend(ctx, id)
}

// Discard deletes a dead letter. It requires instance:change.
func (d DeadLetters[L]) Discard(ctx context.Context, id string) error {
	if err := d.allowed(ctx, id); err != nil {
		return err
	}
	return d.keeper.Discard(ctx, id)
}

// allowed returns nil if the dead letter exists and the identity may change it.
func (d DeadLetters[L]) allowed(ctx context.Context, id string) error {
	absent := nf.E(nf.NotFound, "get", "dead letter "+strconv.Quote(id), nil)
	dead, err := d.find(ctx, id, absent)
	if d.guard.may(ctx, nf.AdministerStore, nf.Scope{}, id) == nil || err != nil {
		return err
	}
	engine, err := d.keeper.Engine(ctx, dead)
	if err != nil {
		return err
	}
	in, err := d.instances.Instance(ctx, engine)
	if nf.KindOf(err) == nf.NotFound {
		nf.TrailOf(ctx).Hide()
		return absent
	}
	if err != nil {
		return err
	}
	return d.guard.may(ctx, nf.ChangeInstance, instanceScope(in), id, in.ID)
}

func (d DeadLetters[L]) find(ctx context.Context, id string, absent error) (found L, err error) {
	all, err := d.keeper.DeadLetters(ctx)
	if err != nil {
		return found, err
	}
	for _, one := range all {
		if name, _ := d.keeper.Names(one); name == id {
			return one, nil
		}
	}
	return found, absent
}
