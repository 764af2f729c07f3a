package lifecycle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Act accepts an action on the workloads of an instance, and returns the queued
// operation. The instance must be ready, otherwise Act returns nf.Conflict. A heal or a
// migration that fails is kept, and does not change the instance's state. Act returns
// nf.NotFound for a workload or a pod that the instance does not have, nf.Unsupported for
// a workload that cannot do it, and nf.Conflict for a number of replicas that an
// autoscaler, or another owner, sets, and for a pod that nothing replaces. It returns
// nf.Busy if an operation is running on the instance.
func (e *Engine) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	return e.acceptor.accept(ctx, req.Key, func() (request, error) {
		r, _, err := e.requests.action(ctx, id, req)
		return r, err
	})
}

// PreviewAct returns the changes that Act would make in the region, or fails as it
// would.
func (e *Engine) PreviewAct(ctx context.Context, id string, req nf.ActRequest) (nf.Preview, error) {
	_, changes, err := e.requests.action(ctx, id, req)
	return nf.Preview{Changes: changes}, err
}

// action prepares an action, and returns the changes that it makes.
func (q *requester) action(ctx context.Context, id string, req nf.ActRequest) (r request, changes []nf.Change, err error) {
	in, err := q.preparer.actable(ctx, id, req)
	if err != nil {
		return r, nil, err
	}
	r.seen, r.state = &in, nf.Updating
	if stays(req.Verb) {
		r.state, req.OnFailure = nf.Ready, nf.Keep
	}
	r.op = q.acceptor.newOperation(req.Verb, targetOf(in, nf.Spec{}), req.Options)
	if req.Verb == nf.Heal {
		r.op.Instance.Heal, changes, err = q.preparer.healing(ctx, in, req)
		if req.Drift {
			r.edit = func(in *nf.Instance) { in.Corrections = nil } // a user has looked at it
		}
	} else {
		r.op.Instance.Settings, changes, err = q.preparer.settings(ctx, in, req, r.op.Accepted)
	}
	return r, changes, err
}

// actAgain returns the request for an action that a failed operation has prepared:
// the same, or the reverse.
func (a *acceptor) actAgain(in nf.Instance, failed nf.Operation, opts nf.Options, reverse bool) request {
	op := a.newOperation(failed.Verb, targetOf(in, nf.Spec{}), opts)
	op.Instance.Settings = failed.Instance.Settings
	if reverse {
		op.Instance.Settings = reversed(op.Instance.Settings)
	} else {
		op.Instance.Repeats = failed.ID
	}
	return request{op: op, seen: &in, state: nf.Updating}
}

// reversed returns the settings that undo others, as far as they can be undone.
func reversed(settings []nf.Setting) []nf.Setting {
	var out []nf.Setting
	for _, s := range settings {
		if reverse, ok := s.Reversed(); ok {
			out = append(out, reverse)
		}
	}
	return out
}

// isAct reports whether the operations of a verb set fields of objects.
func isAct(verb nf.Verb) bool {
	switch verb {
	case nf.Scale, nf.Restart, nf.Start, nf.Stop, nf.Migrate:
		return true
	default:
		return false
	}
}

// stays reports whether the operations of a verb have no undo, and leave the instance
// as it was, or better, if they fail.
func stays(verb nf.Verb) bool { return isCorrection(verb) || verb == nf.Migrate }

// actable returns an instance that an action is possible on.
func (pr *preparer) actable(ctx context.Context, id string, req nf.ActRequest) (nf.Instance, error) {
	in, err := pr.records.idle(ctx, string(req.Verb), id)
	if err != nil {
		return in, err
	}
	if err := req.Validate(); err != nil {
		return in, err
	}
	if in.State != nf.Ready {
		last, err := pr.records.lastChange(ctx, in)
		if err != nil {
			return in, err
		}
		return in, nf.E(nf.Conflict, string(req.Verb), "VNF instance "+id, fmt.Errorf("it is %s: retry or undo operation %s first", in.State, last))
	}
	return in, nil
}

