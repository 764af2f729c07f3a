package access

import (
	"cmp"
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Configure implements DayTwo. It takes instance:change, and package:read for
// each package that is not among the instance's amendments already.
func (g *Guard) Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	gone, err := g.allowed(ctx, id, nf.ChangeInstance, &req.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		req := g.withAmendments(ctx, req)
		if again != nil {
			req = nf.ConfigureRequest{Edit: func(*nf.Spec) error { return errOnlyAgain }, Options: *again}
		}
		return g.cfg.Engine.Configure(ctx, id, req)
	})
}

// withAmendments has a configuration look whether its packages can be read.
func (g *Guard) withAmendments(ctx context.Context, req nf.ConfigureRequest) nf.ConfigureRequest {
	edit := req.Edit
	req.Edit = func(s *nf.Spec) error {
		had := map[string]bool{}
		for _, a := range s.Amendments {
			had[a.Package] = true
		}
		if err := edit(s); err != nil {
			return err
		}
		for _, a := range s.Amendments {
			if had[a.Package] {
				continue
			}
			if gone, err := g.usable(ctx, a.Package); gone != nil || err != nil {
				return cmp.Or(err, gone)
			}
		}
		return nil
	}
	return req
}

// Adopt implements DayTwo. It takes what Instantiate does.
func (g *Guard) Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	gone, err := g.target(ctx, req.InstantiateRequest)
	if err != nil {
		return nf.Operation{}, err
	}
	if err := g.May(ctx, nf.CreateInstance, newScope(req.InstantiateRequest), req.Region, req.Package); err != nil {
		return nf.Operation{}, err
	}
	if err := g.own(ctx, &req.Key); err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			req.Options = *again
		}
		return g.cfg.Engine.Adopt(ctx, req)
	})
}

// Test implements DayTwo. It takes instance:change.
func (g *Guard) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	gone, err := g.allowed(ctx, id, nf.ChangeInstance, &req.Key)
	if err != nil {
		return nf.Operation{}, err
	}
	return g.begin(ctx, req.Key, gone, func(again *nf.Options) (nf.Operation, error) {
		if again != nil {
			req.Options = *again
		}
		return g.cfg.Engine.Test(ctx, id, req)
	})
}
