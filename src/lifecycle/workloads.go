package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Workloads makes cloud regions of the clusters that instances create with Cluster API.
type Workloads interface {
	// Check returns the errors of Register that can be known in advance: nf.Exists if
	// the id is that of another region. It changes nothing.
	Check(ctx context.Context, p nf.Parent) error
	// Register makes a region of a cluster, or updates it. It returns nf.Unreachable
	// while the cluster cannot be used yet, and nf.Exists as Check does. It calls held
	// before each change. It is idempotent.
	Register(ctx context.Context, held func(context.Context) error, p nf.Parent) error
	// Deregister removes the region that Register made, and its service account from
	// the cluster if that can be reached. It returns nf.Conflict with nf.ReasonHeld
	// while the region is in use. It is idempotent.
	Deregister(ctx context.Context, held func(context.Context) error, p nf.Parent) error
	// Users returns what uses the region that Register made: nothing if there is none.
	Users(ctx context.Context, p nf.Parent) ([]nf.Subject, error)
}

// wantedClusters returns the clusters that become regions: those of the request, if it has
// a list, and otherwise those that the package declares.
func (p *prepared) wantedClusters() []nf.DeclaredCluster {
	switch {
	case p.target.spec.Workloads != nil:
		return nf.RequestedClusters(p.target.spec.Workloads)
	case p.keeps:
		return nf.RequestedClusters(p.target.present.Clusters())
	}
	return p.declared.clusters
}

// registrable checks that the package has the Clusters that are to become regions, and
// that the regions can be registered. It lets the plan wait for them as the request says.
func (pr *preparer) registrable(ctx context.Context, p *prepared) error {
	t, wanted := p.target, p.wantedClusters()
	subject := "VNF instance " + t.id
	switch {
	case len(wanted) == 0:
		return nil
	case pr.workloads == nil:
		return nf.E(nf.Unsupported, "use", subject, errors.New("this service makes no cloud regions of clusters"))
	case p.adoption != nil:
		return nf.E(nf.Invalid, "use", subject, nf.Violations{{Field: "workload_clusters", Message: "are not possible when objects are adopted"}})
	}
	in := nf.Instance{ID: t.id, Region: t.region, Project: t.project, Namespace: t.namespace}
	had := nf.ParentsOf(in, inForce(t.present))
	for _, c := range wanted {
		parent := nf.ParentsOf(in, nf.Revision{Workloads: []nf.WorkloadCluster{c.WorkloadCluster}})[0]
		if stageOf(p.plan, parent) < 0 {
			return nf.E(nf.Invalid, "use", subject, nf.Violations{c.At.Violation("cluster", fmt.Sprintf("the package has no Cluster %s in namespace %s", parent.Workload.Cluster, parent.Workload.Namespace))})
		}
		if t.mayRegister != nil && !slices.ContainsFunc(had, parent.Is) {
			if err := t.mayRegister(ctx, parent.Workload.Region); err != nil {
				return err
			}
		}
		switch err := pr.workloads.Check(ctx, parent); {
		case nf.KindOf(err) == nf.Exists:
			return nf.E(nf.Exists, "use", subject, nf.Violations{c.At.Violation("cloud_region_id", "is the id of another cloud region")})
		case err != nil:
			return err
		}
		if parent.Workload.ReadyWhen == nf.ReadyUsable {
			waitForUse(p.plan.Stages)
		}
		if t.spec.Workloads == nil {
			p.registered = append(p.registered, c.WorkloadCluster)
		}
	}
	return nil
}

// waitForUse lets stages not wait for the objects of Cluster API: the step that registers
// the region waits until the cluster can be used.
func waitForUse(stages []render.Stage) {
	for _, stage := range stages {
		for i, obj := range stage.Objects {
			if render.DeletionTurn(obj.Object.GroupVersionKind().GroupKind()) > 0 {
				stage.Objects[i].Wait = render.WaitApplied
			}
		}
	}
}

