package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Test accepts a run of the test hooks of an instance's package, one after
// another, and returns its queued operation. Every test is run, whatever came of
// the others; the operation fails when one of them did. What the tests made is
// deleted at the end, and nothing else of the instance changes. It is
// nf.Conflict when the instance has never been brought up or its package has no
// tests, and otherwise fails as Upgrade does.
func (e *Engine) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.test(ctx, id, req) })
}

func (e *Engine) test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return nf.Operation{}, err
	}
	if err := free("test", in); err != nil {
		return nf.Operation{}, err
	}
	if err := req.Options.Validate(); err != nil {
		return nf.Operation{}, err
	}
	plan, _, err := e.planInForce(ctx, in)
	if err != nil {
		return nf.Operation{}, err
	}
	if len(plan.HooksOf(render.TestRun)) == 0 {
		return nf.Operation{}, nf.E(nf.Conflict, "test", "VNF instance "+id, errors.New("its package has no test hooks"))
	}
	ctx, done := e.detached(ctx)
	defer done()
	req.OnFailure = nf.Keep // there is nothing to go back to
	op := e.newOperation(nf.Test, targetOf(in, nf.Spec{}), req.Options)
	return e.bare(ctx, in, op, in.State)
}

// planInForce returns what is in force of an instance, with its revision.
func (e *Engine) planInForce(ctx context.Context, in nf.Instance) (render.Plan, nf.Revision, error) {
	if in.Revision == 0 {
		return render.Plan{}, nf.Revision{}, nf.E(nf.Conflict, "use", "VNF instance "+in.ID, errors.New("it has never been brought up"))
	}
	rev, err := e.revisions.Get(ctx, revisionKey(in.ID, in.Revision))
	if err != nil {
		return render.Plan{}, rev, err
	}
	plan, err := e.loadPlan(ctx, rev.Plan)
	return plan, rev, err
}

// bare records an operation that brings no revision, and locks the instance.
func (e *Engine) bare(ctx context.Context, in nf.Instance, op nf.Operation, state nf.InstanceState) (nf.Operation, error) {
	replica, err := e.keepRequest(ctx, op)
	if err != nil {
		return nf.Operation{}, err
	}
	err = e.enlist(ctx, op, replica)
	if err == nil {
		err = e.operations.Insert(ctx, op.ID, op)
	}
	if err != nil {
		e.discard(ctx, op)
		return nf.Operation{}, err
	}
	return e.accept(ctx, op, e.lock(ctx, in, op, state))
}

// trial returns the steps of a test.
func (r *run) trial(ctx context.Context) ([]step, error) {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return nil, recordError(err)
	}
	if r.plan, _, err = r.planInForce(ctx, in); err != nil {
		return nil, recordError(err)
	}
	var refs []nf.Ref
	var steps []step
	// A test that could not be made is not waited for.
	for _, s := range r.hooks("", render.TestRun) {
		making := strings.Replace(s.name, "run ", "make ", 1)
		steps = append(steps, step{s.name, func(ctx context.Context) error {
			if slices.ContainsFunc(r.op.Steps, func(was nf.Step) bool { return was.Name == making && was.Name != s.name && was.Failed }) {
				return nil
			}
			return r.try(ctx, s)
		}})
	}
	for _, h := range r.plan.HooksOf(render.TestRun) {
		refs = append(refs, refOf(h.Object))
	}
	return append(steps,
		step{"clear what the tests made", func(ctx context.Context) error { return r.discard(ctx, refs) }},
		step{"finish", r.finishTrial}), nil
}

// try does a step of a test, and goes on when the test fails.
func (r *run) try(ctx context.Context, s step) error {
	err := s.do(ctx)
	if kind := nf.KindOf(err); err == nil || kind != nf.Failed && kind != nf.Timeout && kind != nf.Invalid && kind != nf.Conflict || ctx.Err() != nil {
		return err
	}
	message := r.secrets.Text(err.Error())
	r.note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Failed, step.Message = true, message
	})
	return nil
}

// finishTrial unlocks the instance, and fails when a test has.
func (r *run) finishTrial(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := r.unlock(ctx, func(*nf.Instance) {}); err != nil {
		return err
	}
	var v nf.Violations
	for _, s := range r.op.Steps {
		if s.Failed {
			v = append(v, nf.Violation{Field: s.Name, Message: s.Message})
		}
	}
	if len(v) == 0 {
		return nil
	}
	return nf.E(nf.Failed, "test", fmt.Sprintf("VNF instance %s", r.op.Instance), v)
}
