package access

import (
	"cmp"
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instantiate implements Changes. It takes instance:instantiate in the project
// and the region, region:read and package:read.
func (g *Guard) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	gone, err := g.target(ctx, req)
	if err != nil {
		return nf.Operation{}, err
	}
	if err := g.May(ctx, nf.CreateInstance, newScope(req), req.Region, req.Package); err != nil {
		return nf.Operation{}, err
	}
	if err := g.own(ctx, &req.Key); err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			req.Options = *again
		}
		return g.cfg.Engine.Instantiate(ctx, req)
	})
}

// PreviewInstantiate implements Previews. It takes instance:read in the project
// and the region, region:read and package:read.
func (g *Guard) PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	gone, err := g.target(ctx, req)
	if err != nil {
		return nf.Preview{}, err
	}
	if err := g.May(ctx, nf.ReadInstance, newScope(req), req.Region, req.Package); err != nil {
		return nf.Preview{}, err
	}
	if gone != nil {
		return nf.Preview{}, gone
	}
	if req.Secrets, err = g.could(ctx, nf.CreateInstance, newScope(req)); err != nil {
		return nf.Preview{}, err
	}
	preview, err := g.cfg.Engine.PreviewInstantiate(ctx, req)
	return g.previewed(ctx, preview, err)
}

// could reports whether the identity has the permission. That it has not is no
// refusal.
func (g *Guard) could(ctx context.Context, p nf.Permission, s nf.Scope) (bool, error) {
	id, err := g.asker(ctx)
	return err == nil && g.cfg.Authorizer.Allow(ctx, id, p, s) == nil, err
}

// previewed returns a preview as the identity may read it.
func (g *Guard) previewed(ctx context.Context, p nf.Preview, err error) (nf.Preview, error) {
	if err != nil {
		return nf.Preview{}, g.veiled(ctx, err)
	}
	return g.veil().preview(ctx, p)
}

func newScope(req nf.InstantiateRequest) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(req.Project), Region: req.Region}
}

// target looks at the region and the package that a request for an instance
// names. Gone is what is to be said when one of them does not exist, or must
// seem so: it may have when the request was made for the first time.
func (g *Guard) target(ctx context.Context, req nf.InstantiateRequest) (gone, err error) {
	if req.Namespace == "" {
		req.Namespace = "default"
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	said := missing("cloud_region_id", req.Region)
	if err := g.see(ctx, nf.ReadRegion, regionScope(req.Region), said); err != nil {
		return goneOr(err)
	}
	if _, err := g.cfg.Catalog.Region(ctx, req.Region); err != nil {
		return goneOr(orAbsent(err, said))
	}
	return g.usable(ctx, req.Package)
}

// usable looks at a package that a request names, likewise.
func (g *Guard) usable(ctx context.Context, id string) (gone, err error) {
	said := missing("csar_id", id)
	p, err := g.cfg.Catalog.Package(ctx, id)
	if err != nil {
		return goneOr(orAbsent(err, said))
	}
	return goneOr(g.see(ctx, nf.ReadPackage, packageScope(p), said))
}

// goneOr tells that something does not exist from other errors.
func goneOr(err error) (gone, other error) {
	if err != nil && nf.KindOf(err) == nf.NotFound {
		return err, nil
	}
	return nil, err
}

// Upgrade implements Changes. It takes instance:change, and package:read for a
// package that the instance does not have already.
func (g *Guard) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	gone, err := g.allowed(ctx, id, nf.ChangeInstance, &req.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		req := g.withPackage(ctx, req)
		if again != nil {
			req = nf.UpgradeRequest{Edit: func(*nf.Spec) error { return errOnlyAgain }, Options: *again}
		}
		return g.cfg.Engine.Upgrade(ctx, id, req)
	})
}

// PreviewUpgrade implements Previews. It takes instance:read, and package:read
// as Upgrade does.
func (g *Guard) PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	in, err := g.instance(ctx, id)
	if err != nil {
		return nf.Preview{}, err
	}
	if req.Secrets, err = g.could(ctx, nf.ChangeInstance, instanceScope(in)); err != nil {
		return nf.Preview{}, err
	}
	preview, err := g.cfg.Engine.PreviewUpgrade(ctx, id, g.withPackage(ctx, req))
	return g.previewed(ctx, preview, err)
}

// withPackage has an upgrade look whether its package can be read.
func (g *Guard) withPackage(ctx context.Context, req nf.UpgradeRequest) nf.UpgradeRequest {
	edit := req.Edit
	req.Edit = func(s *nf.Spec) error {
		before := s.Package
		if err := edit(s); err != nil {
			return err
		}
		if s.Package != before && s.Validate() == nil { // what is wrong with it the engine says
			gone, err := g.usable(ctx, s.Package)
			return cmp.Or(err, gone)
		}
		return nil
	}
	return req
}

