package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instance implements Instances. It takes instance:read, as all of them do.
func (g *Guard) Instance(ctx context.Context, id string) (nf.Instance, error) {
	in, err := g.instance(ctx, id)
	if err != nil {
		return nf.Instance{}, err
	}
	return in, g.veil().hide(ctx, &in.Message)
}

func (g *Guard) instance(ctx context.Context, id string) (nf.Instance, error) {
	gone := absent("VNF instance", id)
	in, err := g.cfg.Engine.Instance(ctx, id)
	if err == nil {
		err = g.see(ctx, nf.ReadInstance, instanceScope(in), gone)
	}
	if err != nil {
		return nf.Instance{}, orAbsent(err, gone)
	}
	return in, nil
}

// Instances implements Instances.
func (g *Guard) Instances(ctx context.Context) ([]nf.Instance, error) {
	visible, err := g.visible(ctx, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	all, err := g.cfg.Engine.Instances(ctx)
	if err != nil {
		return nil, err
	}
	all = keep(all, instanceScope, visible)
	veil := g.veil()
	for i := range all {
		if err := veil.hide(ctx, &all[i].Message); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Revisions implements Instances.
func (g *Guard) Revisions(ctx context.Context, id string) ([]nf.Revision, error) {
	if _, err := g.instance(ctx, id); err != nil {
		return nil, err
	}
	return g.cfg.Engine.Revisions(ctx, id)
}

// Revision implements Instances.
func (g *Guard) Revision(ctx context.Context, id string, number int) (nf.Revision, error) {
	if _, err := g.instance(ctx, id); err != nil {
		return nf.Revision{}, err
	}
	return g.cfg.Engine.Revision(ctx, id, number)
}

// Health implements Instances.
func (g *Guard) Health(ctx context.Context, id string) ([]nf.Health, error) {
	if _, err := g.instance(ctx, id); err != nil {
		return nil, err
	}
	return g.cfg.Engine.Health(ctx, id)
}

// Operation implements Operations. It takes instance:read where the instance
// is, or was, as all of them do.
func (g *Guard) Operation(ctx context.Context, id string) (nf.Operation, error) {
	op, err := g.operation(ctx, id)
	if err != nil {
		return op, err
	}
	return g.veil().operation(ctx, op)
}

func (g *Guard) operation(ctx context.Context, id string) (nf.Operation, error) {
	gone := absent("operation", id)
	op, err := g.cfg.Engine.Operation(ctx, id)
	if err == nil {
		err = g.see(ctx, nf.ReadInstance, operationScope(op), gone)
	}
	if err != nil {
		return nf.Operation{}, orAbsent(err, gone)
	}
	return op, nil
}

// Operations implements Operations.
func (g *Guard) Operations(ctx context.Context) ([]nf.Operation, error) {
	visible, err := g.visible(ctx, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	all, err := g.cfg.Engine.Operations(ctx)
	if err != nil {
		return nil, err
	}
	all = keep(all, operationScope, visible)
	veil := g.veil()
	for i := range all {
		if all[i], err = veil.operation(ctx, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Changes implements Operations.
func (g *Guard) Changes(ctx context.Context, id string) ([]nf.Change, error) {
	if _, err := g.operation(ctx, id); err != nil {
		return nil, err
	}
	changes, err := g.cfg.Engine.Changes(ctx, id)
	if err != nil {
		return nil, err
	}
	return g.veil().changes(ctx, changes)
}

// Follow implements Operations. What one may see is looked at again whenever
// the operation changes.
func (g *Guard) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if _, err := g.operation(ctx, id); err != nil {
			yield(nf.Operation{}, err)
			return
		}
		gone := absent("operation", id)
		for op, err := range g.cfg.Engine.Follow(ctx, id) {
			if err == nil {
				err = g.see(ctx, nf.ReadInstance, operationScope(op), gone)
			}
			if err == nil {
				op, err = g.veil().operation(ctx, op)
			}
			if err != nil {
				yield(nf.Operation{}, orAbsent(err, gone))
				return
			}
			if !yield(op, nil) {
				return
			}
		}
	}
}

// Entries implements Audits. It takes audit:read where what the entry speaks of
// is; what is nowhere takes it for the whole service.
func (g *Guard) Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		id, err := g.asker(ctx)
		if err == nil && !g.cfg.Authorizer.anywhere(ctx, id, nf.ReadAudit) {
			err = g.May(ctx, nf.ReadAudit, nf.Scope{Project: f.Project, Region: f.Region})
		}
		if err != nil {
			yield(nf.AuditEntry{}, err)
			return
		}
		visible := g.cfg.Authorizer.Visible(ctx, id, nf.ReadAudit)
		for e, err := range g.cfg.Audits.Entries(ctx, f) {
			if err == nil && !visible(nf.Scope{Project: e.Project, Region: e.Region}) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
