package onap

import (
	"context"
	"net/http"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// terminator terminates instances.
type terminator struct {
	vnfs   *vnfs
	engine Terminations
	runner *runner
}

// terminate starts to terminate an instance and the leftovers of its moves. It
// cancels a running test. If volumes is true, the volume claims of its
// StatefulSets are deleted, too.
func (t *terminator) terminate(r *http.Request, v vnf, volumes bool) error {
	if err := t.engine.MayTerminate(r.Context(), v.ID); err != nil {
		return err
	}
	if v.Operation != "" {
		op, err := t.vnfs.latest(r.Context(), v.Instance)
		if err == nil && op.Verb == nf.Test && !ending(op) {
			_, err = t.runner.operations.Cancel(r.Context(), op.ID)
		}
		if err != nil && nf.KindOf(err) != nf.Conflict { // the operation has ended
			return err
		}
	}
	if err := t.start(r, v.ID, volumes); err != nil {
		return err
	}
	leaving := v.alias.Leaving
	if v.alias.Coming != "" {
		leaving = append(slices.Clone(leaving), v.alias.Coming)
	}
	return t.leave(r, leaving, volumes)
}

// leave starts to terminate instances that no id points to any longer. If
// volumes is true, the volume claims of their StatefulSets are deleted, too.
func (t *terminator) leave(r *http.Request, engines []string, volumes bool) error {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(engines))) {
		in, err := t.vnfs.instances.Instance(r.Context(), id)
		if err == nil && in.State != nf.Terminating {
			err = t.start(r, id, volumes)
		}
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// start starts to terminate one instance.
func (t *terminator) start(r *http.Request, engine string, volumes bool) error {
	var claims nf.ClaimPolicy
	if volumes {
		claims = nf.ClaimsDelete
	}
	_, err := t.runner.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return t.engine.Terminate(ctx, engine, nf.TerminateRequest{Claims: claims, Options: nf.Options{Trace: t.runner.trace(r)}})
	})
	return err
}
