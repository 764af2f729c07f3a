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

// terminate starts to terminate an instance and the leftovers of its moves, and
// returns the operation of the instance, without an ID if nothing is left of it. It cancels a running test, an instantiation, and
// an operation of which only hooks are left. The policy is for the volume claims of its
// StatefulSets; if it is empty, that of the instance applies.
func (t *terminator) terminate(r *http.Request, v vnf, claims nf.ClaimPolicy) (nf.Operation, error) {
	if err := t.engine.MayTerminate(r.Context(), v.ID); err != nil {
		return nf.Operation{}, err
	}
	cancelled, err := t.cancel(r.Context(), v.Instance)
	if err != nil {
		return nf.Operation{}, err
	}
	op, err := t.start(r, v.ID, claims)
	if cancelled && nf.KindOf(err) == nf.NotFound {
		err = nil // the undoing of its instantiation has deleted it
	}
	if err != nil {
		return op, err
	}
	leaving := v.alias.Leaving
	if v.alias.Coming != "" {
		leaving = append(slices.Clone(leaving), v.alias.Coming)
	}
	return op, t.leave(r, leaving, claims)
}

// cancel cancels the running operation of an instance if the termination need not wait for
// it, and reports whether it is cancelled.
func (t *terminator) cancel(ctx context.Context, in nf.Instance) (bool, error) {
	if in.Operation == "" {
		return false, nil
	}
	op, err := t.vnfs.latest(ctx, in)
	if err != nil || op.State.Final() || op.Cancel {
		return op.Cancel, err
	}
	if op.Verb != nf.Test && op.Verb != nf.Instantiate && !northbound.Applied(op) {
		return false, nil
	}
	_, err = t.runner.operations.Cancel(ctx, op.ID)
	if nf.KindOf(err) == nf.Conflict { // it has ended
		return false, nil
	}
	return err == nil, err
}

// ended waits until a termination has ended, and reports whether it has. It
// returns the error of one that has failed.
func (t *terminator) ended(ctx context.Context, op nf.Operation) (bool, error) {
	if op.ID == "" {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(removalWait, t.runner.longest))
	defer cancel()
	op, finished, err := northbound.Await(ctx, op, t.runner.operations.Follow, northbound.Ended)
	if finished {
		err = failure(op)
	}
	return finished, err
}

// leave starts to terminate instances that no id points to any longer. The policy
// is for the volume claims of their StatefulSets, as in terminate.
func (t *terminator) leave(r *http.Request, engines []string, claims nf.ClaimPolicy) error {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(engines))) {
		in, err := t.vnfs.instances.Instance(r.Context(), id)
		if err == nil && in.State != nf.Terminating {
			_, err = t.start(r, id, claims)
		}
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// start starts to terminate one instance.
func (t *terminator) start(r *http.Request, engine string, claims nf.ClaimPolicy) (nf.Operation, error) {
	return t.runner.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return t.engine.Terminate(ctx, engine, nf.TerminateRequest{Claims: claims, Options: nf.Options{Trace: t.runner.trace(r)}})
	})
}
