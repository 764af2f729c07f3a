package onap

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// removalWait is the time that the deletion of a stack waits for its end. SO's
// client waits for a response for 60 s.
const removalWait = 45 * time.Second

// terminator terminates instances.
type terminator struct {
	vnfs   *vnfs
	engine Terminations
	runner *runner
}

// terminate starts to terminate an instance and the leftovers of its moves, and returns the
// operation of the instance, without an ID if nothing is left of it. The policy is for the
// volume claims of its StatefulSets; if it is empty, that of the instance applies.
func (t *terminator) terminate(r *http.Request, v vnf, claims nf.ClaimPolicy) (nf.Operation, error) {
	if err := t.engine.MayTerminate(r.Context(), v.ID); err != nil {
		return nf.Operation{}, err
	}
	leaving := v.alias.Leaving
	if v.alias.Coming != "" {
		leaving = append(slices.Clone(leaving), v.alias.Coming)
	}
	if err := t.leave(r, leaving, claims); err != nil {
		return nf.Operation{}, err
	}
	return t.end(r, v.Instance, claims)
}

// end starts to terminate one instance. A running operation that the termination makes
// useless is cancelled first: a test, the hooks that are left of an operation, and an
// instantiation, whose undoing is the termination; then end returns this operation.
func (t *terminator) end(r *http.Request, in nf.Instance, claims nf.ClaimPolicy) (nf.Operation, error) {
	running, err := t.interrupt(r.Context(), in, claims)
	if err != nil || deletes(running) && !running.State.Final() {
		return running, err
	}
	op, err := t.runner.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return t.engine.Terminate(ctx, in.ID, nf.TerminateRequest{Claims: claims, Options: nf.Options{Trace: t.runner.trace(r)}})
	})
	if deletes(running) && nf.KindOf(err) == nf.NotFound {
		return nf.Operation{}, nil
	}
	return op, err
}

// deletes reports whether an operation is the undoing of an instantiation.
func deletes(op nf.Operation) bool { return op.Verb == nf.Instantiate && op.Undoing }

// interrupt cancels the running operation of an instance, if it is useless before a
// termination, and returns it. It returns an instantiation when its undoing has begun. One
// whose volume claims are to be deleted is not cancelled, because its undoing keeps them.
func (t *terminator) interrupt(ctx context.Context, in nf.Instance, claims nf.ClaimPolicy) (nf.Operation, error) {
	if in.Operation == "" {
		return nf.Operation{}, nil
	}
	op, err := t.vnfs.latest(ctx, in)
	if err != nil || op.State.Final() {
		return op, err
	}
	withdrawn := op.Verb == nf.Instantiate && op.OnFailure == nf.Undo && !onlyHooks(op) && !nf.TerminateRequest{Claims: claims}.DeletesClaims(in)
	if !withdrawn && op.Verb != nf.Test && !onlyHooks(op) {
		return nf.Operation{}, nil
	}
	if !op.Cancel && !op.Undoing {
		_, err = t.runner.operations.Cancel(ctx, op.ID)
		switch kind := nf.KindOf(err); {
		case err == nil, kind == nf.Conflict: // it has ended, or is being undone
		case kind == nf.Forbidden: // the end of the operation is waited for
			return nf.Operation{}, nil
		default:
			return nf.Operation{}, err
		}
	}
	if !withdrawn {
		return op, nil
	}
	wait, cancel := context.WithTimeout(ctx, min(endingWait, t.runner.longest))
	defer cancel()
	op, _, err = northbound.Await(wait, op, t.runner.operations.Follow, func(op nf.Operation) bool { return op.Undoing })
	return op, err
}

// onlyHooks reports whether an operation that does not wait for readiness has done
// everything except the hooks that follow.
func onlyHooks(op nf.Operation) bool {
	return op.Instance.NoWait && northbound.Applied(op) && (op.Verb == nf.Instantiate || pruned(op))
}

// ended waits until a termination has ended, and reports whether it has. It
// returns the error of one that has failed.
func (t *terminator) ended(ctx context.Context, op nf.Operation) (bool, error) {
	if op.ID == "" {
		return true, nil
	}
	wait, cancel := context.WithTimeout(ctx, min(removalWait, t.runner.longest))
	defer cancel()
	op, finished, err := northbound.Await(wait, op, t.runner.operations.Follow, northbound.Ended)
	if finished {
		err = failure(op)
	}
	if finished && deletes(op) { // it has failed, and its undoing has deleted the instance, unless that has failed, too
		if _, look := t.vnfs.instances.Instance(ctx, op.Subject.ID); nf.KindOf(look) == nf.NotFound {
			err = nil
		}
	}
	return finished, err
}

// leave starts to terminate instances that no id points to any longer. The policy
// is for the volume claims of their StatefulSets, as in terminate.
func (t *terminator) leave(r *http.Request, engines []string, claims nf.ClaimPolicy) error {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(engines))) {
		in, err := t.vnfs.instances.Instance(r.Context(), id)
		if err == nil && in.State != nf.Terminating {
			_, err = t.end(r, in, claims)
		}
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
