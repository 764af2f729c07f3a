package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// healing returns what a heal does, and its changes: the objects of the plan in force
// that do not exist are created, and the named pods are evicted. A pod that is itself an
// object of the plan is then created again.
func (pr *preparer) healing(ctx context.Context, in nf.Instance, req nf.ActRequest) (nf.HealTask, []nf.Change, error) {
	task := nf.HealTask{Force: req.Force, Patience: cmp.Or(req.Patience, nf.DefaultPatience)}
	plan, _, err := pr.records.planInForce(ctx, in)
	if err != nil {
		return task, nil, err
	}
	var refs []nf.Ref
	for _, it := range itemsOf(plan, nil) {
		if !isNamespace(it.Ref) && !it.Passing {
			refs = append(refs, it.Ref)
		}
	}
	cluster, err := pr.permitted(ctx, in, refs)
	if err != nil {
		return task, nil, err
	}
	health, err := cluster.Health(ctx, subjectOf(in.ID), refs)
	if err != nil {
		return task, nil, newRedactor(inForce(in)).error(err)
	}
	var changes []nf.Change
	for _, h := range health {
		if h.Status == nf.Absent {
			task.Missing = append(task.Missing, h.Ref)
			changes = append(changes, nf.Change{Ref: h.Ref, Action: nf.Created})
		}
	}
	if req.Drift {
		drifts, err := pr.drifts(ctx, in, func(nf.Ref) bool { return true })
		if err != nil {
			return task, nil, err
		}
		drifted, corrections := changesOf(drifts)
		task.Drifted, changes = drifted, append(changes, corrections...)
	}
	if len(req.Pods) == 0 {
		return task, changes, nil
	}
	pods, err := cluster.Pods(ctx, subjectOf(in.ID), refs)
	if err != nil {
		return task, nil, newRedactor(inForce(in)).error(err)
	}
	pods = slices.DeleteFunc(pods, func(p nf.Pod) bool { return p.Kind != "Pod" }) // a virtual machine is restarted, and not evicted
	if task.Pods, err = chosen(in, pods, req.Pods); err != nil {
		return task, nil, err
	}
	settle(task.Pods, health)
	for _, p := range task.Pods {
		if isBare(p) {
			task.Missing = append(task.Missing, p.Ref)
			changes = append(changes, nf.Change{Ref: p.Ref, Action: nf.Recreated})
			continue
		}
		changes = append(changes, nf.Change{Ref: p.Ref, Action: nf.Deleted, Message: "replaced by " + p.Workload.String()})
	}
	return task, changes, nil
}

// settle notes which workloads of pods are ready, and moves their pods to the end: they may
// need the others. If pods are created again after all are evicted, no workload can be waited
// for before that, so none counts as ready.
func settle(pods []nf.HealPod, health []nf.Health) {
	if slices.ContainsFunc(pods, isBare) {
		return
	}
	for i, p := range pods {
		pods[i].Sound = slices.ContainsFunc(health, func(h nf.Health) bool { return h.Ref == p.Workload && h.Status == nf.Current })
	}
	rank := map[bool]int{true: 1}
	slices.SortStableFunc(pods, func(a, b nf.HealPod) int { return rank[a.Sound] - rank[b.Sound] })
}

// isBare reports whether a pod is an object of the instance itself: no controller replaces
// it.
func isBare(p nf.HealPod) bool { return p.Workload.Kind == "Pod" && p.Workload.Group == "" }

// chosen returns the named pods.
func chosen(in nf.Instance, pods []nf.Pod, names []string) ([]nf.HealPod, error) {
	var out []nf.HealPod
	var v nf.Violations
	for i, named := range names {
		namespace, name, found := strings.Cut(named, "/")
		if !found {
			namespace, name = in.Namespace, named
		}
		field := fmt.Sprintf("pods[%d]", i)
		at := slices.IndexFunc(pods, func(p nf.Pod) bool { return p.Namespace == namespace && p.Name == name })
		if at < 0 {
			v = append(v, nf.Violation{Field: field, Message: fmt.Sprintf("VNF instance %s has no pod %s/%s", in.ID, namespace, name)})
			continue
		}
		out = append(out, nf.HealPod{Ref: pods[at].Ref, UID: pods[at].UID, Workload: pods[at].Workload})
	}
	if len(v) > 0 {
		return nil, nf.E(nf.NotFound, "heal", "pods", v)
	}
	return out, nil
}

// healSteps returns the steps of a heal or a correction: it creates the missing objects
// and corrects others stage by stage, and then replaces pods. Pods that it creates again are
// evicted before.
func (w *work) healSteps(ctx context.Context) ([]operation.Step, error) {
	in, err := w.run.instance(ctx)
	if err != nil {
		return nil, operation.RecordError(err)
	}
	if w.run.plan, _, err = w.records.planInForce(ctx, in); err != nil {
		return nil, operation.RecordError(err)
	}
	tune(&w.run.plan, in, nf.Rollback)
	task := w.run.op().Instance.Heal
	var steps []operation.Step
	if len(task.Missing) > 0 { // others may have deleted a namespace with them
		steps = append(steps, w.step(nf.PhaseAcquireNamespaces, w.namespaces.acquireNamespaces))
	}
	for i, stage := range w.run.plan.Stages {
		missing, drifted := among(stage, task.Missing), among(stage, task.Drifted)
		if len(missing)+len(drifted) == 0 {
			continue
		}
		apply := w.step(nf.PhaseApply, func(ctx context.Context) error {
			if err := w.shared.bind(ctx, claiming(in, missing)); err != nil {
				return err
			}
			return w.applier.mend(ctx, missing, drifted, in.Drift.Ignore)
		})
		apply.Stage, apply.Of, apply.StageName = i+1, len(w.run.plan.Stages), stage.Name
		ready := apply
		ready.Phase, ready.Do = nf.PhaseWait, func(ctx context.Context) error { return w.applier.waitChanged(ctx, apply.StepID) }
		steps = append(steps, apply, ready)
	}
	if len(task.Pods) > 0 {
		evict := w.step(nf.PhaseEvict, func(ctx context.Context) error { return w.applier.evict(ctx, task) })
		if slices.ContainsFunc(task.Pods, isBare) {
			steps = append([]operation.Step{evict}, steps...)
		} else {
			steps = append(steps, evict)
		}
		steps = append(steps, w.step(nf.PhaseWait, func(ctx context.Context) error { return w.applier.waitReplaced(ctx, task.Pods) }))
	}
	return append(steps, w.step(nf.PhaseFinish, w.finishHeal)), nil
}

