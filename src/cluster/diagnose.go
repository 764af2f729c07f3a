package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// diagnosis is the reason why a workload is not ready; zero: none is known.
type diagnosis struct {
	message string
	fatal   bool // waiting does not help
	passing bool // waiting may help for some time, although it is fatal: see recoveryTime
}

// fatalReasons are the waiting reasons of containers that do not resolve soon
// by themselves. ErrImagePull is not included: it is the first failure, and the
// second one is reported as ImagePullBackOff.
var fatalReasons = map[string]bool{
	"ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true,
	configError: true, "CrashLoopBackOff": true,
}

// configError is the waiting reason of a container whose ConfigMap or Secret does not
// exist. Another controller may be about to create it.
const configError = "CreateContainerConfigError"

// revisionLabel is the label of a StatefulSet's pod that names its revision.
const revisionLabel = "controller-revision-hash"

// harmlessReasons are waiting reasons that every container passes through.
var harmlessReasons = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// workloads are the built-in kinds that create pods.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Kind: "ReplicationController"}: true, {Group: "batch", Kind: "Job"}: true,
}

// runs returns the kind name of a pod or a workload, otherwise "". It compares
// the group, because a custom resource may have the same kind name.
func runs(gk schema.GroupKind) string {
	if gk == podKind.GroupKind() || workloads[gk] {
		return gk.Kind
	}
	return ""
}

// isOf reports whether an object is of a kind, in any version.
func isOf(u *unstructured.Unstructured, k kind) bool {
	return u.GroupVersionKind().GroupKind() == k.GroupKind()
}

// health returns the status of an object, including why its pods do not run.
func (v *view) health(u *unstructured.Unstructured) objectStatus {
	is := v.settled(u, judge(v.rules, u, v.categories[u.GroupVersionKind().GroupKind()]))
	if is.status != nf.InProgress && is.status != nf.StatusFailed {
		return is
	}
	if integer(u, u.GetGeneration(), "status", "observedGeneration") < u.GetGeneration() {
		return is // the pods seen belong to the previous generation
	}
	switch why := v.diagnose(u); {
	case why.fatal:
		return objectStatus{nf.StatusFailed, why.message}
	case why.message != "":
		is.message += "; " + why.message
	}
	return is
}

// diagnose returns the most severe reason why an object is not ready.
func (v *view) diagnose(u *unstructured.Unstructured) diagnosis {
	switch runs(u.GroupVersionKind().GroupKind()) {
	case "Pod":
		return v.diagnosePod(u)
	case "Deployment":
		return worst(refusal(u), v.diagnosePods(v.present(u), isAny))
	case "ReplicaSet", "ReplicationController":
		return worst(refusal(u), v.diagnosePods(u, isAny))
	case "StatefulSet":
		revision := text(u.Object, "status", "updateRevision")
		return worst(v.refusalEvent(u), v.diagnosePods(u, hasLabel(revisionLabel, revision)))
	case "DaemonSet":
		generation := u.GetAnnotations()["deprecated.daemonset.template.generation"]
		return worst(v.refusalEvent(u), v.diagnosePods(u, hasLabel("pod-template-generation", generation)))
	case "Job":
		return worst(v.refusalEvent(u), v.diagnosePods(u, isNotLooping))
	}
	return diagnosis{}
}

func worst(all ...diagnosis) diagnosis {
	return slices.MaxFunc(all, func(a, b diagnosis) int {
		return cmp.Compare(a.weight(), b.weight())
	})
}

func (t diagnosis) weight() int {
	switch {
	case t.fatal && !t.passing:
		return 3
	case t.fatal:
		return 2
	case t.message != "":
		return 1
	}
	return 0
}

// present returns the replica set of a Deployment's current template. It
// returns nil if the replica set is not seen yet: it has another watch than the
// Deployment, and the controller may observe a template before it creates the
// replica set. Pods of other replica sets do not count, as an upgrade replaces
// them.
func (v *view) present(deployment *unstructured.Unstructured) *unstructured.Unstructured {
	want, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	for child := range v.childrenOf(deployment, replicaSetKind) {
		template, _, _ := unstructured.NestedMap(child.Object, "spec", "template")
		unstructured.RemoveNestedField(template, "metadata", "labels", "pod-template-hash")
		if equality.Semantic.DeepEqual(want, template) {
			return child
		}
	}
	return nil
}

// diagnosePods returns the most severe diagnosis of those pods that u controls
// and that counts accepts.
func (v *view) diagnosePods(u *unstructured.Unstructured, counts func(*unstructured.Unstructured) bool) diagnosis {
	found := diagnosis{}
	if u == nil {
		return found
	}
	for p := range v.childrenOf(u, podKind) {
		if p.GetDeletionTimestamp() == nil && counts(p) {
			found = worst(found, v.diagnosePod(p))
		}
	}
	return found
}

func isAny(*unstructured.Unstructured) bool { return true }

