package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// Instantiate accepts a request for a new instance and returns its queued
// operation. Everything that can be known to be wrong is an error here, and
// then nothing has been recorded or touched: nf.Invalid with violations for the
// request, the package and its variables; nf.NotFound for the region or the
// package; nf.Unreachable for the region; nf.Unsupported for kinds that it does
// not serve; nf.Conflict for objects that are there already and not the
// instance's; nf.Exists for a name that is taken.
//
// Here and in every other request, a key that the same request was made under
// before gives the operation of that time.
func (e *Engine) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.instantiate(ctx, req) })
}

func (e *Engine) instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	p, err := e.prepareNew(ctx, &req, secretsWhole)
	if err != nil {
		return nf.Operation{}, err
	}
	return e.begin(ctx, e.newOperation(nf.Instantiate, p.target, req.Options), p)
}

// begin records the operation that an instance begins with, and the instance.
func (e *Engine) begin(ctx context.Context, op nf.Operation, p *prepared) (nf.Operation, error) {
	ctx, done := e.detached(ctx)
	defer done()
	if err := e.record(ctx, &op, p, p.revision(1)); err != nil {
		return nf.Operation{}, err
	}
	in := nf.Instance{
		ID: p.id, Name: p.name, Region: p.region, Namespace: p.namespace, Project: p.project, State: nf.Instantiating,
		Operation: op.ID, Claim: op.Claim, LastOperation: op.ID, Newest: 1, Created: op.Accepted, Updated: op.Accepted,
		Adopted: op.Verb == nf.Adopt,
	}
	describe(&in, op.Target)
	// The name comes after the operation, so that whoever takes that over can
	// give it back; and the region must not go before the operation begins.
	err := e.reserveName(ctx, p.target, op.ID)
	if err == nil {
		err = e.cfg.Catalog.Hold(ctx, nf.Holding{Instance: p.id, Region: p.region, Package: p.spec.Package})
	}
	if err == nil {
		// The instance comes last: its record is what makes the request accepted.
		err = e.instances.Insert(ctx, in.ID, in)
	}
	return e.accept(ctx, op, err)
}

// detached returns a context for the writes that accept a request: a client
// that goes away between two of them must not leave the first alone. They end
// before anybody else may take this replica for dead.
func (e *Engine) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if t := e.present(); t != nil {
		return context.WithDeadline(ctx, *t.sure.Load())
	}
	return context.WithDeadline(ctx, lease.Sure(time.Now(), e.cfg.Lease)) // and it will be refused
}

// inForce returns what an instance's record says of its revision.
func inForce(in nf.Instance) nf.Revision {
	return nf.Revision{
		Package: in.Package, Inputs: in.Inputs, Sensitive: in.Sensitive, Labels: in.Labels, Description: in.Description,
		Release: in.Release, Namespaces: in.Namespaces, Amendments: in.Amendments, Annotations: in.Annotations, Hidden: in.Hidden,
	}
}

// describe makes an instance's record speak of a revision.
func describe(in *nf.Instance, rev nf.Revision) {
	in.Package, in.PackageDigest = rev.Package, rev.PackageDigest
	in.Inputs, in.Sensitive = rev.Inputs, rev.Sensitive
	in.Labels, in.Description = rev.Labels, rev.Description
	in.Release, in.Namespaces, in.Amendments, in.Annotations, in.Hidden = rev.Release, rev.Namespaces, rev.Amendments, rev.Annotations, rev.Hidden
}

// PreviewInstantiate tells what Instantiate would do to the region, or fails as
// it would.
func (e *Engine) PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	p, err := e.prepareNew(ctx, &req, previewSight(req.Options))
	if err != nil {
		return nf.Preview{}, err
	}
	return e.preview(ctx, nf.Instance{}, p)
}