// settings returns the fields that an action sets, and the changes that this makes.
// The API server has checked them in a dry run.
func (pr *preparer) settings(ctx context.Context, in nf.Instance, req nf.ActRequest, at time.Time) ([]nf.Setting, []nf.Change, error) {
	plan, _, err := pr.records.planInForce(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	refs, err := workloads(in, req)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := pr.permitted(ctx, in, refs)
	if err != nil {
		return nil, nil, err
	}
	owner := subjectOf(in.ID)
	var settings []nf.Setting
	switch req.Verb {
	case nf.Scale:
		if settings, err = cluster.Scaling(ctx, owner, placed(req.Scale, refs), req.Force); err == nil {
			err = pr.connectable(ctx, in, plan, settings)
		}
	case nf.Restart:
		settings, err = cluster.Restarting(ctx, owner, refs, nf.RestartValue(at))
	default:
		settings, err = cluster.Machines(ctx, owner, refs, req.Verb)
	}
	var changes []nf.Change
	if err == nil {
		changes, err = trySettings(ctx, cluster, owner, settings)
	}
	if err != nil {
		return nil, nil, newRedactor(inForce(in)).error(err)
	}
	return planned(settings, plan), changes, nil
}

// trySettings returns the changes that settings make, by a dry run.
func trySettings(ctx context.Context, cluster Cluster, owner nf.Subject, settings []nf.Setting) ([]nf.Change, error) {
	changes, err := cluster.Set(ctx, owner, settings, true)
	if err != nil {
		return nil, err
	}
	for i := range changes {
		if changes[i].Action == nf.Configured && !bytes.Equal(settings[i].Value, settings[i].Was) {
			changes[i].Fields = []nf.Field{settings[i].Field()}
		}
	}
	return changes, nil
}

// previewSettings returns what the settings of a repeated or reversed action change.
func (q *requester) previewSettings(ctx context.Context, in nf.Instance, settings []nf.Setting) (nf.Preview, error) {
	cluster, err := q.preparer.open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return nf.Preview{}, err
	}
	changes, err := trySettings(ctx, cluster, subjectOf(in.ID), settings)
	return nf.Preview{Changes: changes}, newRedactor(inForce(in)).error(err)
}

// permitted returns the cluster of an instance, if its project may use the
// namespaces of objects.
func (pr *preparer) permitted(ctx context.Context, in nf.Instance, refs []nf.Ref) (Cluster, error) {
	region, err := pr.catalog.Region(ctx, in.Region)
	if err != nil {
		return nil, err
	}
	cluster, err := pr.open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, ref := range refs {
		if ref.Namespace != "" {
			fields[ref.Namespace] = "workloads"
		}
	}
	return cluster, mayUse(ctx, cluster, region.Tenancy(nf.ProjectOf(in.Project), pr.apart), fields)
}

// workloads returns the objects of a request's workloads.
func workloads(in nf.Instance, req nf.ActRequest) ([]nf.Ref, error) {
	names := req.Workloads
	for _, s := range req.Scale {
		names = append(names, s.Workload)
	}
	items := slices.DeleteFunc(slices.Clone(in.Inventory), func(it nf.Item) bool { return it.Hook || it.Volume })
	var out []nf.Ref
	if len(names) == 0 {
		for _, it := range items {
			if restartable(it.Ref) {
				out = append(out, it.Ref)
			}
		}
		if len(out) == 0 {
			return nil, nf.E(nf.Unsupported, string(req.Verb), "VNF instance "+in.ID, fmt.Errorf("it has no Deployment, StatefulSet or DaemonSet; a VirtualMachine is restarted if it is named"))
		}
		return out, nil
	}
	var v nf.Violations
	for i, name := range names {
		var found []string
		for _, it := range items {
			if it.Names(name) {
				out, found = append(out, it.Ref), append(found, it.Key())
			}
		}
		field := fmt.Sprintf("workloads[%d]", i)
		switch {
		case len(found) == 0:
			v = append(v, nf.Violation{Field: field, Message: fmt.Sprintf("VNF instance %s has no object %q", in.ID, name)})
		case len(found) > 1:
			v = append(v, nf.Violation{Field: field, Message: fmt.Sprintf("%q is one of %s; say which", name, strings.Join(found, ", "))})
		}
	}
	if len(v) > 0 {
		return nil, nf.E(nf.NotFound, string(req.Verb), "workloads", v)
	}
	if again := repeated(names, out); len(again) > 0 {
		return nil, nf.E(nf.Invalid, string(req.Verb), "workloads", again)
	}
	return out, nil
}

