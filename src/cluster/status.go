package cluster

import (
	"fmt"
	"maps"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// verdict is what an object says of itself.
type verdict struct {
	status  nf.Status
	message string
}

// judge tells the status of an object by kstatus' rules, and by ours where
// kstatus' would wait for ever or not long enough.
func judge(u *unstructured.Unstructured) verdict {
	gk := u.GroupVersionKind().GroupKind()
	if gk == (schema.GroupKind{Kind: "ReplicationController"}) {
		u = asReplicaSet(u) // kstatus knows the younger brother only
	}
	result, err := status.Compute(u)
	if err != nil {
		return verdict{nf.Unknown, err.Error()}
	}
	v := verdict{nf.Status(result.Status), result.Message}
	if v.status == nf.StatusDeleting {
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

var rules = map[schema.GroupKind]func(*unstructured.Unstructured, verdict) verdict{
	{Group: "apps", Kind: "Deployment"}:  deployment,
	{Group: "apps", Kind: "StatefulSet"}: statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   observed,
	{Group: "apps", Kind: "ReplicaSet"}:  observed,
	{Kind: "ReplicationController"}:      observed,
	{Group: "batch", Kind: "Job"}:        job,
	{Kind: "Pod"}:                        pod,
	{Kind: "PersistentVolumeClaim"}:      claim,
}

// observed holds back a verdict until the controller has seen the object at
// all; kstatus takes a missing observedGeneration for a kind without one.
func observed(u *unstructured.Unstructured, v verdict) verdict {
	if v.status != nf.InProgress && integer(u, -1, "status", "observedGeneration") < u.GetGeneration() {
		return verdict{nf.InProgress, "its controller has not seen it yet"}
	}
	return v
}

// deployment counts one that is paused as settled: it does as it is told, and
// nothing will change until spec.paused does.
func deployment(u *unstructured.Unstructured, v verdict) verdict {
	paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
	switch failed, message := condition(u, "Progressing", "False"); {
	case paused:
		return observed(u, verdict{nf.Current, "its rollout is paused"})
	case v.status == nf.StatusFailed && failed:
		v.message = message
	}
	return observed(u, v)
}

// statefulSet waits for the pods of one with the OnDelete strategy to be ready,
// of whatever revision; kstatus does not wait at all.
func statefulSet(u *unstructured.Unstructured, v verdict) verdict {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	if want, ready := integer(u, 1, "spec", "replicas"), integer(u, 0, "status", "readyReplicas"); strategy == "OnDelete" && ready < want {
		v = verdict{nf.InProgress, fmt.Sprintf("Ready: %d/%d", ready, want)}
	}
	return observed(u, v)
}

// job is settled when its work is done; to kstatus it is when it has begun.
func job(u *unstructured.Unstructured, v verdict) verdict {
	complete, _ := condition(u, "Complete", "True")
	failed, why := condition(u, "Failed", "True")
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	switch {
	case failed:
		return verdict{nf.StatusFailed, why}
	case complete:
		return v
	case suspended:
		return verdict{nf.Current, "it is suspended"}
	}
	return verdict{nf.InProgress, v.message}
}

// done reports whether an object had work to do, and has done it.
func done(u *unstructured.Unstructured) bool {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		complete, _ := condition(u, "Complete", "True")
		return complete
	case schema.GroupKind{Kind: "Pod"}:
		return text(u.Object, "status", "phase") == "Succeeded"
	}
	return false
}

// pod takes a pod that failed for failed, and one without a node for one that
// may still get it; kstatus asks the clock.
func pod(u *unstructured.Unstructured, v verdict) verdict {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	unscheduled, why := condition(u, "PodScheduled", "False")
	switch {
	case phase == "Failed":
		message, _, _ := unstructured.NestedString(u.Object, "status", "message")
		if message == "" {
			message = "its containers ended with an error"
		}
		return verdict{nf.StatusFailed, message}
	case phase == "Pending" && unscheduled:
		return verdict{nf.InProgress, why}
	}
	return v
}

// claim counts a claim that is pending as settled: with the binding mode
// WaitForFirstConsumer it is bound only when a pod uses it, and that pod is
// waited for itself.
func claim(u *unstructured.Unstructured, v verdict) verdict {
	switch phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase {
	case "Pending":
		return verdict{nf.Current, "it is bound when a pod uses it"}
	case "Lost":
		return verdict{nf.StatusFailed, "its volume is lost"}
	}
	return v
}

// condition reports whether a condition of the type has the status, and its
// message.
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

// text returns a string in an object, or "" when there is none.
func text(object map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(object, path...)
	return s
}