func (e *Engine) prepareNew(ctx context.Context, req *nf.InstantiateRequest, sight sight) (*prepared, error) {
	t, err := e.newTarget(ctx, req)
	if err != nil {
		return nil, err
	}
	t.sight = sight
	return e.prepare(ctx, t)
}

// newTarget returns what a request wants to come into being.
func (e *Engine) newTarget(ctx context.Context, req *nf.InstantiateRequest) (target, error) {
	if req.Namespace == "" {
		req.Namespace = "default"
	}
	if err := req.Validate(); err != nil {
		return target{}, err
	}
	id := req.ID
	switch {
	case id != "":
		if err := e.idFree(ctx, id); err != nil {
			return target{}, err
		}
	case req.Key.Key != "":
		id = instanceOf(req.Key)
	default:
		id = e.cfg.NewID()
	}
	t := target{
		id: id, name: req.Name, project: nf.ProjectOf(req.Project),
		region: req.Region, namespace: req.Namespace, spec: req.Spec, revision: 1,
	}
	// Two of one name usually share their objects too; the name says it in one line.
	return t, e.nameFree(ctx, t)
}

// idFree returns nf.Exists when there is an instance of the id.
func (e *Engine) idFree(ctx context.Context, id string) error {
	_, err := e.instances.Get(ctx, id)
	if err == nil {
		return nf.E(nf.Exists, "instantiate", "VNF instance "+id, nil)
	}
	return nf.UnlessGone(err)
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
	e.interrupt(id)
	// It may run elsewhere, where the list of work is what is looked at.
	_, err = e.claims.Update(ctx, id, func(c *claim) error { c.Cancel = true; return nil })
	return op, nf.UnlessGone(err)
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
		Instance: t.id, Region: t.region, Namespace: t.namespace, Project: t.project,
		Verb: verb, State: nf.Queued, OnFailure: opts.OnFailure, Patient: opts.Patient, NoWait: opts.NoWait,
		Accepted: now, Deadline: now.Add(opts.Timeout),
		Request: opts.Key, Trace: opts.Trace, Claim: e.cfg.NewID(),
	}
}

// record writes the plan and then the operation that will carry it out. Neither
// means anything until the instance names the operation.
func (e *Engine) record(ctx context.Context, op *nf.Operation, p *prepared, rev nf.Revision) error {
	replica, err := e.keepRequest(ctx, *op)
	if err != nil {
		return err
	}
	rev.Operation, rev.Created = op.ID, op.Accepted
	op.Revision, op.Warnings, op.Target = rev.Number, p.plan.Warnings, rev
	err = e.storePlan(ctx, op, p)
	if err == nil {
		err = e.enlist(ctx, *op, replica)
	}
	if err == nil {
		err = e.operations.Insert(ctx, op.ID, *op)
	}
	if err != nil {
		e.discard(ctx, *op)
	}
	return err
}

// storePlan keeps the plan for the operation. That of an earlier revision is
// there already.
func (e *Engine) storePlan(ctx context.Context, op *nf.Operation, p *prepared) error {
	var err error
	if op.Target.Plan != "" {
		err = e.blobs.Hold(ctx, planUser(op.ID), op.Target.Plan)
	} else {
		op.Target.Plan, _, err = e.blobs.Put(ctx, planUser(op.ID), bytes.NewReader(p.encoded), int64(len(p.encoded)))
	}
	if err != nil {
		return fmt.Errorf("cannot store the plan: %w", err)
	}
	return nil
}

