package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
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
	return append(steps, deleteTests(w), w.step(nf.PhaseFinish, w.finishTests)), nil
}

// deleteTests returns the step that deletes the objects of tests.
func deleteTests(w *work) operation.Step {
	var refs []nf.Ref
	for _, h := range w.run.plan.HooksOf(nf.TestRun) {
		refs = append(refs, nf.RefOf(h.Object))
	}
	return w.step(nf.PhaseDeleteTestObjects, func(ctx context.Context) error { return w.applier.discardHooks(ctx, refs) })
}

// leavesTests reports whether a test operation has ended, for example by a cancellation,
// before it has deleted objects that it may have created.
func leavesTests(op nf.Operation) bool {
	created := false
	for _, s := range op.Steps {
		switch {
		case s.Phase == nf.PhaseHookCreate:
			created = true
		case s.Phase == nf.PhaseDeleteTestObjects && !s.Finished.IsZero() && !s.Failed:
			return false
		}
	}
	return created
}

// undoTestSteps returns the steps that delete the objects of a test operation that has ended
// early, whatever the client wanted to keep.
func undoTestSteps(ctx context.Context, w *work) ([]operation.Step, error) {
	in, err := w.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	if w.run.plan, _, err = w.records.planInForce(ctx, in); err != nil {
		return nil, operation.RecordError(err)
	}
	return []operation.Step{deleteTests(w), w.step(nf.PhaseFinish, func(context.Context) error {
		w.run.unlock(func(*nf.Instance) {})
		return nil
	})}, nil
}

// previewTests returns the changes that the tests of an instance's package make, by a
// dry run.
func (q *requester) previewTests(ctx context.Context, in nf.Instance) (nf.Preview, error) {
	plan, rev, err := q.records.planInForce(ctx, in)
	if err != nil {
		return nf.Preview{}, err
	}
	var objects []*unstructured.Unstructured
	again := map[string]bool{} // they are deleted before they are created
	for _, h := range plan.HooksOf(nf.TestRun) {
		objects = append(objects, h.Object)
		again[nf.RefOf(h.Object).Key()] = h.Discards(render.DiscardBefore)
	}
	cluster, err := q.preparer.open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return nf.Preview{}, err
	}
	redactor := newRedactor(rev)
	changes, err := cluster.Diff(ctx, subjectOf(in.ID), nf.AdoptionSelector{}, objects)
	if err != nil {
		return nf.Preview{}, redactor.error(located(err, plan))
	}
	for i, c := range changes {
		if c.Action != nf.Created && again[c.Key()] {
			changes[i].Action, changes[i].Fields = nf.Recreated, nil
		}
		changes[i].Message = "a test; it is deleted at the end"
	}
	redactor.changes(changes)
	return nf.Preview{Changes: changes}, nil
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
