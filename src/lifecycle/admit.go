package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instantiate accepts a request for a new instance and returns its queued
// operation. Everything that can be known to be wrong is an error here, and
// then nothing has been recorded or touched: nf.Invalid with violations for the
// request, the package and its variables; nf.NotFound for the region or the
// package; nf.Unreachable for the region; nf.Unsupported for kinds that it does
// not serve; nf.Conflict for objects that are there already and not the
// instance's; nf.Exists for a name that is taken.
func (e *Engine) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	p, err := e.prepareNew(ctx, &req)
	if err != nil {
		return nf.Operation{}, err
	}
	ctx, done := detached(ctx)
	defer done()
	release, err := e.reserveName(ctx, p.target)
	if err != nil {
		return nf.Operation{}, err
	}
	op := e.newOperation(nf.Instantiate, p.target, req.Options)
	if err := e.record(ctx, &op, p, 1); err != nil {
		release()
		return nf.Operation{}, err
	}
	in := nf.Instance{
		ID: p.id, Name: p.name, Region: p.region, Namespace: p.namespace, State: nf.Instantiating,
		Operation: op.ID, LastOperation: op.ID, Newest: 1, Created: op.Accepted, Updated: op.Accepted,
	}
	describe(&in, op.Target)
	// The region must not go before the operation begins.
	if err = e.cfg.Catalog.Hold(ctx, p.id, p.region, p.spec.Package); err == nil {
		// The instance comes last: its record is what makes the request accepted.
		err = e.instances.Insert(ctx, in.ID, in)
	}
	if definite(err) {
		release()
	}
	return e.accept(ctx, op, err)
}

// recordTimeout is how long the writes that accept a request may take.
const recordTimeout = 15 * time.Second

// detached returns a context for the writes that accept a request: a client
// that goes away between two of them must not leave the first alone.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
}

// inForce returns what an instance's record says of its revision.
func inForce(in nf.Instance) nf.Revision {
	return nf.Revision{Package: in.Package, Inputs: in.Inputs, Sensitive: in.Sensitive, Labels: in.Labels, Description: in.Description}
}

// describe makes an instance's record speak of a revision.
func describe(in *nf.Instance, rev nf.Revision) {
	in.Package, in.PackageDigest = rev.Package, rev.PackageDigest
	in.Inputs, in.Sensitive = rev.Inputs, rev.Sensitive
	in.Labels, in.Description = rev.Labels, rev.Description
}

// PreviewInstantiate tells what Instantiate would do to the region, or fails as
// it would.
func (e *Engine) PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	p, err := e.prepareNew(ctx, &req)
	if err != nil {
		return nf.Preview{}, err
	}
	return p.preview(ctx, nf.Instance{})
}

func (e *Engine) prepareNew(ctx context.Context, req *nf.InstantiateRequest) (*prepared, error) {
	if req.Namespace == "" {
		req.Namespace = "default"
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	t := target{id: e.cfg.NewID(), name: req.Name, region: req.Region, namespace: req.Namespace, spec: req.Spec}
	// Two of one name usually share their objects too; the name says it in one line.
	if err := e.nameFree(ctx, t); err != nil {
		return nil, err
	}
	return e.prepare(ctx, t)
}

// Upgrade accepts a change of an instance's spec and returns its queued
// operation. It fails as Instantiate does, and with nf.Busy when an operation
// is running on the instance.
func (e *Engine) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	in, p, err := e.prepareChange(ctx, id, req)
	if err != nil {
		return nf.Operation{}, err
	}
	ctx, done := detached(ctx)
	defer done()
	op := e.newOperation(nf.Upgrade, p.target, req.Options)
	if err := e.record(ctx, &op, p, in.Newest+1); err != nil {
		return nf.Operation{}, err
	}
	return e.accept(ctx, op, e.lock(ctx, in, op, nf.Updating))
}

// PreviewUpgrade tells what Upgrade would do to the region, objects that it
// would prune included, or fails as it would.
func (e *Engine) PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	in, p, err := e.prepareChange(ctx, id, req)
	if err != nil {
		return nf.Preview{}, err
	}
	return p.preview(ctx, in)
}

