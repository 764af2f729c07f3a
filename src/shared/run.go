package shared

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// run is the work of one attempt at an operation on a resource.
type run struct {
	all      *Resources
	attempt  *operation.Attempt
	resource nf.Shared
	region   Region
}

var (
	_ operation.Work   = (*run)(nil)
	_ operation.Undoer = (*run)(nil)
	_ operation.Waiter = (*run)(nil)
)

// work returns the work of one attempt.
func (r *Resources) work(a *operation.Attempt) operation.Work { return &run{all: r, attempt: a} }

func (r *run) op() nf.Operation { return r.attempt.Op() }

// task returns what the operation has to do.
func (r *run) task() nf.SharedTask {
	op := r.op()
	return *r.all.cfg.Task(&op)
}

// Bind implements operation.Work.
func (r *run) Bind(ctx context.Context) (locked bool, err error) {
	r.resource, locked, err = r.all.locks.Bind(ctx, r.attempt)
	return locked, err
}

// Reopen implements operation.Waiter: the region may have another access by now.
func (r *run) Reopen(ctx context.Context) error {
	c, err := r.all.cfg.Open(ctx, r.op().Region)
	r.region = Region{Cluster: c, attempt: r.attempt, record: r.record}
	return operation.RecordError(err) // open does not dial: only the store can be unreachable
}

// record adds objects to the inventory of the resource.
func (r *run) record(ctx context.Context, refs []nf.Ref) error {
	s, err := r.all.locks.Edit(ctx, r.attempt, func(s *nf.Shared) { s.Inventory = union(s.Inventory, refs) })
	if err == nil {
		r.resource.Inventory = s.Inventory
	}
	return err
}

// WaitReason implements operation.Waiter.
func (r *run) WaitReason(err error) *nf.Wait { return operation.RegionAway(err) }

// Failure implements operation.Work.
func (r *run) Failure(_ context.Context, step string, err error) *nf.Failure {
	return nf.FailureOf(step, err)
}

// Steps implements operation.Work.
func (r *run) Steps(ctx context.Context) ([]operation.Step, error) {
	if err := r.Reopen(ctx); err != nil {
		return nil, err
	}
	verb := r.op().Verb
	if verb == nf.SharedRemove {
		return append([]operation.Step{r.step(nf.PhaseCheckHolders, r.checkHolders)}, r.removal()...), nil
	}
	if verb == nf.SharedChange {
		return r.rollout(r.task().Spec, len(r.task().Restart) > 0), nil
	}
	return append([]operation.Step{r.step(nf.PhaseReserve, r.reserve)}, r.rollout(r.resource.Spec, false)...), nil
}

// Undoable implements operation.Undoer.
func (r *run) Undoable(context.Context) (bool, error) { return r.op().OnFailure == nf.Undo, nil }

// UndoSteps implements operation.Undoer: the steps remove a new resource, or restore
// the former spec of a changed one.
func (r *run) UndoSteps(ctx context.Context) ([]operation.Step, error) {
	if err := r.Reopen(ctx); err != nil {
		return nil, err
	}
	if r.op().Verb == nf.SharedCreate {
		return r.removal(), nil
	}
	restarted := slices.ContainsFunc(r.op().Steps, func(s nf.Step) bool { return s.Phase == nf.PhaseRestart })
	return r.rollout(r.resource.Spec, restarted), nil // its record has the former spec until the end
}

// step returns a step of the operation.
func (r *run) step(phase nf.Phase, do func(context.Context) error) operation.Step {
	return operation.Step{
		Step: nf.Step{StepID: nf.StepID{Phase: phase, Undo: r.op().Undoing}}, Do: do,
		Recorded: isRecorded(phase),
	}
}

// isRecorded reports whether the record names a step of the phase before it runs: the
// holders of a resource must not be looked at again when its objects may be gone, and the
// last step may end the lock of the resource.
func isRecorded(phase nf.Phase) bool {
	return phase == nf.PhaseDelete || phase == nf.PhaseFinish || phase == nf.PhaseDeleteRecords
}

// rollout returns the steps that apply the objects of the resource with a spec, delete
// the others in its inventory, and restart what uses it.
func (r *run) rollout(spec json.RawMessage, restart bool) []operation.Step {
	with := func() nf.Shared {
		s := r.resource // its inventory may have grown
		s.Spec = spec
		return s
	}
	steps := []operation.Step{
		r.step(nf.PhaseApply, func(ctx context.Context) error { return r.all.cfg.Kind.Apply(ctx, &r.region, with()) }),
		r.step(nf.PhasePrune, func(ctx context.Context) error { return r.prune(ctx, with()) }),
	}
	if restart {
		steps = append(steps, r.step(nf.PhaseRestart, r.restart))
	}
	return append(steps, r.step(nf.PhaseFinish, func(context.Context) error { return r.finish(with()) }))
}

// removal returns the steps that delete a resource.
func (r *run) removal() []operation.Step {
	unless := func(do func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if r.task().Used {
				return nil
			}
			return do(ctx)
		}
	}
	return []operation.Step{
		r.step(nf.PhaseDelete, unless(func(ctx context.Context) error { return r.all.cfg.Kind.Remove(ctx, &r.region, r.resource) })),
		r.step(nf.PhaseDeleteRecords, unless(r.deleteRecords)),
	}
}

// reserve prevents the removal of the region, and creates the namespace of the objects.
func (r *run) reserve(ctx context.Context) error {
	if err := r.all.cfg.Regions.Hold(ctx, r.holding()); err != nil {
		return operation.RecordError(err)
	}
	_, err := r.region.Cluster.EnsureNamespace(ctx, r.all.cfg.Namespace, nf.DefaultProject)
	return err
}

// holding is the resource's hold on its region.
func (r *run) holding() nf.Holding {
	return nf.Holding{Holder: nf.Holder{Subject: r.op().Subject}, Region: r.op().Region}
}

// prune deletes the objects in the inventory that a resource does not have.
func (r *run) prune(ctx context.Context, s nf.Shared) error {
	kept, err := r.all.cfg.Kind.Refs(s)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(s.Inventory), func(ref nf.Ref) bool { return contains(kept, ref) })
	return r.region.Delete(ctx, gone)
}
