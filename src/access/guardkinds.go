package access

import (
	"context"
	"iter"

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

func (s SubjectOperations) scopeOf(op nf.Operation) nf.Scope {
	return s.scope(nf.Scope{Project: nf.ProjectOf(op.Project), Region: op.Region})
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
	if err := s.guard.see(ctx, s.read, s.scopeOf(op), hidden); err != nil {
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
	return list[nf.Operation]{s.keeper.OperationsFrom(ctx, of, from), s.scopeOf, visible}.shown(s.guard.mentions().shownIn(ctx))
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
				err = s.guard.see(ctx, s.read, s.scopeOf(op), absent("operation", id))
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
	if err := s.guard.may(ctx, s.write, s.scopeOf(op), op.Subject.ID); err != nil {
		return nf.Operation{}, err
	}
	if op, err = s.keeper.Cancel(ctx, of, id); err != nil {
		return op, s.guard.shown(ctx, err)
	}
	return s.guard.mentions().operation(ctx, op)
}