// Rollback implements Changes. It takes instance:change.
func (g *Guard) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	gone, err := g.allowed(ctx, id, nf.ChangeInstance, &req.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			req.Options = *again
		}
		return g.cfg.Engine.Rollback(ctx, id, req)
	})
}

// PreviewRollback implements Previews. It takes instance:read.
func (g *Guard) PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error) {
	if _, err := g.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := g.cfg.Engine.PreviewRollback(ctx, id, req)
	return g.previewed(ctx, preview, err)
}

// Terminate implements Changes. It takes instance:terminate.
func (g *Guard) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	gone, err := g.allowed(ctx, id, nf.RemoveInstance, &req.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			req.Options = *again
		}
		return g.cfg.Engine.Terminate(ctx, id, req)
	})
}

// Retry implements Remedies. It takes instance:change, and what the operation
// itself took.
func (g *Guard) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	own := map[nf.Verb]nf.Permission{nf.Instantiate: nf.CreateInstance, nf.Terminate: nf.RemoveInstance}
	gone, err := g.remedied(ctx, operation, own, &opts.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, opts.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			opts = *again
		}
		return g.cfg.Engine.Retry(ctx, operation, opts)
	})
}

// Undo implements Remedies. It takes instance:change, and instance:terminate
// for an instantiation, whose instance it removes.
func (g *Guard) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	own := map[nf.Verb]nf.Permission{nf.Instantiate: nf.RemoveInstance}
	gone, err := g.remedied(ctx, operation, own, &opts.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, opts.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			opts = *again
		}
		return g.cfg.Engine.Undo(ctx, operation, opts)
	})
}

// Cancel implements Remedies. It takes instance:change.
func (g *Guard) Cancel(ctx context.Context, operation string) (nf.Operation, error) {
	gone, err := g.remedied(ctx, operation, nil, &nf.RequestKey{})
	if err = cmp.Or(err, gone); err != nil {
		return nf.Operation{}, err
	}
	op, err := g.cfg.Engine.Cancel(ctx, operation)
	return op, g.veiled(ctx, err)
}

// allowed looks at an instance and at whether it may be changed. Gone is what is
// to be said when it does not exist.
func (g *Guard) allowed(ctx context.Context, id string, p nf.Permission, key *nf.RequestKey) (gone, err error) {
	in, err := g.instance(ctx, id)
	if gone, err = goneOr(err); err != nil {
		return nil, err
	}
	if gone == nil {
		if err := g.May(ctx, p, instanceScope(in), id); err != nil {
			return nil, err
		}
	}
	return gone, g.own(ctx, key)
}

// remedied does the same for an operation, and asks for the permission that its
// verb has of its own.
func (g *Guard) remedied(ctx context.Context, operation string, own map[nf.Verb]nf.Permission, key *nf.RequestKey) (gone, err error) {
	op, err := g.operation(ctx, operation)
	if gone, err = goneOr(err); err != nil {
		return nil, err
	}
	asked := []nf.Permission{nf.ChangeInstance}
	if p, ok := own[op.Verb]; ok {
		asked = append(asked, p)
	}
	for _, p := range asked {
		if gone != nil {
			break
		}
		if err := g.May(ctx, p, operationScope(op), op.Instance, operation); err != nil {
			return nil, err
		}
	}
	return gone, g.own(ctx, key)
}

// own makes a key that of the identity: nobody gets at another's request by
// naming its key.
func (g *Guard) own(ctx context.Context, key *nf.RequestKey) error {
	id, err := g.asker(ctx)
	if err == nil && key.Key != "" {
		key.Client = id.String()
	}
	return err
}

var errOnlyAgain = errors.New("this request can only be repeated")

// begin makes a request. When what it is about is gone, it can still be one
// that was made before: then it is made with options that nothing new can be
// begun with.
func (g *Guard) begin(ctx context.Context, key nf.RequestKey, gone error, call func(again *nf.Options) (nf.Operation, error)) (nf.Operation, error) {
	if gone == nil {
		op, err := call(nil)
		if err == nil {
			nf.TrailOf(ctx).Begin(op.ID)
		}
		return op, g.veiled(ctx, err)
	}
	if key.Key == "" {
		return nf.Operation{}, gone
	}
	op, err := call(&nf.Options{Key: key, Timeout: -1})
	if nf.ReasonOf(err) == "idempotency" || err != nil && nf.KindOf(err) == nf.Unreachable {
		return nf.Operation{}, err // about the key, or the store
	}
	if err != nil {
		return nf.Operation{}, gone // whatever else it says would tell hidden and absent apart
	}
	if err := g.see(ctx, nf.ReadInstance, operationScope(op), gone); err != nil {
		return nf.Operation{}, err
	}
	nf.TrailOf(ctx).Begin(op.ID)
	return op, nil
}
