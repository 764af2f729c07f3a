package lifecycle

import (
	"context"
	"fmt"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Instance returns one instance.
func (e *Engine) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return e.records.instances.Get(ctx, id)
}

// Using returns the workloads of an instance whose pods are attached to the network with
// a name. It returns nf.NotFound if the instance does not exist.
func (e *Engine) Using(ctx context.Context, id, network string) ([]nf.SharedWorkload, error) {
	in, err := e.records.instances.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var selectors []string
	for _, a := range in.Attachments() {
		if a.Network == network {
			selectors = append(selectors, a.Workload)
		}
	}
	if len(selectors) == 0 {
		return nil, nil
	}
	plan, err := e.records.lastPlan(ctx, in)
	if in.Revision == 0 && nf.KindOf(err) == nf.Conflict {
		return nil, nil // it has no plan yet, so it has no workloads either
	}
	if err != nil {
		return nil, err
	}
	var out []nf.SharedWorkload
	for _, ref := range plan.Selected(selectors) {
		out = append(out, nf.SharedWorkload{Ref: ref, Restartable: restartable(ref)})
	}
	return out, nil
}

// Instances returns every instance, ordered by id.
func (e *Engine) Instances(ctx context.Context) ([]nf.Instance, error) {
	return e.records.instances.List(ctx, "")
}

// InstancesIn yields the instances in the scopes of the cursor, and in the region unless
// that is empty, after the cursor and ordered by id. It does not read the others. If the
// store has an index, InstancesIn also leaves out the instances without the attributes
// of the cursor.
func (e *Engine) InstancesIn(ctx context.Context, region string, from nf.Cursor) iter.Seq2[nf.Instance, error] {
	if region != "" {
		from = from.And(nf.Attribute{Name: nf.AttributeRegion, Value: region})
	}
	if found, ok := e.records.instances.Find(ctx, from); ok {
		return found
	}
	if region == "" && from.In == nil {
		return e.records.instances.After(ctx, "", from)
	}
	// An instance holds its region from before its record is written until the record
	// is about to be deleted.
	ids := e.records.holds.HolderIDs(ctx, nf.Holding{Region: region}, func(kind nf.SubjectKind, s nf.Scope) bool {
		return kind == nf.InstanceSubject && (from.In == nil || from.In(s))
	}, from)
	return e.records.instances.Existing(ctx, ids) // the others are being created or deleted
}

// Revisions returns the revisions of an instance that are kept, ascending.
func (e *Engine) Revisions(ctx context.Context, id string) ([]nf.Revision, error) {
	return e.records.revisionsOf(ctx, id)
}

// Revision returns one revision of an instance. It returns nf.NotFound if the
// revision is not kept.
func (e *Engine) Revision(ctx context.Context, id string, number int) (nf.Revision, error) {
	return e.records.revision(ctx, id, number)
}

// Operation returns one operation on an instance.
func (e *Engine) Operation(ctx context.Context, id string) (nf.Operation, error) {
	return e.records.ledger.Of(ctx, subjectOf(""), id)
}

// Operations returns the operations on an instance, or on all if the id is empty,
// in the order they were accepted.
func (e *Engine) Operations(ctx context.Context, instance string) ([]nf.Operation, error) {
	return e.records.ledger.List(ctx, subjectOf(instance))
}

// OperationsFrom yields the operations of Operations after the cursor.
func (e *Engine) OperationsFrom(ctx context.Context, instance string, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	return e.records.ledger.From(ctx, subjectOf(instance), from)
}

// OperationsIn yields the operations in the scopes of the cursor, after it and in the
// order they were accepted. It does not read the others.
func (e *Engine) OperationsIn(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	return e.records.ledger.In(ctx, nf.InstanceSubject, from)
}

// Changes returns the changes that an operation has made to objects so far, by
// step.
func (e *Engine) Changes(ctx context.Context, id string) ([]nf.Change, error) {
	if _, err := e.Operation(ctx, id); err != nil {
		return nil, err
	}
	return e.records.ledger.Changes(ctx, id)
}

// Follow yields the operation at once and whenever it changes; see
// operation.Ledger.
func (e *Engine) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if _, err := e.Operation(ctx, id); err != nil {
			yield(nf.Operation{}, err)
			return
		}
		e.records.ledger.Follow(ctx, id)(yield)
	}
}

// Wait waits until an operation ends, and returns it. If the context ends first,
// it returns the operation as it was last seen and the context's cause. It
// returns an error if Run returns first.
func (e *Engine) Wait(ctx context.Context, id string) (nf.Operation, error) {
	var op nf.Operation
	for latest, err := range e.Follow(ctx, id) {
		if err != nil {
			return op, err
		}
		op = latest
	}
	switch {
	case op.State.Final():
		return op, nil
	case ctx.Err() != nil:
		return op, context.Cause(ctx)
	}
	return op, fmt.Errorf("cannot follow operation %s to its end: the service is shutting down", id)
}

// Plan returns the plan in force of an instance, as it was applied. Before the
// first revision is in force, it returns the plan of the last operation. It
// returns nf.Conflict if that operation has none, or is no longer kept.
func (e *Engine) Plan(ctx context.Context, id string) (render.Plan, error) {
	in, err := e.records.instances.Get(ctx, id)
	if err != nil {
		return render.Plan{}, err
	}
	return e.records.lastPlan(ctx, in)
}

// Pods returns the present pods of an instance, as read from the region.
func (e *Engine) Pods(ctx context.Context, id string) ([]nf.Pod, error) {
	in, cluster, refs, err := e.records.judged(ctx, e.open, id)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	pods, err := cluster.Pods(ctx, subjectOf(id), refs)
	redactor := newRedactor(inForce(in))
	for i := range pods {
		pods[i].Message = redactor.values.Text(pods[i].Message)
	}
	return pods, err
}

// judged returns an instance, its cluster, and the objects whose health is its own.
func (s *records) judged(ctx context.Context, open OpenCluster, id string) (in nf.Instance, c Cluster, refs []nf.Ref, err error) {
	if in, err = s.instances.Get(ctx, id); err != nil {
		return in, nil, nil, err
	}
	for _, it := range nf.Judged(in.Inventory) {
		refs = append(refs, it.Ref)
	}
	if len(refs) == 0 {
		return in, nil, nil, nil
	}
	c, err = open(ctx, in.Region, nf.ProjectOf(in.Project))
	return in, c, refs, err
}

// Health returns the present status of every object in an instance's inventory,
// except hook objects and volumes, as read from the region.
func (e *Engine) Health(ctx context.Context, id string) ([]nf.Health, error) {
	in, cluster, refs, err := e.records.judged(ctx, e.open, id)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	inventory := nf.Judged(in.Inventory)
	health, err := cluster.Health(ctx, subjectOf(in.ID), refs)
	if err != nil {
		return nil, err
	}
	redactor := newRedactor(inForce(in))
	for i := range health {
		health[i].Message = redactor.values.Text(health[i].Message)
		health[i] = inventory[i].Judge(health[i])
	}
	return health, nil
}
