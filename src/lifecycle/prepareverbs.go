package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// newInstance prepares a request for a new instance.
func (pr *preparer) newInstance(ctx context.Context, req *nf.InstantiateRequest, access secretAccess) (*prepared, error) {
	t, err := pr.newTarget(ctx, req)
	if err != nil {
		return nil, err
	}
	t.access, t.strict, t.mayAttach, t.mayUse, t.mayRegister = access, req.Strict, req.MayAttach, req.MayUse, req.MayRegister
	return pr.prepare(ctx, t, nil)
}

// newTarget returns the target of a request for a new instance.
func (pr *preparer) newTarget(ctx context.Context, req *nf.InstantiateRequest) (target, error) {
	own := *req
	req = &own // the request may be prepared again
	unnamed := req.Namespace == ""
	req.Namespace = cmp.Or(req.Namespace, "default")
	if err := req.Validate(); err != nil {
		return target{}, err
	}
	placed, err := pr.place(ctx, req)
	if err != nil {
		return target{}, err
	}
	chosen := req.Region
	if placed != nil {
		chosen = placed.Region
	}
	if unnamed {
		region, err := pr.catalog.Region(ctx, chosen)
		if err != nil {
			return target{}, missing("cloud_region_id", chosen, err)
		}
		req.Namespace = cmp.Or(region.DefaultNamespace, req.Namespace)
	}
	id := req.ID
	switch {
	case id != "":
		if err := pr.records.idFree(ctx, id); err != nil {
			return target{}, err
		}
	case req.Key.Key != "":
		id = instanceOf(req.Key)
	default:
		id = pr.newID()
	}
	t := target{
		id: id, name: req.Name, project: nf.ProjectOf(req.Project),
		region: chosen, namespace: req.Namespace, spec: req.Spec, revision: 1, placed: placed, adopt: req.Adopt,
	}
	// Instances of the same name usually share objects too; the name explains it
	// in one line.
	return t, pr.records.nameFree(ctx, t)
}

// instanceOf returns the id of the instance that a request with a key creates.
// Two replicas that accept it at once, one of them considered dead, cannot both
// create it.
func instanceOf(k nf.RequestKey) string { return operation.RequestID(k)[:16] }

// upgrade prepares a change of an instance's spec.
func (pr *preparer) upgrade(ctx context.Context, id string, req nf.UpgradeRequest, access secretAccess) (nf.Instance, *prepared, error) {
	in, err := pr.records.idle(ctx, "upgrade", id)
	if err != nil {
		return in, nil, err
	}
	spec := specOf(inForce(in))
	if err := req.Edit(&spec); err != nil {
		return in, nil, err
	}
	if err := spec.Validate(); err != nil {
		return in, nil, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, nil, err
	}
	t := targetOf(in, spec)
	t.access, t.strict, t.mayAttach, t.mayUse, t.mayRegister = access, req.Strict, req.MayAttach, req.MayUse, req.MayRegister
	p, err := pr.prepare(ctx, t, nil)
	return in, p, err
}

// configure prepares a change of an instance's amendments.
func (pr *preparer) configure(ctx context.Context, id string, req nf.ConfigureRequest, access secretAccess) (nf.Instance, *prepared, error) {
	in, err := pr.records.idle(ctx, "configure", id)
	if err != nil {
		return in, nil, err
	}
	was := specOf(inForce(in))
	spec := was
	if err := req.Edit(&spec); err != nil {
		return in, nil, err
	}
	if err := onlyAmended(was, spec); err != nil {
		return in, nil, err
	}
	if err := errors.Join(spec.Validate(), req.Options.Validate()); err != nil {
		return in, nil, err
	}
	plan, rev, err := pr.records.planInForce(ctx, in)
	if err == nil {
		err = pr.records.inForceRuns(ctx, in, rev)
	}
	if err != nil {
		return in, nil, err
	}
	region, err := pr.catalog.Region(ctx, in.Region)
	if err != nil {
		return in, nil, err
	}
	p := &prepared{
		target: targetOf(in, spec), pkg: nf.Package{ID: rev.Package, Digest: rev.PackageDigest},
		plan: plan.Unamended(), sensitive: rev.Sensitive, keeps: true,
	}
	p.target.access = access
	if err := pr.bound(ctx, p, region); err != nil {
		return in, nil, err
	}
	p.openNamespaces(namespacesOf(p.plan)) // they were opened when the plan was made
	p.view.seen, p.notes = rev.Hidden, rev.Notes
	return in, p, pr.complete(ctx, p, region)
}

