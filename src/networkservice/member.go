package networkservice

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// together starts an operation on each member, and waits until all have ended. It
// returns the errors of all members.
func (r *run) together(ctx context.Context, group []nf.ServiceMember, start func(context.Context, nf.ServiceMember) (nf.Operation, error)) error {
	started := make([]nf.Operation, len(group))
	var failed error
	for i, m := range group {
		op, err := start(ctx, m)
		if err != nil {
			failed = memberError(m, err)
			break // what was started is waited for, so that nothing runs when the undo starts
		}
		started[i] = op
	}
	if operation.IsStoreError(failed) || errors.Is(failed, operation.ErrTaken) {
		return failed
	}
	for i, m := range group {
		if started[i].ID == "" {
			continue
		}
		ended, err := r.wait(ctx, started[i].ID)
		if err == nil {
			err = unended(ended)
		}
		if operation.IsStoreError(err) || ctx.Err() != nil {
			return err
		}
		if failed == nil {
			failed = memberError(m, err)
		}
	}
	return failed
}

// begin starts to create a member's instance, or to change it if it differs from its
// spec. The id of the operation is empty if there is nothing to do.
func (r *run) begin(ctx context.Context, m nf.ServiceMember, spec nf.Spec) (nf.Operation, error) {
	id := nf.MemberID(r.service.ID, m.Name)
	return r.insist(ctx, func() (nf.Operation, error) {
		in, err := r.services.cfg.Instances.Instance(ctx, id)
		switch {
		case nf.KindOf(err) == nf.NotFound && err != nil:
			req := instantiation(r.service, m, spec)
			req.Options = r.options("apply", m)
			return r.services.cfg.Instances.Instantiate(ctx, req)
		case err != nil:
			return nf.Operation{}, operation.RecordError(err)
		case ready(in) && same(present(in), spec):
			return nf.Operation{}, nil
		}
		req := nf.UpgradeRequest{Edit: replaced(spec), Options: r.options("apply", m)}
		op, err := r.services.cfg.Instances.Upgrade(ctx, id, req)
		if confirm := nf.ConfirmOf(err); confirm != "" && r.undoes() {
			req.Confirm = confirm // an undo deletes what the change has created
			op, err = r.services.cfg.Instances.Upgrade(ctx, id, req)
		}
		return op, err
	})
}

// undoes reports whether the members get back the specs that they had before a change.
func (r *run) undoes() bool { return r.op().Undoing || r.op().Verb == nf.ServiceUndo }

// terminate starts to terminate a member's instance. The id of the operation is empty if
// the instance does not exist.
func (r *run) terminate(ctx context.Context, m nf.ServiceMember) (nf.Operation, error) {
	return r.insist(ctx, func() (nf.Operation, error) {
		op, err := r.services.cfg.Instances.Terminate(ctx, nf.MemberID(r.service.ID, m.Name),
			nf.TerminateRequest{By: subjectOf(r.service.ID), Options: r.options("terminate", m)})
		return op, nf.IgnoreNotFound(err)
	})
}

// discard terminates the members whose instantiation has failed, so that they are created
// again.
func (r *run) discard(ctx context.Context) error {
	var failed []nf.ServiceMember
	for _, m := range r.service.Content.Members {
		in, err := r.services.cfg.Instances.Instance(ctx, nf.MemberID(r.service.ID, m.Name))
		if nf.IgnoreNotFound(err) != nil {
			return operation.RecordError(err)
		}
		if err == nil && in.Revision == 0 {
			failed = append(failed, m)
		}
	}
	return r.together(ctx, failed, func(ctx context.Context, m nf.ServiceMember) (nf.Operation, error) {
		return r.insist(ctx, func() (nf.Operation, error) {
			id := nf.MemberID(r.service.ID, m.Name)
			in, err := r.services.cfg.Instances.Instance(ctx, id)
			if err != nil || in.Revision > 0 { // the operation that was waited for has completed it
				return nf.Operation{}, operation.RecordError(nf.IgnoreNotFound(err))
			}
			op, err := r.services.cfg.Instances.Terminate(ctx, id, nf.TerminateRequest{By: subjectOf(r.service.ID), Options: r.options("discard", m)})
			return op, nf.IgnoreNotFound(err)
		})
	})
}

// insist makes a request, again after each other operation on the instance has ended.
func (r *run) insist(ctx context.Context, request func() (nf.Operation, error)) (nf.Operation, error) {
	for {
		if err := r.attempt.Held(ctx); err != nil {
			return nf.Operation{}, err
		}
		op, err := request()
		other := nf.OperationOf(err)
		if err == nil || nf.KindOf(err) != nf.Busy || other == "" {
			return op, err
		}
		if err := r.stop(ctx, other); err != nil {
			return nf.Operation{}, err
		}
		if _, err := r.wait(ctx, other); err != nil {
			return nf.Operation{}, err
		}
	}
}

// stop cancels an operation that an undo waits for, if this service has started it.
func (r *run) stop(ctx context.Context, id string) error {
	if !r.op().Undoing {
		return nil
	}
	op, err := r.services.cfg.Children.Operation(ctx, id)
	if err == nil && op.Request.Client == r.client() {
		_, err = r.services.cfg.Children.Cancel(ctx, id)
	}
	if kind := nf.KindOf(err); err != nil && (kind == nf.NotFound || kind == nf.Conflict) {
		return nil // it has ended
	}
	return operation.RecordError(err)
}

// wait waits until an operation ends, and leaves the place of this one to others in the
// meantime.
func (r *run) wait(ctx context.Context, id string) (nf.Operation, error) {
	defer r.attempt.Yield()()
	op, err := r.services.cfg.Children.Wait(ctx, id)
	return op, operation.RecordError(nf.IgnoreNotFound(err))
}

// client returns the client of the keys under which the service's operations make
// requests.
func (r *run) client() string { return subjectOf(r.service.ID).String() }

// options returns the options of a request for a member. Its key identifies the request
// after a resumption.
func (r *run) options(what string, m nf.ServiceMember) nf.Options {
	op := r.op()
	deadline := op.Deadline
	out := nf.Options{OnFailure: op.OnFailure, Trace: op.Trace, Key: nf.RequestKey{Client: r.client(), Key: op.ID + "/" + what + "/" + m.Name, Digest: "service"}}
	if op.Undoing {
		deadline = op.UndoBy
		out.Key.Key += "/undo"
	}
	out.Timeout = max(deadline.Sub(r.attempt.Now()), time.Second)
	return out
}
