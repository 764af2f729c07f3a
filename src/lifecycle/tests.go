package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// testSteps returns the steps of a test operation.
func (w *work) testSteps(ctx context.Context) ([]operation.Step, error) {
	in, err := w.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	if w.run.plan, _, err = w.records.planInForce(ctx, in); err != nil {
		return nil, operation.RecordError(err)
	}
	tenancy, err := w.namespaces.tenancy(ctx)
	if err != nil {
		return nil, err
	}
	var refs []nf.Ref
	var steps []operation.Step
	if !tenancy.Whole {
		steps = append(steps, w.step(nf.PhasePermit, w.namespaces.permitTests))
	}
	// A test that could not be created is not waited for.
	for _, s := range w.hookSteps(nf.TestRun) {
		making := s.StepID
		making.Phase = nf.PhaseHookCreate
		do := s.Do
		s.Do = func(ctx context.Context) error {
			unmade := func(was nf.Step) bool { return was.StepID == making && was.Failed }
			if s.Phase == nf.PhaseHookWait && slices.ContainsFunc(w.run.op().Steps, unmade) {
				return nil
			}
			return w.runTest(ctx, do)
		}
		steps = append(steps, s)
	}
	for _, h := range w.run.plan.HooksOf(nf.TestRun) {
		refs = append(refs, nf.RefOf(h.Object))
	}
	return append(steps,
		w.step(nf.PhaseDeleteTestObjects, func(ctx context.Context) error { return w.applier.discardHooks(ctx, refs) }),
		w.step(nf.PhaseFinish, w.finishTests)), nil
}

// runTest runs a step of a test. If the test fails, runTest records that and
// returns nil, so that the other tests run.
func (w *work) runTest(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if kind := nf.KindOf(err); err == nil || kind != nf.Failed && kind != nf.Timeout && kind != nf.Invalid && kind != nf.Conflict || ctx.Err() != nil {
		return err
	}
	said := nf.TextOf(err).Map(w.run.redactor.values.Text)
	w.run.attempt.Note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Failed = true
		step.Report(said.Message, said.Mentions...)
	})
	return nil
}

// finishTests unlocks the instance, or returns nf.Failed if a test has failed:
// then Release unlocks it, after the failure is recorded.
func (w *work) finishTests(context.Context) error {
	var v nf.Violations
	for _, s := range w.run.op().Steps {
		if s.Failed {
			v = append(v, nf.Violation{Field: s.Title(), Message: s.Message, Mentions: s.Mentions})
		}
	}
	if len(v) == 0 {
		w.run.unlock(func(*nf.Instance) {})
		return nil
	}
	return nf.E(nf.Failed, "test", fmt.Sprintf("VNF instance %s", w.run.op().Subject.ID), v)
}