// repeated returns a violation for each name of an object that an earlier one names.
func repeated(names []string, refs []nf.Ref) nf.Violations {
	var v nf.Violations
	first := map[string]int{}
	for i, ref := range refs {
		if at, given := first[ref.Key()]; given {
			v = append(v, nf.Violation{Field: fmt.Sprintf("workloads[%d]", i), Message: fmt.Sprintf("%q is the same object as workloads[%d]", names[i], at)})
			continue
		}
		first[ref.Key()] = i
	}
	return v
}

// restartable reports whether an object is of a kind that rolls a changed template
// out to its pods.
func restartable(ref nf.Ref) bool {
	return ref.Group == "apps" && (ref.Kind == "Deployment" || ref.Kind == "StatefulSet" || ref.Kind == "DaemonSet")
}

// placed returns scalings with their objects.
func placed(all []nf.Scaling, refs []nf.Ref) []nf.Scaling {
	out := slices.Clone(all)
	for i := range out {
		out[i].Ref = refs[i]
	}
	return out
}

// planned returns settings with the fields as a plan has them.
func planned(settings []nf.Setting, plan render.Plan) []nf.Setting {
	objects := objectsOf(plan)
	out := slices.Clone(settings)
	for i, s := range out {
		if s.Path == "" {
			continue // nothing of it remains
		}
		out[i].Planned = fieldOf(objects[s.Key()], s.Path)
	}
	return out
}

// objectsOf returns the objects of a plan by their keys.
func objectsOf(plan render.Plan) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, obj := range plan.Objects() {
		out[nf.RefOf(obj).Key()] = obj.Object
	}
	return out
}

// fieldOf returns the field of an object as settings have it.
func fieldOf(object map[string]any, path string) []byte {
	value, _ := nf.At(object, path)
	raw, err := nf.RawOf(value)
	if err != nil {
		return nil // what was decoded can be encoded
	}
	return raw
}

// tune is retune for a plan with the inputs that are in force.
func tune(plan *render.Plan, in nf.Instance, verb nf.Verb) { retune(plan, in, verb, in.Inputs) }

// retune sets the fields of a plan's objects that actions have set. If the plan of a
// change has another value in such a field than the plan that was active when it was
// set, that value takes precedence, and a warning says so; a rollback keeps all. Numbers
// of pods also take precedence if the inputs have other levels of scaling aspects: they
// contain these levels. It returns the settings that remain.
func retune(plan *render.Plan, in nf.Instance, verb nf.Verb, inputs nf.Inputs) (remaining []nf.Setting) {
	objects := objectsOf(*plan)
	scaled := !bytes.Equal(fieldOf(in.Inputs.Parameters, "/"+nf.ScaleParameter), fieldOf(inputs.Parameters, "/"+nf.ScaleParameter))
	for _, s := range in.Settings {
		object := objects[s.Key()]
		if object == nil {
			continue // it is no longer an object of the instance
		}
		is := fieldOf(object, s.Path)
		if verb != nf.Rollback && (!bytes.Equal(is, s.Planned) || scaled && s.Scale && len(is) > 0) {
			if bytes.Equal(is, s.Value) {
				continue // the package has it now
			}
			why := "as the package has changed it from " + orAbsent(s.Planned)
			if bytes.Equal(is, s.Planned) {
				why = "the number of pods at the new levels of scaling aspects"
			}
			plan.Warnings = append(plan.Warnings, fmt.Sprintf("%s: %s becomes %s, %s; it was set to %s", s.Ref, nf.FieldPath(s.Path), orAbsent(is), why, orAbsent(s.Value)))
			continue
		}
		if s.Planned = is; nf.SetAt(object, s.Path, nf.ValueOf(s.Value)) {
			remaining = append(remaining, s)
		}
	}
	return remaining
}

func orAbsent(raw []byte) string {
	if len(raw) == 0 {
		return "absent"
	}
	return string(raw)
}
