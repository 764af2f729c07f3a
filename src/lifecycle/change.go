package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Upgrade accepts a change of an instance's spec and returns its queued
// operation. It fails as Instantiate does, with nf.Busy when an operation is
// running on the instance, and with nf.Conflict and the reason "confirm" when it
// would delete more than the brake lets it without a confirmation.
func (e *Engine) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.upgrade(ctx, id, req) })
}

func (e *Engine) upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	in, p, err := e.prepareChange(ctx, id, req, secretsWhole)
	if err != nil {
		return nf.Operation{}, err
	}
	return e.change(ctx, in, p, revised{verb: nf.Upgrade, rev: p.revision(in.Newest + 1), opts: req.Options})
}

// PreviewUpgrade tells what Upgrade would do to the region, objects that it
// would prune included, or fails as it would.
func (e *Engine) PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	in, p, err := e.prepareChange(ctx, id, req, previewSight(req.Options))
	if err != nil {
		return nf.Preview{}, err
	}
	return e.preview(ctx, in, p)
}

// Rollback accepts the return of an instance to a revision that is kept, and
// returns its queued operation. What was applied then is applied again, as it
// was: nothing is rendered. It fails as Upgrade does, and with nf.NotFound when
// the revision is not kept.
func (e *Engine) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.rollback(ctx, id, req) })
}

func (e *Engine) rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	in, p, rev, err := e.prepareRollback(ctx, id, req)
	if err != nil {
		return nf.Operation{}, err
	}
	return e.change(ctx, in, p, revised{verb: nf.Rollback, rev: rev, opts: req.Options})
}

// PreviewRollback tells what Rollback would do to the region, or fails as it
// would.
func (e *Engine) PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error) {
	in, p, _, err := e.prepareRollback(ctx, id, req)
	if err != nil {
		return nf.Preview{}, err
	}
	return e.preview(ctx, in, p)
}

// revised is a change of an instance that is ready to be recorded.
type revised struct {
	verb    nf.Verb
	rev     nf.Revision
	opts    nf.Options
	repeats string // the failed operation that it tries again
}

// change records the operation of a change and locks the instance for it.
func (e *Engine) change(ctx context.Context, in nf.Instance, p *prepared, c revised) (nf.Operation, error) {
	if err := e.cfg.Brake.check(c.verb, in, outside(in.Inventory, p.plan), c.opts.Confirm); err != nil {
		return nf.Operation{}, err
	}
	ctx, done := e.detached(ctx)
	defer done()
	op := e.newOperation(c.verb, p.target, c.opts)
	op.Repeats = c.repeats
	if err := e.record(ctx, &op, p, c.rev); err != nil {
		return nf.Operation{}, err
	}
	state := nf.Updating
	if c.verb == nf.Instantiate {
		state = nf.Instantiating
	}
	return e.accept(ctx, op, e.lock(ctx, in, op, state))
}

func (e *Engine) prepareChange(ctx context.Context, id string, req nf.UpgradeRequest, sight sight) (nf.Instance, *prepared, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return in, nil, err
	}
	if err := free("upgrade", in); err != nil {
		return in, nil, err
	}
	spec := specOf(inForce(in))
	if err := req.Edit(&spec); err != nil {
		return in, nil, err
	}
	if err := spec.Validate(); err != nil {
		return in, nil, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, nil, err
	}
	t := targetOf(in, spec)
	t.sight = sight
	p, err := e.prepare(ctx, t)
	return in, p, err
}

// specOf returns what a revision was asked for with.
func specOf(rev nf.Revision) nf.Spec {
	return nf.Spec{
		Package: rev.Package, Inputs: rev.Inputs, Labels: rev.Labels, Description: rev.Description,
		Release: rev.Release, Namespaces: rev.Namespaces, Amendments: rev.Amendments, Annotations: rev.Annotations,
	}
}

func targetOf(in nf.Instance, spec nf.Spec) target {
	return target{
		id: in.ID, name: in.Name, project: nf.ProjectOf(in.Project), region: in.Region, namespace: in.Namespace,
		spec: spec, revision: in.Newest + 1,
	}
}

func (e *Engine) prepareRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Instance, *prepared, nf.Revision, error) {
	var none nf.Revision
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return in, nil, none, err
	}
	if err := free("roll back", in); err != nil {
		return in, nil, none, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, nil, none, err
	}
	former, err := e.former(ctx, in, req.Revision)
	if err != nil {
		return in, nil, none, err
	}
	p, rev, err := e.prepareAgain(ctx, in, former)
	rev.Restores = former.Number
	return in, p, rev, err
}

// former returns the revision to go back to: number, or for 0 the one before
// that in force.
func (e *Engine) former(ctx context.Context, in nf.Instance, number int) (nf.Revision, error) {
	if number != 0 {
		return e.Revision(ctx, in.ID, number)
	}
	all, err := e.Revisions(ctx, in.ID)
	if err != nil {
		return nf.Revision{}, err
	}
	for _, rev := range slices.Backward(all) {
		if rev.Number < in.Revision {
			return rev, nil
		}
	}
	return nf.Revision{}, nf.E(nf.NotFound, "roll back", "VNF instance "+in.ID, fmt.Errorf("no revision before %d is kept", in.Revision))
}

// prepareAgain prepares what a former revision was, from its stored plan.
func (e *Engine) prepareAgain(ctx context.Context, in nf.Instance, former nf.Revision) (*prepared, nf.Revision, error) {
	rev := former
	rev.Number, rev.Operation = in.Newest+1, ""
	p := &prepared{
		target: targetOf(in, specOf(former)),
		pkg:    nf.Package{ID: former.Package, Digest: former.PackageDigest}, sensitive: former.Sensitive, hidden: former.Hidden,
	}
	region, err := e.cfg.Catalog.Region(ctx, in.Region)
	if err != nil {
		return nil, rev, err
	}
	if p.plan, err = e.loadPlan(ctx, former.Plan); err != nil {
		return nil, rev, err
	}
	if p.cluster, err = e.cfg.Open(ctx, p.region, p.project); err != nil {
		return nil, rev, err
	}
	if err := e.bound(ctx, p, region); err != nil {
		return nil, rev, err
	}
	p.open(namespacesOf(p.plan)) // they were opened when it was made
	if err := e.inspect(ctx, p); err != nil {
		return nil, rev, secretsOf(former).error(located(err, p.plan))
	}
	return p, rev, nil
}

// Terminate accepts the removal of an instance and returns its queued
// operation; nf.Busy when an operation is running on it.
func (e *Engine) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.remove(ctx, id, req) })
}

func (e *Engine) remove(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	if err := req.Validate(); err != nil {
		return nf.Operation{}, err
	}
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return nf.Operation{}, err
	}
	if err := free("terminate", in); err != nil {
		return nf.Operation{}, err
	}
	return e.terminate(ctx, in, req, "")
}

func (e *Engine) terminate(ctx context.Context, in nf.Instance, req nf.TerminateRequest, repeats string) (nf.Operation, error) {
	ctx, done := e.detached(ctx)
	defer done()
	req.OnFailure = nf.Keep // what was deleted cannot be brought back
	op := e.newOperation(nf.Terminate, targetOf(in, nf.Spec{}), req.Options)
	op.Orphan, op.Volumes, op.Repeats = req.Orphan, req.Volumes, repeats
	return e.bare(ctx, in, op, nf.Terminating)
}