func (e *Engine) prepareChange(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Instance, *prepared, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return in, nil, err
	}
	if err := free("upgrade", in); err != nil {
		return in, nil, err
	}
	spec := nf.Spec{Package: in.Package, Inputs: in.Inputs, Labels: in.Labels, Description: in.Description}
	if err := req.Edit(&spec); err != nil {
		return in, nil, err
	}
	if err := spec.Validate(); err != nil {
		return in, nil, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, nil, err
	}
	p, err := e.prepare(ctx, target{id: in.ID, name: in.Name, region: in.Region, namespace: in.Namespace, spec: spec})
	return in, p, err
}

// Terminate accepts the removal of an instance and returns its queued
// operation; nf.Busy when an operation is running on it.
func (e *Engine) Terminate(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	if err := opts.Validate(); err != nil {
		return nf.Operation{}, err
	}
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return nf.Operation{}, err
	}
	if err := free("terminate", in); err != nil {
		return nf.Operation{}, err
	}
	ctx, done := detached(ctx)
	defer done()
	opts.OnFailure = nf.Keep // what was deleted cannot be brought back
	op := e.newOperation(nf.Terminate, target{id: id, region: in.Region, namespace: in.Namespace}, opts)
	if err := e.operations.Insert(ctx, op.ID, op); err != nil {
		return nf.Operation{}, err
	}
	return e.accept(ctx, op, e.lock(ctx, in, op, nf.Terminating))
}

// Cancel asks a running operation to stop. What it has done is then undone or
// kept, as its request said. Cancelling twice is cancelling once; nf.Conflict
// when the operation has ended.
func (e *Engine) Cancel(ctx context.Context, id string) (nf.Operation, error) {
	op, err := e.operations.Update(ctx, id, func(op *nf.Operation) error {
		switch {
		case op.State.Final():
			return nf.E(nf.Conflict, "cancel", "operation "+id, fmt.Errorf("it has ended: %s", op.State))
		case op.Undoing:
			return nf.E(nf.Conflict, "cancel", "operation "+id, fmt.Errorf("it is being undone already"))
		}
		op.Cancel = true
		return nil
	})
	if err != nil {
		return op, err
	}
	e.feed.publish(op)
	e.mu.Lock()
	defer e.mu.Unlock()
	if stop, ok := e.running[id]; ok {
		stop(errCancelled)
	}
	return op, nil
}

func (e *Engine) newOperation(verb nf.Verb, t target, opts nf.Options) nf.Operation {
	now := e.now()
	if opts.OnFailure == "" {
		opts.OnFailure = nf.Undo
	}
	if opts.Timeout == 0 {
		opts.Timeout = e.cfg.Timeout
	}
	return nf.Operation{
		// Operations sort by the time they were accepted.
		ID:       fmt.Sprintf("%012x-%s", now.UnixMilli(), e.cfg.NewID()),
		Instance: t.id, Region: t.region, Namespace: t.namespace,
		Verb: verb, State: nf.Queued, OnFailure: opts.OnFailure,
		Accepted: now, Deadline: now.Add(opts.Timeout),
	}
}

// record writes the plan and then the operation that will carry it out. Neither
// means anything until the instance names the operation.
func (e *Engine) record(ctx context.Context, op *nf.Operation, p *prepared, revision int) error {
	digest, _, err := e.blobs.Put(ctx, planUser(op.ID), bytes.NewReader(p.encoded), int64(len(p.encoded)))
	if err != nil {
		return fmt.Errorf("cannot store the plan: %w", err)
	}
	op.Revision, op.Warnings = revision, p.plan.Warnings
	op.Target = nf.Revision{
		Instance: p.id, Number: revision, Package: p.spec.Package, PackageDigest: p.pkg.Digest,
		Inputs: p.spec.Inputs, Sensitive: p.sensitive, Labels: p.spec.Labels, Description: p.spec.Description,
		Plan: digest, Operation: op.ID, Created: op.Accepted,
	}
	if err := e.operations.Insert(ctx, op.ID, *op); err != nil {
		e.discard(ctx, *op)
		return err
	}
	return nil
}