// stageOf returns the index of the stage with the Cluster; negative if there is none.
func stageOf(plan render.Plan, p nf.Parent) int {
	return slices.IndexFunc(plan.Stages, func(stage render.Stage) bool {
		return slices.ContainsFunc(stage.Objects, func(obj render.Planned) bool { return isCluster(obj.Object, p, plan.Namespace) })
	})
}

func isCluster(obj *unstructured.Unstructured, p nf.Parent, namespace string) bool {
	if ns := obj.GetNamespace(); ns != "" {
		namespace = ns
	}
	kind := schema.GroupKind{Group: nf.ClusterGroup, Kind: "Cluster"}
	return obj.GroupVersionKind().GroupKind() == kind && obj.GetName() == p.Workload.Cluster && namespace == p.Workload.Namespace
}

// deletable returns nf.Conflict, which names the owner or the users, if the instance has an
// owner that does not ask, if a termination would deregister a region that is in use, or if
// it would terminate an instance that has an owner.
func (pr *preparer) deletable(ctx context.Context, in nf.Instance, req nf.TerminateRequest) error {
	if err := pr.unowned(ctx, nf.Terminate, in.ID, req.By); err != nil {
		return err
	}
	parents := nf.ParentsOf(in, inForce(in))
	switch {
	case req.Orphan:
		return nil
	case req.Cascade:
		return cascadable(ctx, pr, parents)
	}
	return pr.vacated(ctx, nf.Terminate, in.ID, parents)
}

