package network

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// run is the work of one attempt at an operation on a network.
type run struct {
	s       *Networks
	attempt *operation.Attempt
	network nf.Network
	cluster Cluster
}

var (
	_ operation.Work   = (*run)(nil)
	_ operation.Undoer = (*run)(nil)
	_ operation.Waiter = (*run)(nil)
)

// work returns the work of one attempt.
func (s *Networks) work(a *operation.Attempt) operation.Work { return &run{s: s, attempt: a} }

func (r *run) op() nf.Operation { return r.attempt.Op() }

// Bind implements operation.Work.
func (r *run) Bind(ctx context.Context) (locked bool, err error) {
	r.network, locked, err = r.s.locks.Bind(ctx, r.attempt)
	return locked, err
}

// Reopen implements operation.Waiter: the region may have another access by now.
func (r *run) Reopen(ctx context.Context) (err error) {
	r.cluster, err = r.s.cfg.Open(ctx, r.op().Region)
	return operation.RecordError(err) // open does not dial: only the store can be unreachable
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
	if verb == nf.NetworkRemove {
		return append([]operation.Step{r.step(nf.PhaseCheckHolders, r.checkHolders)}, r.removal()...), nil
	}
	if verb == nf.NetworkChange {
		return r.rollout(r.changed()), nil
	}
	return append([]operation.Step{r.step(nf.PhaseReserve, r.reserve)}, r.rollout(r.network)...), nil
}

// Undoable implements operation.Undoer.
func (r *run) Undoable(context.Context) (bool, error) { return r.op().OnFailure == nf.Undo, nil }

// UndoSteps implements operation.Undoer: the steps remove a new network, or restore
// the former spec of a changed one.
func (r *run) UndoSteps(ctx context.Context) ([]operation.Step, error) {
	if err := r.Reopen(ctx); err != nil {
		return nil, err
	}
	if r.op().Verb == nf.NetworkCreate {
		return r.removal(), nil
	}
	return r.rollout(r.network), nil // its record has the former spec until the end
}

// step returns a step of the operation.
func (r *run) step(phase nf.Phase, do func(context.Context) error) operation.Step {
	return operation.Step{
		Step: nf.Step{StepID: nf.StepID{Phase: phase, Undo: r.op().Undoing}}, Do: do,
		Recorded: phase == nf.PhaseFinish || phase == nf.PhaseDeleteRecords,
	}
}

// changed returns the network with the spec of the operation.
func (r *run) changed() nf.Network {
	n := r.network
	n.Spec = r.op().Network.Spec
	return n
}

// rollout returns the steps that apply the objects of a network, and delete the
// others in its inventory.
func (r *run) rollout(n nf.Network) []operation.Step {
	return []operation.Step{
		r.step(nf.PhaseApply, func(ctx context.Context) error { return r.apply(ctx, n) }),
		r.step(nf.PhasePrune, func(ctx context.Context) error { return r.prune(ctx, n) }),
		r.step(nf.PhaseFinish, func(context.Context) error { return r.finish(n) }),
	}
}

// removal returns the steps that delete a network.
func (r *run) removal() []operation.Step {
	unless := func(do func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if r.op().Network.Used {
				return nil
			}
			return do(ctx)
		}
	}
	return []operation.Step{
		r.step(nf.PhaseDelete, unless(func(ctx context.Context) error { return r.remove(ctx, r.network.Inventory) })),
		r.step(nf.PhaseDeleteRecords, unless(r.deleteRecords)),
	}
}

// reserve prevents the removal of the region, and creates the namespace of networks.
func (r *run) reserve(ctx context.Context) error {
	if err := r.s.cfg.Regions.Hold(ctx, r.holding()); err != nil {
		return operation.RecordError(err)
	}
	_, err := r.cluster.EnsureNamespace(ctx, nf.NetworkNamespace, nf.DefaultProject)
	return err
}

// holding is the network's hold on its region.
func (r *run) holding() nf.Holding {
	return nf.Holding{Holder: nf.Holder{Subject: r.op().Subject}, Region: r.op().Region}
}

// apply applies the objects of a network, and waits until they are ready.
func (r *run) apply(ctx context.Context, n nf.Network) error {
	driver, err := r.s.driver("apply", n)
	if err != nil {
		return err
	}
	objects, err := ownedObjects(driver, n)
	if err != nil || len(objects) == 0 {
		return err
	}
	changes, err := r.cluster.Apply(ctx, r.op().Subject, objects)
	r.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	return r.await(ctx, changes, nf.Current)
}

// prune deletes the objects in the inventory that a network does not have.
func (r *run) prune(ctx context.Context, n nf.Network) error {
	kept, err := r.refs(n)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(r.network.Inventory), func(ref nf.Ref) bool { return contains(kept, ref) })
	return r.remove(ctx, gone)
}

func (r *run) refs(n nf.Network) ([]nf.Ref, error) {
	driver, err := r.s.driver("list", n)
	if err != nil {
		return nil, err
	}
	objects, err := driver.Objects(n, nf.NetworkNamespace)
	return refsOf(objects), err
}

// remove deletes objects, and waits until they are gone.
func (r *run) remove(ctx context.Context, refs []nf.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	changes, err := r.cluster.Delete(ctx, r.op().Subject, refs)
	r.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	return r.await(ctx, slices.DeleteFunc(slices.Clone(changes), func(c nf.Change) bool { return c.Action != nf.Deleted }), nf.Absent)
}

// await waits until objects have a status.
func (r *run) await(ctx context.Context, targets []nf.Change, wanted nf.Status) error {
	if len(targets) == 0 {
		return nil
	}
	open := map[string]nf.Ref{}
	for _, t := range targets {
		open[t.Key()] = t.Ref
	}
	for h, err := range r.cluster.Watch(ctx, r.op().Subject, targets) {
		switch {
		case err != nil:
			return err
		case h.Status == wanted:
			delete(open, h.Key())
		case h.Status == nf.StatusFailed && wanted == nf.Current:
			return nf.E(nf.Failed, "create", "network "+r.op().Subject.ID, nf.Violations{{Object: h.Ref, Message: h.Message}})
		default:
			r.attempt.Progress(func(s *nf.Step) { s.Report(h.Ref.String() + " is " + string(h.Status) + ": " + h.Message) })
		}
		if len(open) == 0 {
			return nil
		}
	}
	return context.Cause(ctx)
}

// ownedObjects returns the objects of a network with its owner label.
func ownedObjects(d Driver, n nf.Network) ([]*unstructured.Unstructured, error) {
	objects, err := d.Objects(n, nf.NetworkNamespace)
	for _, obj := range objects {
		render.Tag(obj, subjectOf(n.ID))
	}
	return objects, err
}

func refsOf(objects []*unstructured.Unstructured) []nf.Ref {
	var out []nf.Ref
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		out = append(out, nf.Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})
	}
	return out
}

func contains(refs []nf.Ref, ref nf.Ref) bool {
	return slices.ContainsFunc(refs, func(r nf.Ref) bool { return r.Key() == ref.Key() })
}

// union returns the refs of both lists.
func union(a, b []nf.Ref) []nf.Ref {
	out := slices.Clone(a)
	for _, ref := range b {
		if !contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
