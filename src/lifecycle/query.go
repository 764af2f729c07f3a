package lifecycle

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Instance returns one instance.
func (e *Engine) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return e.instances.Get(ctx, id)
}

// Instances returns every instance, ordered by id.
func (e *Engine) Instances(ctx context.Context) ([]nf.Instance, error) {
	return e.instances.List(ctx, "")
}

// Revisions returns the revisions of an instance that are kept, ascending.
func (e *Engine) Revisions(ctx context.Context, id string) ([]nf.Revision, error) {
	if _, err := e.instances.Get(ctx, id); err != nil {
		return nil, err
	}
	return e.revisions.List(ctx, id+"/")
}

// Revision returns one revision of an instance; nf.NotFound when it is not kept.
func (e *Engine) Revision(ctx context.Context, id string, number int) (nf.Revision, error) {
	rev, err := e.revisions.Get(ctx, revisionKey(id, number))
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("revision %d of VNF instance %s", number, id), nil)
	}
	return rev, err
}

// Operation returns one operation.
func (e *Engine) Operation(ctx context.Context, id string) (nf.Operation, error) {
	return e.operations.Get(ctx, id)
}

// Operations returns every operation, in the order they were accepted.
func (e *Engine) Operations(ctx context.Context) ([]nf.Operation, error) {
	return e.operations.List(ctx, "")
}

// Changes returns what an operation has done to objects so far, step by step.
func (e *Engine) Changes(ctx context.Context, id string) ([]nf.Change, error) {
	if _, err := e.operations.Get(ctx, id); err != nil {
		return nil, err
	}
	steps, err := e.changes.List(ctx, id+"/")
	if err != nil {
		return nil, fmt.Errorf("cannot read the changes of operation %s: %w", id, err)
	}
	return slices.Concat(steps...), nil
}

// followPause is how often an operation is looked at that another replica runs.
const followPause = time.Second

// Follow yields the operation as it is, and again whenever it changes, until it
// is final, the loop stops, the context ends (which is not an error), or Run
// has returned. What another replica does is seen within a second. The caller's
// context has no part in the operation itself.
func (e *Engine) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		leave := e.feed.follow(id)
		defer leave()
		// Listening began first: what is published after this read is not lost.
		told := nf.Operation{}
		op, outdated, err := e.latest(ctx, id, true)
		for {
			if err != nil {
				if ctx.Err() == nil || told.ID == "" {
					yield(nf.Operation{}, err)
				}
				return
			}
			if !reflect.DeepEqual(op, told) && !yield(op, nil) || op.State.Final() {
				return
			}
			told = op
			if !e.awaitChange(ctx, outdated) {
				return
			}
			op, outdated, err = e.latest(ctx, id, !e.owns(id))
		}
	}
}

// latest returns an operation as it is, and a channel that closes when something
// newer is published here. What is published here is enough where it runs here.
func (e *Engine) latest(ctx context.Context, id string, read bool) (nf.Operation, <-chan struct{}, error) {
	op, published, outdated := e.feed.latest(id)
	if published && (op.State.Final() || !read) {
		return op, outdated, nil
	}
	op, err := e.operations.Get(ctx, id)
	return op, outdated, err
}

// awaitChange waits until something is published, or for a while; false when
// nobody wants to know any more.
func (e *Engine) awaitChange(ctx context.Context, outdated <-chan struct{}) bool {
	timer := time.NewTimer(followPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-e.stopped:
		return false
	case <-outdated:
	case <-timer.C:
	}
	return true
}

// Plan returns what is in force of an instance, as it was applied; nf.Conflict
// when it has never been brought up.
func (e *Engine) Plan(ctx context.Context, id string) (render.Plan, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return render.Plan{}, err
	}
	plan, _, err := e.planInForce(ctx, in)
	return plan, err
}

// Health returns the present status of every object in an instance's inventory,
// read from the region; not of what its hooks have made.
func (e *Engine) Health(ctx context.Context, id string) ([]nf.Health, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	inventory := lasting(in.Inventory)
	if len(inventory) == 0 {
		return nil, nil
	}
	cluster, err := e.cfg.Open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return nil, err
	}
	refs := make([]nf.Ref, len(inventory))
	for i, it := range inventory {
		refs[i] = it.Ref
	}
	health, err := cluster.Health(ctx, in.ID, refs)
	if err != nil {
		return nil, err
	}
	secrets := secretsOf(inForce(in))
	for i := range health {
		health[i].Message = secrets.Text(health[i].Message)
		if inventory[i].Passing {
			health[i] = passed(health[i])
		}
	}
	return health, nil
}
