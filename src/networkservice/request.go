package networkservice

import (
	"context"
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Create accepts a new service, and returns the operation that creates it. It returns
// nf.Exists if there is one of its id, and the errors of its members' instantiation that
// are known in advance.
func (s *Services) Create(ctx context.Context, req nf.ServiceRequest) (nf.Operation, error) {
	return s.accept(ctx, req.Service.ID, req.Key, func() (operation.Request, error) {
		req.Secrets = true // as the creation of the instances
		in, _, err := s.planned(ctx, req)
		if err != nil {
			return operation.Request{}, err
		}
		op := s.operation(in, nf.ServiceCreate, req.Options)
		in.State, in.Created = nf.ServiceCreating, op.Accepted
		lockOf(&in).Take(op)
		return operation.Request{Operation: op, Lock: func(ctx context.Context, _ nf.Operation) ([]store.Op, error) {
			created, err := s.locks.CreateOp(ctx, in)
			return []store.Op{created}, err
		}}, nil
	})
}

// PreviewCreate returns the expected effect of Create on each member, or fails as it
// would.
func (s *Services) PreviewCreate(ctx context.Context, req nf.ServiceRequest) ([]nf.MemberPreview, error) {
	_, previews, err := s.planned(ctx, req)
	return previews, err
}

// planned returns the new service of a request, whose members all have a region.
func (s *Services) planned(ctx context.Context, req nf.ServiceRequest) (nf.NetworkService, []nf.MemberPreview, error) {
	if err := req.Validate(); err != nil {
		return nf.NetworkService{}, nil, err
	}
	in := nf.NetworkService{
		ID: req.Service.ID, Project: nf.ProjectOf(req.Service.Project), Description: req.Service.Description, Labels: req.Service.Labels, Content: req.Service.Content,
	}
	_, err := s.table.Get(ctx, in.ID)
	switch {
	case err == nil:
		return in, nil, nf.E(nf.Exists, "create", subjectOf(in.ID).Noun(), nf.Violations{{Field: "service_id", Message: "already exists"}})
	case nf.KindOf(err) != nf.NotFound:
		return in, nil, err
	}
	p := planner{services: s, verb: nf.ServiceCreate, service: &in, opts: req.Options}
	previews, err := p.members(ctx)
	return in, previews, err
}

// Change accepts a change of a service: it creates new members, changes those whose
// instances differ from their description, and then terminates removed ones. Without an
// edit it retries a failed operation. It returns nf.Busy while another operation of the
// service or of a member runs.
func (s *Services) Change(ctx context.Context, id string, req nf.ServiceChangeRequest) (nf.Operation, error) {
	return s.accept(ctx, id, req.Key, func() (operation.Request, error) {
		req.Secrets = true // as the change of the instances
		before, after, _, err := s.changed(ctx, id, req)
		if err != nil {
			return operation.Request{}, err
		}
		op := s.operation(after, nf.ServiceChange, req.Options)
		return s.taking(op, before, func(there *nf.NetworkService) {
			there.Description, there.Labels, there.Content, there.Former, there.Surplus = after.Description, after.Labels, after.Content, after.Former, after.Surplus
			there.State, there.Failure = nf.ServiceChanging, nf.Text{}
		}), nil
	})
}

// PreviewChange returns the expected effect of Change on each member that it changes, or
// fails as it would.
func (s *Services) PreviewChange(ctx context.Context, id string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error) {
	_, _, previews, err := s.changed(ctx, id, req)
	return previews, err
}

// changed returns a service before and after a change.
func (s *Services) changed(ctx context.Context, id string, req nf.ServiceChangeRequest) (before, after nf.NetworkService, previews []nf.MemberPreview, err error) {
	if before, err = s.idle(ctx, "change", id); err != nil {
		return before, after, nil, err
	}
	after = before
	after.Content = nf.ServiceContent{Networks: slices.Clone(before.Content.Networks), Members: slices.Clone(before.Content.Members)}
	if err := req.Edit(&after); err != nil {
		return before, after, nil, err
	}
	if v := after.Violations(); len(v) > 0 {
		return before, after, nil, nf.E(nf.Invalid, "change", subjectOf(id).Noun(), v)
	}
	if err := req.Options.Validate(); err != nil {
		return before, after, nil, err
	}
	if before.State == nf.ServiceReady {
		after.Former = before.Content
	}
	after.Surplus = nf.Besides(slices.Concat(after.Content.Members, after.Former.Members), before.Content.Members, before.Surplus)
	p := planner{services: s, verb: nf.ServiceChange, service: &after, before: before.All(), opts: req.Options}
	previews, err = p.members(ctx)
	return before, after, previews, err
}

// Terminate accepts the termination of a service with all its members. It returns nf.Busy
// while another operation of the service runs.
func (s *Services) Terminate(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	opts.OnFailure = nf.Keep // what is deleted cannot be restored
	return s.accept(ctx, id, opts.Key, func() (operation.Request, error) {
		before, _, err := s.terminable(ctx, id, opts)
		if err != nil {
			return operation.Request{}, err
		}
		op := s.operation(before, nf.ServiceTerminate, opts)
		return s.taking(op, before, func(there *nf.NetworkService) {
			if there.State == nf.ServiceReady {
				there.Former = there.Content
			}
			there.State, there.Failure = nf.ServiceTerminating, nf.Text{}
		}), nil
	})
}

// PreviewTerminate returns the expected effect of Terminate on each member, or fails as
// it would.
func (s *Services) PreviewTerminate(ctx context.Context, id string, opts nf.Options) ([]nf.MemberPreview, error) {
	_, previews, err := s.terminable(ctx, id, opts)
	return previews, err
}

func (s *Services) terminable(ctx context.Context, id string, opts nf.Options) (nf.NetworkService, []nf.MemberPreview, error) {
	before, err := s.idle(ctx, "terminate", id)
	if err == nil {
		err = opts.Validate()
	}
	if err != nil {
		return before, nil, err
	}
	p := planner{services: s, verb: nf.ServiceTerminate, service: &before, opts: opts}
	previews, err := p.terminations(ctx, before.All())
	return before, previews, err
}

// Undo accepts the undo of a failed operation: the service gets its former members, and
// is deleted if it never had any. It returns nf.Conflict unless the service has failed.
func (s *Services) Undo(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	opts.OnFailure = nf.Keep
	return s.accept(ctx, id, opts.Key, func() (operation.Request, error) {
		before, err := s.idle(ctx, "undo", id)
		if err == nil {
			err = opts.Validate()
		}
		if err != nil {
			return operation.Request{}, err
		}
		if before.State != nf.ServiceFailed {
			return operation.Request{}, nf.E(nf.Conflict, "undo", subjectOf(id).Noun(), errors.New("its last operation has not failed"))
		}
		op := s.operation(before, nf.ServiceUndo, opts)
		return s.taking(op, before, func(there *nf.NetworkService) {
			there.State, there.Failure = nf.ServiceChanging, nf.Text{}
		}), nil
	})
}

// idle returns a service that no operation changes.
func (s *Services) idle(ctx context.Context, verb, id string) (nf.NetworkService, error) {
	there, err := s.table.Get(ctx, id)
	if err != nil {
		return there, err
	}
	return there, lockOf(&there).Free(verb)
}

// taking returns the request of an operation on a service that exists.
func (s *Services) taking(op nf.Operation, before nf.NetworkService, edit func(*nf.NetworkService)) operation.Request {
	return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
		taken, err := s.locks.TakeOp(ctx, op, before, func(there *nf.NetworkService) error { edit(there); return nil })
		return []store.Op{taken}, err
	}}
}

// operation returns a new operation of a service.
func (s *Services) operation(in nf.NetworkService, verb nf.Verb, opts nf.Options) nf.Operation {
	op := s.acceptor.New(subjectOf(in.ID), opts.Timeout)
	op.Project, op.Verb, op.OnFailure, op.Trace, op.Service.Regions = in.Project, verb, opts.OnFailure, opts.Trace, in.Regions()
	if op.OnFailure == "" {
		op.OnFailure = nf.Undo
	}
	return op
}

// accept executes a request, unless it was already executed under the same key. Keys are
// those of the requests to one service.
func (s *Services) accept(ctx context.Context, id string, key nf.RequestKey, prepare func() (operation.Request, error)) (nf.Operation, error) {
	if key.Key != "" {
		key.Client += "\x00" + subjectOf(id).Noun()
	}
	return s.acceptor.Accept(ctx, key, prepare)
}
