package cluster

import (
	"fmt"
	"maps"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// objectStatus is the status of an object, derived from the object alone.
type objectStatus struct {
	status  nf.Status
	message string
}

// judge returns the verdict on an object of a kind that is in the categories. A
// custom resource is judged by the first readiness rule for its kind, and by
// kstatus' rules if there is none.
func judge(rules *readiness.Rules, u *unstructured.Unstructured, categories []string) readiness.Verdict {
	if u.GetDeletionTimestamp() == nil && isCustom(u) {
		if v, ok := rules.Judge(u.Object, categories); ok {
			return v
		}
	}
	is := judgeByKind(u)
	if is.status == nf.Current && isCustom(u) && readiness.Silent(u.Object) {
		return readiness.SilentVerdict()
	}
	return readiness.Verdict{Status: is.status, Message: is.message}
}

func isCustom(u *unstructured.Unstructured) bool {
	return !readiness.Builtin(u.GroupVersionKind().Group)
}

// judgeByKind returns the status of an object by kstatus' rules, with own rules
// for kinds where kstatus would wait forever or not long enough.
func judgeByKind(u *unstructured.Unstructured) objectStatus {
	gk := u.GroupVersionKind().GroupKind()
	if gk == (schema.GroupKind{Kind: "ReplicationController"}) {
		u = asReplicaSet(u) // kstatus supports only its successor
	}
	result, err := status.Compute(u)
	if err != nil {
		return objectStatus{nf.Unknown, err.Error()}
	}
	v := objectStatus{nf.Status(result.Status), result.Message}
	if v.status == nf.StatusDeleting {
		if f := u.GetFinalizers(); len(f) > 0 {
			v.message = "its deletion waits for the finalizers " + strings.Join(f, ", ")
		}
		return v
	}
	if rule, ok := rules[gk]; ok {
		v = rule(u, v)
	}
	return v
}

func asReplicaSet(u *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	object["apiVersion"], object["kind"] = "apps/v1", "ReplicaSet"
	return &unstructured.Unstructured{Object: object}
}

var rules = map[schema.GroupKind]func(*unstructured.Unstructured, objectStatus) objectStatus{
	{Group: "apps", Kind: "Deployment"}:  deployment,
	{Group: "apps", Kind: "StatefulSet"}: statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:  observed,
	{Kind: "ReplicationController"}:      observed,
	{Group: "batch", Kind: "Job"}:        job,
	{Kind: "Pod"}:                        pod,
	{Kind: "PersistentVolumeClaim"}:      claim,
	{Kind: "ResourceQuota"}:              quota,
}

// statusless are kinds whose objects judgeByKind finds nf.Current as soon as they exist.
var statusless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "Service"}:        true, // an address of a load balancer comes from outside, if at all
	{Kind: "LimitRange"}:     true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                             true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                              true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                 true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                             true,
	{Group: "batch", Kind: "CronJob"}:                                               true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
}

// isCurrent reports whether a target is nf.Current without a look at it: it has been
// applied, and nothing more can happen to an object of its kind.
func isCurrent(target nf.Change) bool {
	applied := target.Action == nf.Created || target.Action == nf.Configured || target.Action == nf.Unchanged
	return applied && target.UID != "" && statusless[gvkOf(target.Ref).GroupKind()]
}

// currentHealth returns the health of a target that isCurrent accepts.
func currentHealth(target nf.Change) nf.Health {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterIP": "None"}}} // every Service has an address
	u.SetGroupVersionKind(gvkOf(target.Ref))
	is := judgeByKind(u)
	return nf.Health{Ref: target.Ref, Status: is.status, Message: is.message, UID: target.UID, Generation: target.Generation}
}

// observed returns InProgress until the controller has observed the object;
// kstatus treats a missing observedGeneration as a kind without one.
func observed(u *unstructured.Unstructured, v objectStatus) objectStatus {
	if v.status != nf.InProgress && integer(u, -1, "status", "observedGeneration") < u.GetGeneration() {
		return objectStatus{nf.InProgress, "its controller has not seen it yet"}
	}
	return v
}

// deployment treats a paused Deployment as current, because nothing changes
// until spec.paused does.
func deployment(u *unstructured.Unstructured, v objectStatus) objectStatus {
	paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
	switch failed, message := condition(u, "Progressing", "False"); {
	case paused:
		return observed(u, objectStatus{nf.Current, "its rollout is paused"})
	case v.status == nf.StatusFailed && failed:
		v.message = message
	}
	return observed(u, v)
}