func hasLabel(name, value string) func(*unstructured.Unstructured) bool {
	return func(p *unstructured.Unstructured) bool { return value == "" || p.GetLabels()[name] == value }
}

// isNotLooping excludes the crashing pods of a Job, because the Job has its own
// limit for retries (backoffLimit).
func isNotLooping(p *unstructured.Unstructured) bool {
	for c := range containers(p) {
		if text(c, "state", "waiting", "reason") == "CrashLoopBackOff" {
			return false
		}
	}
	return true
}

// diagnosePod returns why a pod does not run, with the kubelet's or the
// scheduler's message.
func (v *view) diagnosePod(p *unstructured.Unstructured) diagnosis {
	found := diagnosis{}
	for c := range containers(p) {
		reason := text(c, "state", "waiting", "reason")
		if harmlessReasons[reason] {
			continue
		}
		message := fmt.Sprintf("pod %s: container %s: %s", p.GetName(), text(c, "name"), reason)
		if more := text(c, "state", "waiting", "message"); more != "" {
			message += ": " + more
		}
		found = worst(found, diagnosis{message, fatalReasons[reason], reason == configError})
	}
	if unscheduled, why := condition(p, "PodScheduled", "False"); unscheduled {
		found = worst(found, diagnosis{message: fmt.Sprintf("pod %s: %s", p.GetName(), why)})
	}
	if found.message == "" && text(p.Object, "status", "phase") == "Pending" {
		return v.blockingEvent(p)
	}
	return found
}

// blockingReasons are the event reasons for a pod whose containers are not created
// because its network or volumes are missing. Its status does not show this. None
// of them is fatal, because the kubelet retries.
var blockingReasons = map[string]bool{
	"FailedCreatePodSandBox": true, "NetworkNotReady": true, "FailedMount": true, "FailedAttachVolume": true, "FailedMapVolume": true,
}

// blockingEvent returns a diagnosis from the pod's last event that has a blocking
// reason.
func (v *view) blockingEvent(p *unstructured.Unstructured) diagnosis {
	found, last := diagnosis{}, time.Time{}
	for e := range v.childrenOf(p, eventKind) {
		if at, reason := eventTime(e), text(e.Object, "reason"); blockingReasons[reason] && !at.Before(last) {
			found, last = diagnosis{message: fmt.Sprintf("pod %s: %s: %s", p.GetName(), reason, text(e.Object, "message"))}, at
		}
	}
	return found
}

func containers(p *unstructured.Unstructured) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, list := range [...]string{"initContainerStatuses", "containerStatuses"} {
			for c := range members(p.Object, "status", list) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// members yields the objects of a list at a path of an object.
func members(object map[string]any, path ...string) iter.Seq[map[string]any] {
	list, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	all, _ := list.([]any)
	return func(yield func(map[string]any) bool) {
		for _, m := range all {
			if fields, ok := m.(map[string]any); ok && !yield(fields) {
				return
			}
		}
	}
}

// refusal returns why the API server rejected pods, from a condition. It is not
// fatal while pods of an older template exist, as their deletion may free
// quota.
func refusal(u *unstructured.Unstructured) diagnosis {
	refused, message := condition(u, "ReplicaFailure", "True")
	if !refused {
		return diagnosis{}
	}
	replicas := integer(u, 0, "status", "replicas")
	older := u.GetKind() == "Deployment" && replicas > integer(u, 0, "status", "updatedReplicas")
	return diagnosis{message: message, fatal: isPermanentRejection(message) && !older}
}

// refusalEvent returns why the API server rejected pods, from an event, for
// workloads that have no condition for it. An event counts if it is not older
// than the last apply of the workload and its youngest pod, because events stay
// after their cause is gone.
func (v *view) refusalEvent(u *unstructured.Unstructured) diagnosis {
	since := lastApplied(u, manager(v.owner))
	for p := range v.childrenOf(u, podKind) {
		if made := p.GetCreationTimestamp().Time; made.After(since) {
			since = made
		}
	}
	for e := range v.childrenOf(u, eventKind) {
		message := text(e.Object, "message")
		if text(e.Object, "reason") == "FailedCreate" && !eventTime(e).Before(since) && isPermanentRejection(message) {
			return diagnosis{message: message, fatal: true}
		}
	}
	return diagnosis{}
}

// lastApplied returns when a manager last applied an object, by the API
// server's clock, in whole seconds.
func lastApplied(u *unstructured.Unstructured, manager string) time.Time {
	for _, f := range u.GetManagedFields() {
		if f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Time != nil {
			return f.Time.Time
		}
	}
	return u.GetCreationTimestamp().Time
}

// eventTime returns when an event last occurred, in whole seconds.
func eventTime(e *unstructured.Unstructured) time.Time {
	for _, path := range [...]string{"series.lastObservedTime", "lastTimestamp", "eventTime"} {
		if t, err := time.Parse(time.RFC3339, text(e.Object, strings.Split(path, ".")...)); err == nil {
			return t.Truncate(time.Second)
		}
	}
	return e.GetCreationTimestamp().Time
}
