package lifecycle

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instance returns one instance.
func (e *Engine) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return e.instances.Get(ctx, id)
}

// Instances returns every instance, ordered by id.
func (e *Engine) Instances(ctx context.Context) ([]nf.Instance, error) {
	return e.instances.List(ctx, "")
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

// Follow yields the operation as it is, and again whenever it changes, until it
// is final, the loop stops, the context ends (which is not an error), or Run
// has returned. The caller's context has no part in the operation itself.
func (e *Engine) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		leave := e.feed.follow(id)
		defer leave()
		// Listening began first: what is published after this read is not lost.
		op, err := e.operations.Get(ctx, id)
		if err != nil {
			yield(nf.Operation{}, err)
			return
		}
		for {
			latest, published, outdated := e.feed.latest(id)
			if published && !op.State.Final() {
				op = latest
			}
			if !yield(op, nil) || op.State.Final() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-e.stopped:
				return
			case <-outdated:
			}
		}
	}
}

// Health returns the present status of every object in an instance's inventory,
// read from the region.
func (e *Engine) Health(ctx context.Context, id string) ([]nf.Health, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(in.Inventory) == 0 {
		return nil, nil
	}
	cluster, err := e.cfg.Open(ctx, in.Region)
	if err != nil {
		return nil, err
	}
	refs := make([]nf.Ref, len(in.Inventory))
	for i, it := range in.Inventory {
		refs[i] = it.Ref
	}
	health, err := cluster.Health(ctx, in.ID, refs)
	if err != nil {
		return nil, err
	}
	secrets := secretsOf(inForce(in))
	for i := range health {
		health[i].Message = secrets.text(health[i].Message)
		if in.Inventory[i].Passing {
			health[i] = passed(health[i])
		}
	}
	return health, nil
}
