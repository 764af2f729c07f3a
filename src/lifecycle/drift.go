package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Drift returns an instance and those of its objects that differ from the active
// revision, with the fields that actions have set. If keys are given, only the objects
// with these (nf.Ref.Key) are compared. An object that Kubernetes deletes when it is
// done is not missing. Drift returns nf.Busy while an operation is running, and
// nf.Conflict unless the instance is ready.
func (e *Engine) Drift(ctx context.Context, id string, keys []string) (nf.Instance, []nf.Drift, error) {
	in, err := e.preparer.actable(ctx, id, nf.ActRequest{Verb: nf.Correct})
	if err != nil {
		return in, nil, err
	}
	drifts, err := e.preparer.drifts(ctx, in, func(ref nf.Ref) bool { return keys == nil || slices.Contains(keys, ref.Key()) })
	return in, drifts, err
}

// Correct accepts the correction of objects of an instance, as Drift has returned it.
// It returns the queued operation, and false if the objects do not differ any longer.
// The operation does not wait until the objects are ready, and what it has corrected
// stays if it fails. The instance's record counts the corrections. Correct returns
// nf.Conflict if the instance has changed in the meantime, nf.Busy if an operation is
// running on it.
func (e *Engine) Correct(ctx context.Context, seen nf.Instance, refs []nf.Ref) (nf.Operation, bool, error) {
	drifts, err := e.preparer.drifts(ctx, seen, func(ref nf.Ref) bool {
		return slices.ContainsFunc(refs, func(r nf.Ref) bool { return r.Key() == ref.Key() })
	})
	if err != nil {
		return nf.Operation{}, false, err
	}
	task, corrected := nf.HealTask{}, []nf.Ref(nil)
	for _, d := range drifts {
		switch {
		case d.Missing:
			task.Missing = append(task.Missing, d.Ref)
		case d.Message == "":
			task.Drifted = append(task.Drifted, d.Ref)
		default:
			continue
		}
		corrected = append(corrected, d.Ref)
	}
	if len(corrected) == 0 {
		return nf.Operation{}, false, nil
	}
	op, err := e.acceptor.accept(ctx, nf.RequestKey{}, func() (request, error) {
		r := request{seen: &seen, state: nf.Ready}
		r.op = e.acceptor.newOperation(nf.Correct, targetOf(seen, nf.Spec{}), nf.Options{OnFailure: nf.Keep, NoWait: true})
		r.op.Instance.Heal = task
		r.edit = func(in *nf.Instance) { in.Corrections = nf.CountCorrections(in.Corrections, corrected, r.op.Accepted) }
		return r, nil
	})
	return op, err == nil, err
}

// drifts compares the objects of an instance that are wanted with its active revision.
func (pr *preparer) drifts(ctx context.Context, in nf.Instance, wanted func(nf.Ref) bool) ([]nf.Drift, error) {
	plan, _, err := pr.records.planInForce(ctx, in)
	if err != nil {
		return nil, err
	}
	tune(&plan, in, nf.Rollback)
	passing := map[string]bool{}
	for _, it := range itemsOf(plan, nil) {
		passing[it.Key()] = it.Passing
	}
	var objects []*unstructured.Unstructured
	var refs []nf.Ref
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if ref := nf.RefOf(obj.Object); !obj.Shared && !isNamespace(ref) && wanted(ref) {
				objects, refs = append(objects, obj.Object), append(refs, ref)
			}
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	cluster, err := pr.permitted(ctx, in, refs)
	if err != nil {
		return nil, err
	}
	redactor := newRedactor(inForce(in))
	found, err := cluster.Drift(ctx, subjectOf(in.ID), objects, in.Drift.Ignore)
	if err != nil {
		return nil, redactor.error(err)
	}
	found = slices.DeleteFunc(found, func(d nf.Drift) bool { return !d.Any() || d.Missing && passing[d.Key()] })
	redactor.drifts(found)
	return found, nil
}

// isCorrection reports whether the operations of a verb only bring objects back to
// what they should be: what they have done stays, and the instance remains ready.
func isCorrection(verb nf.Verb) bool { return verb == nf.Heal || verb == nf.Correct }

// changesOf returns what a heal changes of objects that have drifted.
func changesOf(drifts []nf.Drift) (refs []nf.Ref, changes []nf.Change) {
	for _, d := range drifts {
		if d.Missing || d.Message != "" {
			continue
		}
		change := nf.Change{Ref: d.Ref, Action: nf.Configured}
		for _, f := range d.Fields {
			change.Fields = append(change.Fields, f.Field())
			if f.Manager != "" && change.Message == "" {
				change.Message = fmt.Sprintf("%s was changed by %s", f.Path, f.Manager)
			}
		}
		refs, changes = append(refs, d.Ref), append(changes, change)
	}
	return refs, changes
}