// claiming returns the uses of volumes by claims that are to be created: their volumes are
// still reserved for the claims that were deleted.
func claiming(in nf.Instance, created []*unstructured.Unstructured) []nf.VolumeUse {
	return slices.DeleteFunc(slices.Clone(in.VolumeUses()), func(v nf.VolumeUse) bool {
		return !slices.ContainsFunc(created, func(u *unstructured.Unstructured) bool {
			return u.GroupVersionKind().GroupKind().String() == "PersistentVolumeClaim" && u.GetName() == v.Claim && u.GetNamespace() == in.Namespace
		})
	})
}

// among returns the objects of a stage that are among refs.
func among(stage render.Stage, refs []nf.Ref) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range stage.Objects {
		if ref := nf.RefOf(obj.Object); !obj.Shared && slices.ContainsFunc(refs, func(r nf.Ref) bool { return r.Key() == ref.Key() }) {
			out = append(out, obj.Object)
		}
	}
	return out
}

// mend creates objects of the plan in force that are missing, and corrects those that
// have drifted; the inventory has them already.
func (a *applier) mend(ctx context.Context, missing, drifted []*unstructured.Unstructured, ignore []nf.DriftIgnore) (err error) {
	var changes []nf.Change
	if len(missing) > 0 {
		changes, err = a.run.cluster.Apply(ctx, a.run.op().Subject, missing)
	}
	if len(drifted) > 0 && err == nil {
		if err = a.run.attempt.Held(ctx); err == nil {
			var corrected []nf.Change
			corrected, err = a.run.cluster.Correct(ctx, a.run.op().Subject, drifted, ignore)
			changes = append(changes, corrected...)
		}
	}
	a.run.attempt.KeepChanges(changes)
	if err != nil {
		return located(err, a.run.plan)
	}
	a.run.counted(len(missing)+len(drifted), len(changes), len(changes))
	return nil
}

// waitChanged waits until the objects that a step has changed are ready.
func (a *applier) waitChanged(ctx context.Context, step nf.StepID) error {
	if a.run.op().Instance.NoWait {
		return nil
	}
	changes, err := a.run.attempt.ChangesOf(ctx, step)
	if err != nil {
		return err
	}
	if a.run.op().Undoing { // there is nothing to wait for if an object does not exist
		changes = slices.DeleteFunc(slices.Clone(changes), func(c nf.Change) bool { return c.UID == "" })
	}
	return a.elaborate(ctx, a.await(ctx, wait{wanted: nf.Current, targets: changes}))
}

// evict evicts pods one after another, and waits until each is gone. It waits until a
// workload is ready again before it evicts another pod of it, if the workload was ready
// before: one that has other broken pods is not ready until they are evicted, too.
func (a *applier) evict(ctx context.Context, task nf.HealTask) error {
	var changes []nf.Change
	defer func() { a.run.attempt.KeepChanges(changes) }()
	for i, p := range task.Pods {
		if err := a.run.attempt.Held(ctx); err != nil {
			return err
		}
		a.run.progress(i, len(task.Pods), "evicting "+p.Ref.String())
		change, err := a.run.cluster.Evict(ctx, a.run.op().Subject, p, task)
		if err != nil {
			return err
		}
		changes = append(changes, change)
		if change.Action == nf.Deleted {
			if err := a.await(ctx, wait{wanted: nf.Absent, targets: []nf.Change{change}}); err != nil {
				return err
			}
		}
		if p.Sound && slices.ContainsFunc(task.Pods[i+1:], func(o nf.HealPod) bool { return o.Workload == p.Workload }) {
			if err := a.waitReplaced(ctx, task.Pods[i:i+1]); err != nil {
				return err
			}
		}
	}
	a.run.counted(len(task.Pods), len(changes), len(changes))
	return nil
}

// waitReplaced waits until the workloads of pods are ready again.
func (a *applier) waitReplaced(ctx context.Context, pods []nf.HealPod) error {
	if a.run.op().Instance.NoWait {
		return nil
	}
	var targets []nf.Change
	for _, p := range pods {
		if isBare(p) {
			continue // the step that has created it again has waited for it
		}
		at := slices.IndexFunc(targets, func(c nf.Change) bool { return c.Ref == p.Workload })
		if at < 0 {
			at, targets = len(targets), append(targets, nf.Change{Ref: p.Workload, Action: nf.Unchanged})
		}
		targets[at].Former = append(targets[at].Former, p.UID)
	}
	return a.elaborate(ctx, a.await(ctx, wait{wanted: nf.Current, targets: targets}))
}

// finishHeal unlocks the instance, which was ready before.
func (w *work) finishHeal(context.Context) error {
	w.run.unlock(func(*nf.Instance) {})
	return nil
}
