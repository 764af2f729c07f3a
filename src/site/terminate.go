package site

import (
	"context"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// terminate terminates the instances that the request names, one after another.
func (r *run) terminate(ctx context.Context) error {
	for _, id := range r.op().Site.Instances {
		if err := r.say(ctx, "", "%s is being terminated", nf.Mention(id)); err != nil {
			return err
		}
		if err := r.terminateOne(ctx, id); err != nil {
			return nf.About(id, err)
		}
	}
	return nil
}

// terminateOne terminates an instance and waits until it is deleted. An
// operation in progress may be a termination that an earlier process started.
func (r *run) terminateOne(ctx context.Context, id string) error {
	for {
		op, err := r.s.cfg.Instances.Terminate(ctx, id)
		other := nf.OperationOf(err)
		switch {
		case err == nil:
			return r.succeeded(ctx, op)
		case nf.KindOf(err) == nf.NotFound:
			return nil
		case nf.KindOf(err) != nf.Busy || other == "":
			return err
		}
		if err := r.say(ctx, "", "waiting for operation %s on %s", other, nf.Mention(id)); err != nil {
			return err
		}
		if _, err := r.await(ctx, other); err != nil {
			return fmt.Errorf("cannot terminate VNF instance %s: %w", id, err)
		}
	}
}

// succeeded waits until an operation ends. It returns an error if the operation
// did not succeed.
func (r *run) succeeded(ctx context.Context, op nf.Operation) error {
	ended, err := r.await(ctx, op.ID)
	switch {
	case err != nil:
		return fmt.Errorf("cannot %s VNF instance %s: %w", op.Verb, op.Subject.ID, err)
	case ended.State == nf.Succeeded:
		return nil
	case ended.Failure != nil:
		return ended.Err()
	}
	return nf.E(nf.Failed, string(op.Verb), "VNF instance "+op.Subject.ID, fmt.Errorf("operation %s is %s", op.ID, ended.State))
}

// await waits until an operation ends, and leaves the place of this one to others
// in the meantime.
func (r *run) await(ctx context.Context, operation string) (nf.Operation, error) {
	defer r.attempt.Yield()()
	return r.s.cfg.Instances.Wait(ctx, operation)
}
