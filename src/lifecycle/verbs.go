package lifecycle

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Instantiate accepts a request for a new instance and returns the queued
// operation. It returns every error that can be known in advance; then nothing
// has been recorded or changed: nf.Invalid with violations for the request, the
// package and its variables; nf.NotFound for the region or the package;
// nf.Unreachable for the region; nf.Unsupported for kinds that the region does
// not serve; nf.Conflict for objects that exist and do not belong to the
// instance, and for a package that has no content or is disabled; nf.Exists for a
// name that is taken.
//
// This and every other request returns the earlier operation if the same
// request was accepted before under the same key.
func (e *Engine) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		p, err := q.preparer.newInstance(ctx, &req, secretsWhole)
		if err != nil {
			return request{}, err
		}
		if err := q.preparer.dryRun(ctx, nf.Instance{}, p, req.Options); err != nil {
			return request{}, err
		}
		op := q.acceptor.newOperation(nf.Instantiate, p.target, req.Options)
		op.Instance.Fresh, op.Instance.Placed, op.Instance.Adopts = p.existing == 0, p.target.placed, p.adopts()
		return request{op: revising(op, p, p.revision(1)), target: p}, nil
	})
}

// PreviewInstantiate returns the changes that Instantiate would make in the
// region, or fails as it would.
func (e *Engine) PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	p, err := q.preparer.newInstance(ctx, &req, previewAccess(req.Options))
	if err != nil {
		return nf.Preview{}, err
	}
	preview, err := q.preparer.preview(ctx, nf.Instance{}, p)
	preview.Placed = p.target.placed
	if err == nil && req.Manifests {
		preview.Manifests = p.plan.Manifests(render.Masked(newRedactor(p.revision(0)).values))
	}
	return preview, err
}

// Adopt accepts the adoption of objects that already run in a region as an
// instance, and returns the queued operation. Only their ownership changes: no
// object is applied and no hook runs before the instance's next change. Objects
// of the package that do not exist are in the inventory all the same, so that
// they are reported as missing. If the operation fails, all objects are
// orphaned again. Adopt fails as Instantiate does. It also returns nf.NotFound
// if the release does not exist.
func (e *Engine) Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		p, err := q.preparer.adopt(ctx, &req)
		if err != nil {
			return request{}, err
		}
		req.OnFailure = nf.Undo // a partial adoption has no use
		op := q.acceptor.newOperation(nf.Adopt, p.target, req.Options)
		op.Instance.Adopts = &p.adoption.selector
		return request{op: revising(op, p, p.revision(1)), target: p}, nil
	})
}

// PreviewAdopt returns the objects that Adopt would adopt, and those of the release that
// do not exist, or fails as it would.
func (e *Engine) PreviewAdopt(ctx context.Context, req nf.AdoptRequest) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	p, err := q.preparer.adopt(ctx, &req)
	if err != nil {
		return nf.Preview{}, err
	}
	return nf.Preview{Changes: p.adopted(), Warnings: p.plan.Warnings}, nil
}

// Upgrade accepts a change of an instance's spec and returns the queued
// operation. It fails as Instantiate does, and with nf.Busy if an operation is
// running on the instance. It returns nf.Conflict with the reason "confirmation-required" if
// the change would delete more than the deletion guard allows without
// confirmation. A disabled package is not refused if the instance has its present
// content already, or an amendment of it.
func (e *Engine) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		in, p, err := q.preparer.upgrade(ctx, id, req, secretsWhole)
		if err != nil {
			return request{}, err
		}
		return q.change(ctx, in, p, revised{verb: nf.Upgrade, rev: p.revision(in.Newest + 1), opts: req.Options})
	})
}

// PreviewUpgrade returns the changes that Upgrade would make in the region,
// including pruned objects, or fails as it would.
func (e *Engine) PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	in, p, err := q.preparer.upgrade(ctx, id, req, previewAccess(req.Options))
	if err != nil {
		return nf.Preview{}, err
	}
	retune(&p.plan, in, nf.Upgrade, p.target.spec.Inputs)
	return q.preparer.preview(ctx, in, p)
}

// Configure accepts a change of an instance's amendments and returns the queued
// operation. The rendered plan of the instance's own package stays as it is.
// The amendments are rendered again, and no hooks run. It fails as Upgrade
// does, and with nf.Invalid if the request would change anything else.
func (e *Engine) Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		in, p, err := q.preparer.configure(ctx, id, req, secretsWhole)
		if err != nil {
			return request{}, err
		}
		return q.change(ctx, in, p, revised{verb: nf.Configure, rev: p.revision(in.Newest + 1), opts: req.Options})
	})
}

// PreviewConfigure returns the changes that Configure would make in the region, or fails
// as it would.
func (e *Engine) PreviewConfigure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	in, p, err := q.preparer.configure(ctx, id, req, previewAccess(req.Options))
	if err != nil {
		return nf.Preview{}, err
	}
	tune(&p.plan, in, nf.Configure)
	return q.preparer.preview(ctx, in, p)
}