// inForceRuns returns nf.Conflict if a later revision with another package or other values
// has failed and was kept: a configuration of the revision in force would take it back.
func (s *records) inForceRuns(ctx context.Context, in nf.Instance, is nf.Revision) error {
	if in.State != nf.Broken || in.Newest == in.Revision {
		return nil
	}
	failed, err := s.revisions.Get(ctx, revisionKey(in.ID, in.Newest))
	if err != nil {
		return nf.IgnoreNotFound(err) // it was undone
	}
	if failed.PackageDigest == is.PackageDigest && onlyAmended(specOf(is), specOf(failed)) == nil {
		return nil
	}
	return nf.E(nf.Conflict, "configure", "VNF instance "+in.ID, fmt.Errorf("its revision %d has failed and was kept: retry or undo operation %s first", failed.Number, failed.Operation))
}

// onlyAmended rejects a spec that differs in more than amendments and
// annotations.
func onlyAmended(was, is nf.Spec) error {
	was.Amendments, was.Annotations = is.Amendments, is.Annotations
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return nf.E(nf.Invalid, "configure", "specification", errors.New("a configuration changes amendments and nothing else"))
}

// rollback prepares the return to a kept revision.
func (pr *preparer) rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Instance, *prepared, nf.Revision, error) {
	var none nf.Revision
	in, err := pr.records.idle(ctx, "roll back", id)
	if err != nil {
		return in, nil, none, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, nil, none, err
	}
	previous, err := pr.records.previousRevision(ctx, in, req.Revision)
	if err != nil {
		return in, nil, none, err
	}
	p, rev, err := pr.again(ctx, in, previous)
	rev.Restores, rev.Drift, rev.Claims, rev.AAI = previous.Number, in.Drift, in.Claims, in.AAI // policies are not part of the objects
	return in, p, rev, err
}

// again prepares a former revision from its stored plan.
func (pr *preparer) again(ctx context.Context, in nf.Instance, previous nf.Revision) (*prepared, nf.Revision, error) {
	rev := previous
	rev.Number, rev.Operation = in.Newest+1, ""
	p := &prepared{
		target: targetOf(in, specOf(previous)),
		pkg:    nf.Package{ID: previous.Package, Digest: previous.PackageDigest}, sensitive: previous.Sensitive, hidden: previous.Hidden,
	}
	region, err := pr.catalog.Region(ctx, in.Region)
	if err != nil {
		return nil, rev, err
	}
	if p.plan, err = pr.records.loadPlan(ctx, previous.Plan); err != nil {
		return nil, rev, err
	}
	if err := pr.held.hold(ctx, p.plan); err != nil {
		return nil, rev, err
	}
	p.target.adopt = in.Revision == 0 && len(formerObjects(p.plan, subjectOf(in.ID))) > 0
	if err := pr.bound(ctx, p, region); err != nil {
		return nil, rev, err
	}
	p.openNamespaces(namespacesOf(p.plan)) // they were opened when the plan was made
	if err := p.inspect(ctx); err != nil {
		return nil, rev, newRedactor(previous).error(located(err, p.plan))
	}
	return p, rev, nil
}

// specOf returns the spec of a revision.
func specOf(rev nf.Revision) nf.Spec {
	return nf.Spec{
		Package: rev.Package, Inputs: rev.Inputs, Labels: rev.Labels, Description: rev.Description,
		Release: rev.Release, Namespaces: rev.Namespaces, Amendments: rev.Amendments, Annotations: rev.Annotations,
		Networks: rev.Networks, Volumes: rev.Volumes, Drift: rev.Drift, Claims: rev.Claims,
		Workloads: rev.Workloads, AAI: rev.AAI,
	}
}

// targetOf returns the target of a change of an instance.
func targetOf(in nf.Instance, spec nf.Spec) target {
	return target{
		id: in.ID, name: in.Name, project: nf.ProjectOf(in.Project), region: in.Region, namespace: in.Namespace,
		spec: spec, present: in, revision: in.Newest + 1,
	}
}

// adopt prepares the adoption of objects that run already.
func (pr *preparer) adopt(ctx context.Context, req *nf.AdoptRequest) (*prepared, error) {
	t, err := pr.newTarget(ctx, &req.InstantiateRequest)
	if err != nil {
		return nil, err
	}
	t.mayAttach, t.mayUse = req.MayAttach, req.MayUse
	return pr.prepare(ctx, t, &adoption{selector: req.Selector})
}

// test returns an instance whose package has test hooks, unless the request may be empty.
func (pr *preparer) test(ctx context.Context, id string, req nf.TestRequest) (nf.Instance, error) {
	in, err := pr.records.idle(ctx, "test", id)
	if err != nil {
		return in, err
	}
	if err := req.Options.Validate(); err != nil {
		return in, err
	}
	plan, _, err := pr.records.planInForce(ctx, in)
	if err != nil {
		return in, err
	}
	if len(plan.HooksOf(nf.TestRun)) == 0 && !req.Empty {
		return in, nf.E(nf.Conflict, "test", "VNF instance "+id, errors.New("its package has no test hooks"))
	}
	return in, nil
}
