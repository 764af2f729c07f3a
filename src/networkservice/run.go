package networkservice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// run is the work of one attempt at an operation on a service.
type run struct {
	services *Services
	attempt  *operation.Attempt
	service  nf.NetworkService
}

var (
	_ operation.Work   = (*run)(nil)
	_ operation.Undoer = (*run)(nil)
	_ operation.Waiter = (*run)(nil)
)

// work returns the work of one attempt.
func (s *Services) work(a *operation.Attempt) operation.Work { return &run{services: s, attempt: a} }

func (r *run) op() nf.Operation { return r.attempt.Op() }

// Bind implements operation.Work.
func (r *run) Bind(ctx context.Context) (locked bool, err error) {
	r.service, locked, err = r.services.locks.Bind(ctx, r.attempt)
	return locked, err
}

// WaitReason implements operation.Waiter. A failed operation of a member is final.
func (r *run) WaitReason(err error) *nf.Wait {
	if _, ended := errors.AsType[*nf.OperationError](err); ended {
		return nil
	}
	return operation.RegionAway(err)
}

// Reopen implements operation.Waiter.
func (r *run) Reopen(context.Context) error { return nil }

// Failure implements operation.Work.
func (r *run) Failure(_ context.Context, step string, err error) *nf.Failure {
	return nf.FailureOf(step, err)
}

// Steps implements operation.Work.
func (r *run) Steps(context.Context) ([]operation.Step, error) {
	verb := r.op().Verb
	if verb == nf.ServiceUndo {
		return r.restoring(), nil
	}
	if verb == nf.ServiceTerminate {
		return append(r.removing(nil), r.step(nf.PhaseDeleteRecords, r.deleteRecord)), nil
	}
	var steps []operation.Step
	if verb == nf.ServiceChange {
		steps = append(steps, r.step(nf.PhaseDiscard, r.discard))
	}
	steps = append(steps, r.applying(r.service.Content)...)
	steps = append(steps, r.removing(r.service.Content.Members)...)
	return append(steps, r.step(nf.PhaseFinish, func(context.Context) error { return r.finish(r.service.Content) })), nil
}

// Undoable implements operation.Undoer.
func (r *run) Undoable(context.Context) (bool, error) {
	verb := r.op().Verb
	return r.op().OnFailure == nf.Undo && (verb == nf.ServiceCreate || verb == nf.ServiceChange), nil
}

// UndoSteps implements operation.Undoer.
func (r *run) UndoSteps(context.Context) ([]operation.Step, error) { return r.restoring(), nil }

// restoring returns the steps that give the service its former members, or delete it if
// it had none.
func (r *run) restoring() []operation.Step {
	former := r.service.Former
	steps := r.removing(former.Members)
	if len(former.Members) == 0 {
		return append(steps, r.step(nf.PhaseDeleteRecords, r.deleteRecord))
	}
	steps = append(steps, r.applying(former)...)
	return append(steps, r.step(nf.PhaseFinish, func(context.Context) error { return r.finish(former) }))
}

// applying returns the steps that make the members as the content describes them: one for
// each group, in order.
func (r *run) applying(c nf.ServiceContent) []operation.Step {
	groups := nf.Groups(c.Members)
	return r.grouped(nf.PhaseApply, groups, func(ctx context.Context, group []nf.ServiceMember) error {
		return r.together(ctx, group, func(ctx context.Context, m nf.ServiceMember) (nf.Operation, error) {
			return r.begin(ctx, m, c.SpecOf(r.service.ID, m))
		})
	})
}

// removing returns the steps that terminate all members except some: one for each group,
// in reverse order.
func (r *run) removing(except []nf.ServiceMember) []operation.Step {
	groups := nf.Groups(nf.Besides(except, r.service.All()))
	slices.Reverse(groups)
	return r.grouped(nf.PhaseTerminate, groups, func(ctx context.Context, group []nf.ServiceMember) error {
		return r.together(ctx, group, r.terminate)
	})
}

func (r *run) grouped(phase nf.Phase, groups [][]nf.ServiceMember, do func(context.Context, []nf.ServiceMember) error) []operation.Step {
	var steps []operation.Step
	for i, group := range groups {
		s := r.step(phase, func(ctx context.Context) error { return do(ctx, group) })
		names := make([]string, len(group))
		for n, m := range group {
			names[n] = m.Name
		}
		s.Stage, s.Of, s.StageName = i+1, len(groups), strings.Join(names, ", ")
		steps = append(steps, s)
	}
	return steps
}

// step returns a step of the operation.
func (r *run) step(phase nf.Phase, do func(context.Context) error) operation.Step {
	return operation.Step{
		Step: nf.Step{StepID: nf.StepID{Phase: phase, Undo: r.op().Undoing}}, Do: do,
		Recorded: phase == nf.PhaseFinish || phase == nf.PhaseDeleteRecords,
	}
}

// finish records the content that is in force, and unlocks the service.
func (r *run) finish(c nf.ServiceContent) error {
	failure := nf.Text{}
	if f := r.op().Failure; f != nil {
		failure = nf.Textf("the last change was undone: %s", f.Said())
	}
	r.services.locks.Release(r.attempt, func(s *nf.NetworkService) {
		s.State, s.Content, s.Former, s.Surplus, s.Failure = nf.ServiceReady, c, nf.ServiceContent{}, nil, failure
	})
	return nil
}

// deleteRecord deletes the service, with the end of the operation.
func (r *run) deleteRecord(context.Context) error {
	r.services.locks.Delete(r.attempt)
	return nil
}

// Release implements operation.Work. The last step of an operation that succeeds, or is
// undone, unlocks the service.
func (r *run) Release(context.Context) error {
	failure := r.op().Failure
	if failure == nil {
		return nil
	}
	r.services.locks.Release(r.attempt, func(s *nf.NetworkService) { s.State, s.Failure = nf.ServiceFailed, failure.Said() })
	return nil
}

// memberError names the member whose change has failed.
func memberError(m nf.ServiceMember, err error) error {
	if err == nil || operation.IsStoreError(err) || errors.Is(err, operation.ErrTaken) {
		return err
	}
	return nf.Errorf("member %s: %w", m.Name, err)
}

// unended is the error of an operation that has ended without success.
func unended(op nf.Operation) error {
	if err := op.Err(); err != nil || op.State == nf.Succeeded {
		return err
	}
	return nf.E(nf.Failed, string(op.Verb), op.Subject.Noun(), fmt.Errorf("operation %s is %s", op.ID, op.State))
}
