package lifecycle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PreviewTerminate returns what Terminate would do with each object of the
// instance: nf.Deleted, nf.Orphaned, or nf.Kept for the volume claims of
// StatefulSets that stay. It fails as Terminate does. If the region cannot be read,
// a warning says that claims are not listed.
func (e *Engine) PreviewTerminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Preview, error) {
	if err := req.Validate(); err != nil {
		return nf.Preview{}, err
	}
	in, err := e.records.idle(ctx, "terminate", id)
	if err != nil {
		return nf.Preview{}, err
	}
	if err := e.preparer.deletable(ctx, in, req); err != nil {
		return nf.Preview{}, err
	}
	return e.preparer.previewTermination(ctx, in, req), nil
}

// previewTermination returns what a termination would do with each object.
func (pr *preparer) previewTermination(ctx context.Context, in nf.Instance, req nf.TerminateRequest) (out nf.Preview) {
	var all []nf.Item
	for _, b := range batchesOf(withoutAdopted(in)) {
		all = append(all, b.items...)
	}
	orphan := req.Orphan || in.Adopted && in.Revision == 0
	for _, it := range all {
		change := nf.Change{Ref: it.Ref, Action: nf.Deleted}
		if orphan || it.Keep || it.Volume && !req.DeletesClaims(in) {
			change.Action = nf.Orphaned
		}
		out.Changes = append(out.Changes, change)
	}
	sets := setsOf(all)
	if orphan || len(sets) == 0 {
		return out
	}
	claims, known := pr.claims(ctx, in, sets)
	if !known {
		out.Warnings = append(out.Warnings, "the volume claims of StatefulSets are not listed: the region could not be read")
		return out
	}
	for _, ref := range claims {
		if slices.ContainsFunc(all, func(it nf.Item) bool { return it.Key() == ref.Key() }) {
			continue
		}
		change := nf.Change{Ref: ref, Action: nf.Kept, Message: "created by a StatefulSet; claims=delete would delete it with its data"}
		if req.DeletesClaims(in) {
			change.Action, change.Message = nf.Deleted, ""
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}

// findRemoved changes to nf.Unchanged the removal of objects that do not exist. It
// reports whether the objects could be read.
func (q *requester) findRemoved(ctx context.Context, in nf.Instance, changes []nf.Change) (read bool) {
	var refs []nf.Ref
	for _, c := range changes {
		if c.Action == nf.Deleted || c.Action == nf.Orphaned {
			refs = append(refs, c.Ref)
		}
	}
	if len(refs) == 0 {
		return true
	}
	cluster, err := q.preparer.open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return false
	}
	found, err := cluster.Health(ctx, subjectOf(in.ID), refs)
	if err != nil {
		return false
	}
	absent := map[string]bool{}
	for _, h := range found {
		absent[h.Key()] = h.Status == nf.Absent
	}
	for i, c := range changes {
		if (c.Action == nf.Deleted || c.Action == nf.Orphaned) && absent[c.Key()] {
			changes[i] = nf.Change{Ref: c.Ref, Action: nf.Unchanged, Message: "it does not exist"}
		}
	}
	return true
}

// claims returns the volume claims of an instance's StatefulSets, if they can be read.
func (pr *preparer) claims(ctx context.Context, in nf.Instance, sets []nf.Ref) (claims []nf.Ref, known bool) {
	plan, _, err := pr.records.planInForce(ctx, in)
	if nf.IgnoreNotFound(err) != nil {
		return nil, false
	}
	cluster, err := pr.open(ctx, in.Region, nf.ProjectOf(in.Project))
	if err != nil {
		return nil, false
	}
	found, err := cluster.VolumeClaims(ctx, subjectOf(in.ID), sets, objectsAmong(plan, sets))
	for _, set := range found {
		claims = append(claims, set.Claims...)
	}
	return claims, err == nil
}