// cascadable returns nf.Conflict, which names the owner, if an instance in one of the regions
// has an owner.
func cascadable(ctx context.Context, pr *preparer, parents []nf.Parent) error {
	for _, p := range parents {
		users, err := pr.workloads.Users(ctx, p)
		if err != nil {
			return err
		}
		for _, user := range users {
			if user.Kind != nf.InstanceSubject {
				continue
			}
			if err := pr.unowned(ctx, nf.Terminate, user.ID, nf.Subject{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// vacated returns nf.Conflict, which names the users, if one of the regions that a change
// would deregister is in use.
func (pr *preparer) vacated(ctx context.Context, op nf.Verb, id string, dropped []nf.Parent) error {
	var v nf.Violations
	for _, p := range dropped {
		users, err := pr.workloads.Users(ctx, p)
		if err != nil {
			return err
		}
		for _, user := range users {
			v = append(v, nf.Violation{}.Saying(nf.Textf("its cloud region %s is used by %s", p.Workload.Region, user.Mention())))
		}
	}
	if len(v) == 0 {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: string(op), Subject: "VNF instance " + id, Reason: nf.ReasonHeld, Err: v}
}

// without returns those of the clusters that are not among the others.
func without(all, others []nf.Parent) []nf.Parent {
	return slices.DeleteFunc(slices.Clone(all), func(p nf.Parent) bool { return slices.ContainsFunc(others, p.SameRegion) })
}

// workloadUser registers and deregisters the regions of a run's instance.
type workloadUser struct {
	run       *run
	workloads Workloads
	engine    *Engine
}

// parents returns the clusters of revisions of the instance.
func (u *workloadUser) parents(revisions ...nf.Revision) []nf.Parent {
	op := u.run.op()
	return nf.ParentsOf(nf.Instance{ID: op.Subject.ID, Region: op.Region, Project: op.Project, Namespace: op.Instance.Namespace}, revisions...)
}

// registerSteps returns the steps that make regions of the Clusters of a stage. They
// precede the wait for the stage: a Cluster is Available only when its nodes are ready,
// which may need objects of an instance in its region.
func (w *work) registerSteps(rev nf.Revision, stage int) []operation.Step {
	var out []operation.Step
	for i, p := range w.workloads.parents(rev) {
		if stageOf(w.run.plan, p) != stage {
			continue
		}
		s := w.step(nf.PhaseRegister, func(ctx context.Context) error {
			return w.workloads.workloads.Register(ctx, w.run.attempt.Held, p)
		})
		s.Stage, s.Index = stage+1, i+1
		out = append(out, s)
	}
	return out
}

// deregisterSteps returns the steps that deregister the regions of revisions, except those
// of one revision. They precede the deletion of the Clusters.
func (w *work) deregisterSteps(except []nf.Parent, revisions ...nf.Revision) []operation.Step {
	var out []operation.Step
	for i, p := range without(w.workloads.parents(revisions...), except) {
		if w.run.op().Instance.Cascade {
			s := w.step(nf.PhaseTerminate, func(ctx context.Context) error { return w.workloads.vacate(ctx, p) })
			s.Index = i + 1
			out = append(out, s)
		}
		s := w.step(nf.PhaseDeregister, func(ctx context.Context) error { return w.workloads.deregister(ctx, p) })
		s.Index = i + 1
		out = append(out, s)
	}
	return out
}

// later returns the instance's stored revisions that are newer than the one in force.
func (w *work) later(ctx context.Context, in nf.Instance) ([]nf.Revision, error) {
	if in.Newest <= 1 {
		return nil, nil
	}
	all, err := w.revisions(ctx)
	return slices.DeleteFunc(all, func(rev nf.Revision) bool { return rev.Number <= in.Revision }), err
}

// deregister deregisters a region. If the instances there have been terminated, it waits
// until the networks and volumes are gone that they have left.
func (u *workloadUser) deregister(ctx context.Context, p nf.Parent) error {
	err := u.workloads.Deregister(ctx, u.run.attempt.Held, p)
	if nf.ReasonOf(err) == nf.ReasonHeld && u.run.op().Instance.Cascade {
		return &nf.Error{Kind: nf.Unreachable, Op: "deregister", Subject: "cloud region " + p.Workload.Region, Reason: nf.ReasonHeld, RetryAfter: time.Second, Err: err}
	}
	return err
}

// vacate terminates the VNF instances in a region, one after another.
func (u *workloadUser) vacate(ctx context.Context, p nf.Parent) error {
	users, err := u.workloads.Users(ctx, p)
	if err != nil {
		return operation.RecordError(err)
	}
	for i, user := range users {
		if user.Kind != nf.InstanceSubject {
			continue
		}
		u.run.progress(i, len(users), "terminating "+user.Noun())
		if err := u.terminate(ctx, user.ID); err != nil {
			return nf.About(user.ID, err)
		}
	}
	return nil
}

// terminate terminates an instance and waits until it is deleted. An operation that runs
// there may be a termination that an earlier process started.
func (u *workloadUser) terminate(ctx context.Context, id string) error {
	for {
		if err := u.run.attempt.Held(ctx); err != nil {
			return err
		}
		op, err := u.engine.Terminate(ctx, id, nf.TerminateRequest{Cascade: true, Options: nf.Options{Trace: u.run.op().Trace}})
		other := nf.OperationOf(err)
		switch {
		case err == nil:
			return u.ended(ctx, op)
		case nf.KindOf(err) == nf.NotFound:
			return nil
		case nf.KindOf(err) != nf.Busy || other == "":
			return err
		}
		if _, err := u.run.attempt.Await(ctx, other); err != nil {
			return err
		}
	}
}

// ended waits until a termination ends. It returns an error if it did not succeed.
func (u *workloadUser) ended(ctx context.Context, op nf.Operation) error {
	ended, err := u.run.attempt.Await(ctx, op.ID)
	switch {
	case err != nil:
		return err
	case ended.State == nf.Succeeded || ended.ID == "":
		return nil
	case ended.Failure != nil:
		return ended.Err()
	}
	return nf.E(nf.Failed, string(op.Verb), "VNF instance "+op.Subject.ID, fmt.Errorf("operation %s is %s", op.ID, ended.State))
}