// revision returns what the request wants to become revision number n.
func (p *prepared) revision(n int) nf.Revision {
	return nf.Revision{
		Instance: p.id, Number: n, Package: p.spec.Package, PackageDigest: p.pkg.Digest,
		Inputs: p.spec.Inputs, Sensitive: p.sensitive, Labels: p.spec.Labels, Description: p.spec.Description,
		Release: p.spec.Release, Namespaces: p.spec.Namespaces, Amendments: p.spec.Amendments, Annotations: p.spec.Annotations,
		Hidden: p.hidden,
	}
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
		in.Operation, in.Claim, in.LastOperation = op.ID, op.Claim, op.ID
		in.State, in.Message, in.Updated = state, "", op.Accepted
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
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // the request's own time may be what is over
	defer done()
	err := e.withdraw(ctx, op)
	if err == nil { // otherwise whoever takes the operation up withdraws it again
		err = errors.Join(nf.UnlessGone(e.operations.Delete(ctx, op.ID)), e.drop(ctx, op.ID))
	}
	err = errors.Join(err, e.dropRequest(ctx, op))
	e.disown(op.ID)
	if err != nil {
		e.cfg.Logger.WarnContext(ctx, "a refused request left records behind", "operation", op.ID, "error", err)
	}
}

// withdraw lets go of what was taken for an operation that was never accepted.
func (e *Engine) withdraw(ctx context.Context, op nf.Operation) error {
	err := e.dropPlan(ctx, op.Target)
	if op.Verb != nf.Instantiate && op.Verb != nf.Adopt || op.Repeats != "" {
		return err // what else it would need is the instance's already
	}
	if _, there := e.instances.Get(ctx, op.Instance); nf.KindOf(there) != nf.NotFound || there == nil {
		return errors.Join(err, there) // the request's twin has made it
	}
	return errors.Join(err, e.releaseNameOf(ctx, op),
		e.cfg.Catalog.Release(ctx, nf.Holding{Instance: op.Instance, Region: op.Region, Package: op.Target.Package}))
}

// dropPlan lets go of a revision's plan.
func (e *Engine) dropPlan(ctx context.Context, rev nf.Revision) error {
	if rev.Plan == "" {
		return nil
	}
	return nf.UnlessGone(e.blobs.Release(ctx, planUser(rev.Operation), rev.Plan))
}

// accept queues the operation whose instance has just been written, or takes
// its records back when that failed. When nobody can say whether it failed, the
// operation is queued too: it looks whether the instance names it.
func (e *Engine) accept(ctx context.Context, op nf.Operation, err error) (nf.Operation, error) {
	if definite(err) {
		e.discard(ctx, op)
		return nf.Operation{}, err
	}
	e.start(ctx, op)
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
func (e *Engine) preview(ctx context.Context, in nf.Instance, p *prepared) (nf.Preview, error) {
	secrets := secretsOf(p.revision(0), inForce(in)) // what templates read was masked already
	changes, err := p.diff(ctx)
	if err != nil {
		return nf.Preview{}, secrets.error(located(err, p.plan))
	}
	secrets.changes(changes)
	pruned := outside(in.Inventory, p.plan)
	for _, it := range pruned {
		change := nf.Change{Ref: it.Ref, Action: nf.Deleted}
		if it.Keep {
			change.Action = nf.Orphaned
		}
		changes = append(changes, change)
	}
	return nf.Preview{Changes: changes, Warnings: p.plan.Warnings, Confirm: e.cfg.Brake.hold(in, pruned)}, nil
}

// diff compares the objects with the region. One that cannot be changed, and may
// be made again, is told as that.
func (p *prepared) diff(ctx context.Context) ([]nf.Change, error) {
	var planned []render.Planned
	var objects []*unstructured.Unstructured
	for _, stage := range p.plan.Stages {
		for _, obj := range stage.Objects {
			if !obj.Shared {
				planned, objects = append(planned, obj), append(objects, obj.Object)
			}
		}
	}
	var recreated []nf.Change
	for {
		changes, err := p.cluster.Diff(ctx, p.id, objects)
		ref, ok := replaceable(planned, err)
		at := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return refOf(obj) == ref })
		if !ok || at < 0 {
			return append(changes, recreated...), err
		}
		objects = slices.Delete(objects, at, at+1)
		recreated = append(recreated, nf.Change{Ref: ref, Action: nf.Recreated})
	}
}