// statefulSet waits until the pods of a StatefulSet with strategy OnDelete are
// ready, whatever their revision; kstatus does not wait for them.
func statefulSet(u *unstructured.Unstructured, v objectStatus) objectStatus {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	if want, ready := integer(u, 1, "spec", "replicas"), integer(u, 0, "status", "readyReplicas"); strategy == "OnDelete" && ready < want {
		v = objectStatus{nf.InProgress, fmt.Sprintf("Ready: %d/%d", ready, want)}
	}
	return observed(u, v)
}

// daemonSet waits until the pods of a DaemonSet with strategy OnDelete are ready, whatever
// their revision; kstatus waits until somebody has deleted the old ones.
func daemonSet(u *unstructured.Unstructured, v objectStatus) objectStatus {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	if strategy != "OnDelete" || v.status != nf.InProgress {
		return observed(u, v)
	}
	want := integer(u, -1, "status", "desiredNumberScheduled")
	ready := min(integer(u, 0, "status", "numberReady"), integer(u, 0, "status", "numberAvailable"))
	if want >= 0 && ready >= want {
		v = objectStatus{nf.Current, fmt.Sprintf("Ready: %d/%d", ready, want)}
	}
	return observed(u, v)
}

// job treats a Job as current when it is complete or suspended; for kstatus it
// is current when it has started.
func job(u *unstructured.Unstructured, v objectStatus) objectStatus {
	complete, _ := condition(u, "Complete", "True")
	failed, why := condition(u, "Failed", "True")
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	switch {
	case failed:
		return objectStatus{nf.StatusFailed, why}
	case complete:
		return v
	case suspended:
		return objectStatus{nf.Current, "it is suspended"}
	}
	return objectStatus{nf.InProgress, v.message}
}

// quota returns InProgress until the status has the limits of the spec. The API server
// admits objects by the status, which the controller of quotas writes.
func quota(u *unstructured.Unstructured, v objectStatus) objectStatus {
	wanted, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "hard")
	is, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "hard")
	if v.status == nf.Current && !equality.Semantic.DeepEqual(wanted, is) {
		return objectStatus{nf.InProgress, "its controller has not written its limits to the status yet"}
	}
	return v
}

// done reports whether the object is a Job or Pod that has completed.
func done(u *unstructured.Unstructured) bool { return endedAs(u, "Complete", "Succeeded") }

// hasFailedForGood reports whether the object is a Job or Pod that has failed and does not
// run again.
func hasFailedForGood(u *unstructured.Unstructured) bool { return endedAs(u, "Failed", "Failed") }

// endedAs reports whether the object is a Job with the condition, or a Pod in the phase.
func endedAs(u *unstructured.Unstructured, job, phase string) bool {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		is, _ := condition(u, job, "True")
		return is
	case schema.GroupKind{Kind: "Pod"}:
		return text(u.Object, "status", "phase") == phase
	}
	return false
}

// pod treats a pod in phase Failed as failed, and an unscheduled pod as in
// progress; kstatus decides by a timeout.
func pod(u *unstructured.Unstructured, v objectStatus) objectStatus {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	unscheduled, why := condition(u, "PodScheduled", "False")
	switch {
	case phase == "Failed":
		message, _, _ := unstructured.NestedString(u.Object, "status", "message")
		if message == "" {
			message = "its containers ended with an error"
		}
		return objectStatus{nf.StatusFailed, message}
	case phase == "Pending" && unscheduled:
		return objectStatus{nf.InProgress, why}
	}
	return v
}

// claim treats a pending PersistentVolumeClaim as current: with binding mode
// WaitForFirstConsumer, it is bound only when a pod uses it, and that pod is
// waited for itself.
func claim(u *unstructured.Unstructured, v objectStatus) objectStatus {
	switch phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase {
	case "Pending":
		return objectStatus{nf.Current, "it is bound when a pod uses it"}
	case "Lost":
		return objectStatus{nf.StatusFailed, "its volume is lost"}
	}
	return v
}

// condition reports whether the object has a condition of the type with the
// status, and returns its message.
func condition(u *unstructured.Unstructured, kind, is string) (bool, string) {
	for c := range members(u.Object, "status", "conditions") {
		if text(c, "type") == kind && text(c, "status") == is {
			return true, text(c, "message")
		}
	}
	return false, ""
}

func integer(u *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, found, _ := unstructured.NestedInt64(u.Object, path...); found {
		return n
	}
	return otherwise
}

// text returns the string at a path of an object, or "" if there is none.
func text(object map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(object, path...)
	return s
}