// lock makes the operation the instance's running one, if none is and nothing
// has changed since the request was prepared.
func (e *Engine) lock(ctx context.Context, seen nf.Instance, op nf.Operation, state nf.InstanceState) error {
	_, err := e.instances.Update(ctx, seen.ID, func(in *nf.Instance) error {
		if err := free(string(op.Verb), *in); err != nil {
			return err
		}
		if in.LastOperation != seen.LastOperation {
			return nf.E(nf.Conflict, string(op.Verb), "VNF instance "+in.ID, fmt.Errorf("operation %s has changed it meanwhile", in.LastOperation))
		}
		in.Operation, in.LastOperation, in.State, in.Message, in.Updated = op.ID, op.ID, state, "", op.Accepted
		in.Newest = max(in.Newest, op.Revision)
		return nil
	})
	return err
}

// free returns nf.Busy when an operation is running on the instance.
func free(verb string, in nf.Instance) error {
	if in.Operation == "" {
		return nil
	}
	return &nf.Error{Kind: nf.Busy, Op: verb, Subject: "VNF instance " + in.ID, Operation: in.Operation,
		Err: fmt.Errorf("operation %s is running on it", in.Operation)}
}

// discard removes the records of a request that was not accepted after all. It
// does its best: what it cannot remove now, nothing will ever read.
func (e *Engine) discard(ctx context.Context, op nf.Operation) {
	if err := errors.Join(e.withdraw(ctx, op), unlessGone(e.operations.Delete(ctx, op.ID))); err != nil {
		e.cfg.Logger.WarnContext(ctx, "a refused request left records behind", "operation", op.ID, "error", err)
	}
}

// withdraw lets go of what was taken for an operation that was never accepted.
func (e *Engine) withdraw(ctx context.Context, op nf.Operation) error {
	err := e.dropPlan(ctx, op.Target)
	if op.Verb != nf.Instantiate {
		return err // what else it would need is the instance's already
	}
	return errors.Join(err, e.releaseNameOf(ctx, op),
		e.cfg.Catalog.ReleasePackage(ctx, op.Instance, op.Target.Package), e.cfg.Catalog.ReleaseRegion(ctx, op.Instance, op.Region))
}

// dropPlan lets go of a revision's plan.
func (e *Engine) dropPlan(ctx context.Context, rev nf.Revision) error {
	if rev.Plan == "" {
		return nil
	}
	return unlessGone(e.blobs.Release(ctx, planUser(rev.Operation), rev.Plan))
}

// unlessGone makes the removal of what is not there a success.
func unlessGone(err error) error {
	if nf.KindOf(err) == nf.NotFound {
		return nil
	}
	return err
}

// accept queues the operation whose instance has just been written, or takes
// its records back when that failed. When nobody can say whether it failed, the
// operation is queued too: it looks whether the instance names it.
func (e *Engine) accept(ctx context.Context, op nf.Operation, err error) (nf.Operation, error) {
	if definite(err) {
		e.discard(ctx, op)
		return nf.Operation{}, err
	}
	e.queue.push(op.ID)
	if err != nil {
		return nf.Operation{}, err
	}
	e.cfg.Logger.InfoContext(ctx, "operation accepted", "operation", op.ID, "verb", op.Verb, "instance", op.Instance,
		"region", op.Region, "namespace", op.Namespace, "deadline", op.Deadline.Format(time.RFC3339))
	return op, nil
}

// definite reports whether an error says for certain that nothing was written.
func definite(err error) bool { return err != nil && nf.KindOf(err) != nf.Unreachable }

// preview compares the plan with the region, and adds what would be pruned from
// the present instance.
func (p *prepared) preview(ctx context.Context, in nf.Instance) (nf.Preview, error) {
	secrets := secretsOf(nf.Revision{Inputs: p.spec.Inputs, Sensitive: p.sensitive}, inForce(in))
	changes, err := p.cluster.Diff(ctx, p.id, p.objects())
	if err != nil {
		return nf.Preview{}, secrets.error(located(err, p.plan))
	}
	secrets.changes(changes)
	for _, it := range outside(in.Inventory, p.plan) {
		changes = append(changes, nf.Change{Ref: it.Ref, Action: nf.Deleted})
	}
	return nf.Preview{Changes: changes, Warnings: p.plan.Warnings}, nil
}