// Rollback accepts the rollback of an instance to a kept revision, and returns
// the queued operation. It applies that revision's plan again, and renders
// nothing. It fails as Upgrade does, and with nf.NotFound if the revision is
// not kept.
func (e *Engine) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	q := e.requests.begin()
	defer q.end()
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		in, p, rev, err := q.preparer.rollback(ctx, id, req)
		if err != nil {
			return request{}, err
		}
		return q.change(ctx, in, p, revised{verb: nf.Rollback, rev: rev, opts: req.Options})
	})
}

// PreviewRollback returns the changes that Rollback would make in the region,
// or fails as it would.
func (e *Engine) PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error) {
	q := e.requests.begin()
	defer q.end()
	in, p, _, err := q.preparer.rollback(ctx, id, req)
	if err != nil {
		return nf.Preview{}, err
	}
	tune(&p.plan, in, nf.Rollback)
	return q.preparer.preview(ctx, in, p)
}

// revised is a change of an instance to a prepared target.
type revised struct {
	verb    nf.Verb
	rev     nf.Revision
	opts    nf.Options
	repeats string // the failed operation that it retries
}

// change returns the request for a change, if the deletion guard and the
// region's API server permit it.
func (q *requester) change(ctx context.Context, in nf.Instance, p *prepared, c revised) (request, error) {
	if err := q.preparer.guard.check(c.verb, in, outside(in.Inventory, p.plan), c.opts.Confirm); err != nil {
		return request{}, err
	}
	dropped := without(nf.ParentsOf(in, inForce(in)), nf.ParentsOf(in, c.rev))
	if err := q.preparer.vacated(ctx, c.verb, in.ID, dropped); err != nil {
		return request{}, err
	}
	retune(&p.plan, in, c.verb, c.rev.Inputs)
	if err := q.preparer.dryRun(ctx, in, p, c.opts); err != nil {
		return request{}, err
	}
	op := q.acceptor.newOperation(c.verb, p.target, c.opts)
	op.Instance.Repeats, op.Instance.Adopts = c.repeats, p.adopts()
	state := nf.Updating
	if c.verb == nf.Instantiate {
		state = nf.Instantiating
	}
	return request{op: revising(op, p, c.rev), target: p, seen: &in, state: state}, nil
}

// Test accepts a run of the test hooks of an instance's package, in sequence,
// and returns the queued operation. Every test runs, whether or not others
// fail; the operation fails if one of them did. At the end the objects of the
// tests are deleted; nothing else of the instance changes. It returns
// nf.Conflict if no revision was ever in force, or if the package has no tests and the
// request may not be empty; otherwise, it fails as Upgrade does.
func (e *Engine) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		in, err := e.preparer.test(ctx, id, req)
		if err != nil {
			return request{}, err
		}
		req.OnFailure = nf.Keep // the objects of tests are deleted in any case
		op := e.acceptor.newOperation(nf.Test, targetOf(in, nf.Spec{}), req.Options)
		if in.State == nf.Broken {
			if op.Instance.After, err = e.records.lastChange(ctx, in); err != nil {
				return request{}, err
			}
		}
		return request{op: op, seen: &in, state: in.State}, nil
	})
}

// PreviewTest returns the objects that the tests would create, or fails as Test would.
// The operation deletes them at its end.
func (e *Engine) PreviewTest(ctx context.Context, id string, req nf.TestRequest) (nf.Preview, error) {
	in, err := e.preparer.test(ctx, id, req)
	if err != nil {
		return nf.Preview{}, err
	}
	return e.requests.previewTests(ctx, in)
}

// Terminate accepts the removal of an instance and returns the queued
// operation. It returns nf.Busy if an operation is running on the instance, and
// nf.Conflict with nf.ReasonHeld if a region that one of its clusters became is in use,
// unless the request cascades or leaves the clusters in place.
func (e *Engine) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		if err := req.Validate(); err != nil {
			return request{}, err
		}
		in, err := e.records.idle(ctx, "terminate", id)
		if err != nil {
			return request{}, err
		}
		if err := e.preparer.deletable(ctx, in, req); err != nil {
			return request{}, err
		}
		return e.acceptor.termination(in, req, ""), nil
	})
}

// termination returns the request to terminate an instance.
func (a *acceptor) termination(in nf.Instance, req nf.TerminateRequest, repeats string) request {
	req.OnFailure = nf.Keep // deleted objects cannot be restored
	op := a.newOperation(nf.Terminate, targetOf(in, nf.Spec{}), req.Options)
	op.Instance.Orphan, op.Instance.Volumes, op.Instance.Cascade, op.Instance.Grace, op.Instance.Repeats = req.Orphan, req.DeletesClaims(in), req.Cascade, req.Grace, repeats
	return request{op: op, seen: &in, state: nf.Terminating}
}
