package access

import (
	"context"
	"iter"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// KindOperations are the operations on the subjects of one kind, such as sites. An
// empty id of a subject stands for all of them.
type KindOperations interface {
	Operation(ctx context.Context, subject, id string) (nf.Operation, error)
	OperationsFrom(ctx context.Context, subject string, from nf.Cursor) iter.Seq2[nf.Operation, error]
	Follow(ctx context.Context, subject, id string, after int) iter.Seq2[nf.OperationUpdate, error]
	Cancel(ctx context.Context, subject, id string) (nf.Operation, error)
}

// SubjectOperations gives access to KindOperations with the permissions of the
// identity in the context.
type SubjectOperations struct {
	guard       *guard
	keeper      KindOperations
	read, write nf.Permission
	scope       func(nf.Scope) nf.Scope // that the permissions are required in, of the scope of an operation
}

var _ KindOperations = SubjectOperations{}

// NewSiteOperations returns the guarded operations on sites. Reading requires
// region:read in the region of the site, and cancelling region:write.
func NewSiteOperations(guarded *Guarded, keeper KindOperations) SubjectOperations {
	return SubjectOperations{guarded.guard, keeper, nf.ReadRegion, nf.WriteRegion, func(s nf.Scope) nf.Scope { return siteScope(s.Region) }}
}

// scopesOf returns where permissions on an operation are required; all of them are.
func (s SubjectOperations) scopesOf(op nf.Operation) []nf.Scope {
	out := op.Scopes()
	for i := range out {
		out[i] = s.scope(out[i])
	}
	return out
}

// seeAll returns hidden if the identity lacks the read permission in one of the scopes.
func (g *guard) seeAll(ctx context.Context, p nf.Permission, all []nf.Scope, hidden error) error {
	for _, s := range all {
		if err := g.see(ctx, p, s, hidden); err != nil {
			return err
		}
	}
	return nil
}

// mayAll is may for several scopes.
func (g *guard) mayAll(ctx context.Context, p nf.Permission, all []nf.Scope, subjects ...string) error {
	for _, s := range all {
		if err := g.may(ctx, p, s, subjects...); err != nil {
			return err
		}
	}
	return nil
}

// within yields the items whose scopes are all visible.
func within[T any](items iter.Seq2[T, error], scopes func(T) []nf.Scope, visible func(nf.Scope) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if err == nil && visible != nil && slices.ContainsFunc(scopes(item), func(s nf.Scope) bool { return !visible(s) }) {
				continue
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// start makes a request in the name of the identity, and records the operation that it
// has started, if any, in the audit trail.
func (g *guard) start(ctx context.Context, key *nf.RequestKey, request func() (nf.Operation, error)) (nf.Operation, error) {
	if err := g.own(ctx, key); err != nil {
		return nf.Operation{}, err
	}
	op, err := request()
	if err != nil {
		return nf.Operation{}, g.shown(ctx, err)
	}
	if op.ID == "" {
		return op, nil
	}
	nf.TrailOf(ctx).Begin(op.ID)
	return g.mentions().operation(ctx, op)
}

// Operation implements KindOperations.
func (s SubjectOperations) Operation(ctx context.Context, of, id string) (nf.Operation, error) {
	op, err := s.operation(ctx, of, id)
	if err != nil {
		return nf.Operation{}, err
	}
	return s.guard.mentions().operation(ctx, op)
}

func (s SubjectOperations) operation(ctx context.Context, of, id string) (nf.Operation, error) {
	hidden := absent("operation", id)
	op, err := s.keeper.Operation(ctx, of, id)
	if nf.KindOf(err) == nf.NotFound {
		return op, hidden
	}
	if err != nil {
		return op, err
	}
	if err := s.guard.seeAll(ctx, s.read, s.scopesOf(op), hidden); err != nil {
		return nf.Operation{}, err
	}
	return op, nil
}

// OperationsFrom implements KindOperations.
func (s SubjectOperations) OperationsFrom(ctx context.Context, of string, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	visible, err := s.guard.mayRead(ctx, s.read)
	if err != nil {
		return failed[nf.Operation](err)
	}
	if visible != nil {
		from.In = func(of nf.Scope) bool { return visible(s.scope(of)) }
	}
	return list[nf.Operation]{items: within(s.keeper.OperationsFrom(ctx, of, from), s.scopesOf, visible)}.shown(s.guard.mentions().shownIn(ctx))
}

// Follow implements KindOperations. It checks the permission again on each update.
func (s SubjectOperations) Follow(ctx context.Context, of, id string, after int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		op, err := s.operation(ctx, of, id)
		if err != nil {
			yield(nf.OperationUpdate{}, err)
			return
		}
		for u, err := range s.keeper.Follow(ctx, of, id, after) {
			if err == nil {
				err = s.guard.seeAll(ctx, s.read, s.scopesOf(op), absent("operation", id))
			}
			if err == nil {
				err = s.filter(ctx, &u)
			}
			if err != nil {
				yield(nf.OperationUpdate{}, err)
				return
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

// filter hides hidden instances in the mentions of an update.
func (s SubjectOperations) filter(ctx context.Context, u *nf.OperationUpdate) error {
	m := s.guard.mentions()
	if u.Operation == nil {
		return m.filter(ctx, &u.Entry.Mentions)
	}
	op, err := m.operation(ctx, *u.Operation)
	u.Operation = &op
	return err
}

// Cancel implements KindOperations.
func (s SubjectOperations) Cancel(ctx context.Context, of, id string) (nf.Operation, error) {
	op, err := s.operation(ctx, of, id)
	if err != nil {
		return op, err
	}
	if err := s.guard.mayAll(ctx, s.write, s.scopesOf(op), op.Subject.ID); err != nil {
		return nf.Operation{}, err
	}
	if op, err = s.keeper.Cancel(ctx, of, id); err != nil {
		return op, s.guard.shown(ctx, err)
	}
	return s.guard.mentions().operation(ctx, op)
}
