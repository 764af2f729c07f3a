package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// acceptor accepts requests: it turns a prepared request into records.
type acceptor struct {
	records    *records
	operations *operation.Acceptor
}

// request is a prepared request: it has only to be recorded.
type request struct {
	op     nf.Operation
	target *prepared          // of the operation's new revision; nil if it makes none
	seen   *nf.Instance       // the instance as the request was prepared for it; nil if the operation creates it
	state  nf.InstanceState   // of the instance while the operation runs
	edit   func(*nf.Instance) // what else the request changes in the instance's record; nil: nothing
}

// requester prepares the requests that follow from an instance's state, and their dry
// runs: changes to a target, actions on workloads, retries and undos.
type requester struct {
	records  *records
	preparer *preparer
	acceptor *acceptor
}

// accept prepares and records a request, unless it was already accepted under
// the same key. It returns the operation.
func (a *acceptor) accept(ctx context.Context, k nf.RequestKey, prepare func() (request, error)) (nf.Operation, error) {
	op, err := a.operations.Accept(ctx, k, func() (operation.Request, error) {
		req, err := prepare()
		return a.recorded(req), err
	})
	if err == nil || k.Key == "" {
		return op, err
	}
	if duplicate, found := a.instantiated(ctx, k); found {
		return duplicate, nil
	}
	return op, err
}

// instantiated returns the operation of a request whose instance exists,
// whatever the state of the key's own record.
func (a *acceptor) instantiated(ctx context.Context, k nf.RequestKey) (nf.Operation, bool) {
	in, err := a.records.instances.Get(ctx, instanceOf(k))
	if err != nil {
		return nf.Operation{}, false
	}
	op, err := a.records.ledger.Get(ctx, in.LastOperation)
	return op, err == nil && op.Request == k
}

// newOperation returns the operation of a request that has just been prepared.
func (a *acceptor) newOperation(verb nf.Verb, t target, opts nf.Options) nf.Operation {
	if opts.OnFailure == "" {
		opts.OnFailure = nf.Undo
	}
	op := a.operations.New(subjectOf(t.id), opts.Timeout)
	op.Region, op.Project, op.Verb, op.OnFailure, op.WaitForRegion, op.Trace = t.region, t.project, verb, opts.OnFailure, opts.WaitForRegion, opts.Trace
	op.Instance.Namespace, op.Instance.NoWait = t.namespace, opts.NoWait
	return op
}

// subjectOf returns an instance as the subject of operations; without an id, all
// instances.
func subjectOf(id string) nf.Subject { return nf.Subject{Kind: nf.InstanceSubject, ID: id} }

// recorded returns how a request is recorded: its plan before its operation, and
// then the instance.
func (a *acceptor) recorded(req request) operation.Request {
	r := operation.Request{Operation: req.op}
	if req.target != nil {
		r.Store = func(ctx context.Context, op *nf.Operation) ([]store.Op, error) {
			return a.records.storePlan(ctx, op, req.target.encoded)
		}
		r.Unstore = func(ctx context.Context, op nf.Operation) error { return a.records.dropPlan(ctx, op.Instance.Target) }
	}
	r.Lock = func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
		if req.seen == nil {
			return a.create(ctx, op, req.target)
		}
		taken, err := a.records.locks.TakeOp(ctx, op, *req.seen, func(in *nf.Instance) error {
			if in.State != req.state { // the reason for a state that stays is the same
				in.Become(req.state, "")
			}
			in.Unlisted = false // a termination sets it again
			in.Newest = max(in.Newest, op.Instance.Revision)
			if req.edit != nil {
				req.edit(in)
			}
			return nil
		})
		return []store.Op{taken}, err
	}
	return r
}

// create returns the ops that record an instance and reserve what it needs.
func (a *acceptor) create(ctx context.Context, op nf.Operation, p *prepared) ([]store.Op, error) {
	in := nf.Instance{
		ID: p.target.id, Name: p.target.name, Region: p.target.region, Namespace: p.target.namespace, Project: p.target.project, State: nf.Instantiating,
		Newest: 1, Created: op.Accepted, Adopted: op.Verb == nf.Adopt,
	}
	lockOf(&in).Take(op)
	if op.Verb == nf.Instantiate {
		in.Inventory = itemsOf(p.plan, nil)
	}
	describe(&in, op.Instance.Target)
	created, err := a.records.locks.CreateOp(ctx, in)
	if err != nil {
		return nil, err
	}
	named, err := a.records.reserveName(ctx, p.target, op.ID)
	if err != nil {
		return nil, err
	}
	held, err := a.records.holds.HoldOps(ctx, nf.Holding{Holder: holderOf(op), Region: p.target.region, Package: p.target.spec.Package})
	// Order matters: the name comes after the operation, so that a replica that
	// takes the operation over can release the name. The instance comes last: its
	// record makes the request accepted.
	return slices.Concat(named, held, []store.Op{created}), err
}

// revising returns an operation that will put a prepared target in force as the
// revision.
func revising(op nf.Operation, p *prepared, rev nf.Revision) nf.Operation {
	rev.Operation, rev.Created = op.ID, op.Accepted
	op.Instance.Revision, op.Warnings, op.Instance.Target = rev.Number, p.plan.Warnings, rev
	return op
}

// withdraw deletes what was stored for an operation whose request was not accepted.
func (s *records) withdraw(ctx context.Context, op nf.Operation) error {
	err := s.dropPlan(ctx, op.Instance.Target)
	if op.Verb != nf.Instantiate && op.Verb != nf.Adopt || op.Instance.Repeats != "" {
		return err // everything else it would need belongs to the instance already
	}
	// Order matters: a duplicate of the request that is accepted from now on writes the
	// holds again, and then they are not released.
	release, holdErr := s.holds.ReleaseOps(ctx, nf.Holding{Holder: holderOf(op), Region: op.Region, Package: op.Instance.Target.Package})
	if holdErr != nil {
		return errors.Join(err, holdErr)
	}
	if _, there := s.instances.Get(ctx, op.Subject.ID); nf.KindOf(there) != nf.NotFound || there == nil {
		return errors.Join(err, there) // a duplicate of the request has created it
	}
	other, nameErr := s.releaseNameOf(ctx, op)
	if other || nameErr != nil {
		return errors.Join(err, nameErr)
	}
	return errors.Join(err, s.instances.WriteIfAbsent(ctx, op.Subject.ID, release...))
}
