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

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// trouble is why a workload does not get ready.
type trouble struct {
	message string
	fatal   bool // waiting does not mend it
}

// fatalReasons are the reasons for which a container waits that do not go away
// by themselves soon. ErrImagePull is not among them: it is the first failure,
// and a second one makes it ImagePullBackOff.
var fatalReasons = map[string]bool{
	"ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true,
	"CreateContainerConfigError": true, "CrashLoopBackOff": true,
}

// harmlessReasons are those for which every container waits for a while.
var harmlessReasons = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// workload reports whether a kind makes pods.
func workload(kind string) bool {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job":
		return true
	}
	return false
}

// health tells the status of an object, with the trouble of its pods.
func (v *view) health(u *unstructured.Unstructured) verdict {
	is := judge(u)
	if is.status != nf.InProgress && is.status != nf.StatusFailed {
		return is
	}
	if integer(u, u.GetGeneration(), "status", "observedGeneration") < u.GetGeneration() {
		return is // what is seen of its pods is of the generation before
	}
	switch why := v.trouble(u); {
	case why.fatal:
		return verdict{nf.StatusFailed, why.message}
	case why.message != "":
		is.message += "; " + why.message
	}
	return is
}

// trouble returns the worst that keeps an object from getting ready.
func (v *view) trouble(u *unstructured.Unstructured) trouble {
	switch u.GetKind() {
	case "Pod":
		return v.podTrouble(u)
	case "Deployment":
		return worst(refusal(u), v.podsTrouble(v.present(u), isAny))
	case "ReplicaSet", "ReplicationController":
		return worst(refusal(u), v.podsTrouble(u, isAny))
	case "StatefulSet":
		revision := text(u.Object, "status", "updateRevision")
		return worst(v.refusalEvent(u), v.podsTrouble(u, hasLabel("controller-revision-hash", revision)))
	case "DaemonSet":
		generation := u.GetAnnotations()["deprecated.daemonset.template.generation"]
		return worst(v.refusalEvent(u), v.podsTrouble(u, hasLabel("pod-template-generation", generation)))
	case "Job":
		return worst(v.refusalEvent(u), v.podsTrouble(u, isNotLooping))
	}
	return trouble{}
}

func worst(all ...trouble) trouble {
	return slices.MaxFunc(all, func(a, b trouble) int {
		return cmp.Compare(a.weight(), b.weight())
	})
}

func (t trouble) weight() int {
	switch {
	case t.fatal:
		return 2
	case t.message != "":
		return 1
	}
	return 0
}

// present returns the replica set of a Deployment's present template, or nil
// while it is not seen: its watch is another than the Deployment's, and after a
// change of replicas too the controller has seen a template before it makes the
// replica set. Pods of others may be broken without harm: an upgrade replaces
// them.
func (v *view) present(deployment *unstructured.Unstructured) *unstructured.Unstructured {
	want, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	for child := range v.childrenOf(deployment, "ReplicaSet") {
		template, _, _ := unstructured.NestedMap(child.Object, "spec", "template")
		unstructured.RemoveNestedField(template, "metadata", "labels", "pod-template-hash")
		if equality.Semantic.DeepEqual(want, template) {
			return child
		}
	}
	return nil
}

// podsTrouble returns the worst trouble of the pods that u controls and that
// count.
func (v *view) podsTrouble(u *unstructured.Unstructured, counts func(*unstructured.Unstructured) bool) trouble {
	found := trouble{}
	if u == nil {
		return found
	}
	for p := range v.childrenOf(u, "Pod") {
		if p.GetDeletionTimestamp() == nil && counts(p) {
			found = worst(found, v.podTrouble(p))
		}
	}
	return found
}

func isAny(*unstructured.Unstructured) bool { return true }

func hasLabel(name, value string) func(*unstructured.Unstructured) bool {
	return func(p *unstructured.Unstructured) bool { return value == "" || p.GetLabels()[name] == value }
}

// isNotLooping leaves the pods of a Job that crash to the Job: it has a limit
// of its own for how often they may.
func isNotLooping(p *unstructured.Unstructured) bool {
	for c := range containers(p) {
		if text(c, "state", "waiting", "reason") == "CrashLoopBackOff" {
			return false
		}
	}
	return true
}

// podTrouble says what keeps a pod from running, in the kubelet's or the
// scheduler's words.
func (v *view) podTrouble(p *unstructured.Unstructured) trouble {
	found := trouble{}
	for c := range containers(p) {
		reason := text(c, "state", "waiting", "reason")
		if harmlessReasons[reason] {
			continue
		}
		message := fmt.Sprintf("pod %s: container %s: %s", p.GetName(), text(c, "name"), reason)
		if more := text(c, "state", "waiting", "message"); more != "" {
			message += ": " + more
		}
		found = worst(found, trouble{message, fatalReasons[reason]})
	}
	if unscheduled, why := condition(p, "PodScheduled", "False"); unscheduled && p.GetKind() == "Pod" {
		found = worst(found, trouble{message: fmt.Sprintf("pod %s: %s", p.GetName(), why)})
	}
	if found.message == "" && text(p.Object, "status", "phase") == "Pending" {
		return v.hindrance(p)
	}
	return found
}

// hindrances are the reasons of events that alone tell why a pod's containers
// are not made: its network or its volumes are not there. The kubelet goes on
// trying, so none of them is fatal.
var hindrances = map[string]bool{
	"FailedCreatePodSandBox": true, "NetworkNotReady": true, "FailedMount": true, "FailedAttachVolume": true, "FailedMapVolume": true,
}

// hindrance returns the last event of a pod that tells why it is held up.
func (v *view) hindrance(p *unstructured.Unstructured) trouble {
	found, last := trouble{}, time.Time{}
	for e := range v.childrenOf(p, "Event") {
		if at, reason := eventTime(e), text(e.Object, "reason"); hindrances[reason] && !at.Before(last) {
			found, last = trouble{message: fmt.Sprintf("pod %s: %s: %s", p.GetName(), reason, text(e.Object, "message"))}, at
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

// members yields the objects of a list in an object.
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

// refusal says why the API server refused pods, as a condition tells. It is
// not fatal while pods of an older template are there, which may make room.
func refusal(u *unstructured.Unstructured) trouble {
	refused, message := condition(u, "ReplicaFailure", "True")
	if !refused {
		return trouble{}
	}
	replicas := integer(u, 0, "status", "replicas")
	older := u.GetKind() == "Deployment" && replicas > integer(u, 0, "status", "updatedReplicas")
	return trouble{message, noRoom(message) && !older}
}

// refusalEvent says why the API server refused pods, as an event tells: these
// workloads have no condition for it. An event counts when it is younger than
// the last change of the workload and than its youngest pod, because events
// outlive what they speak of.
func (v *view) refusalEvent(u *unstructured.Unstructured) trouble {
	since := lastApplied(u, v.manager)
	for p := range v.childrenOf(u, "Pod") {
		if made := p.GetCreationTimestamp().Time; made.After(since) {
			since = made
		}
	}
	for e := range v.childrenOf(u, "Event") {
		message := text(e.Object, "message")
		if text(e.Object, "reason") == "FailedCreate" && !eventTime(e).Before(since) && noRoom(message) {
			return trouble{message, true}
		}
	}
	return trouble{}
}

// lastApplied is when a manager last changed an object, by the API server's
// clock, in whole seconds.
func lastApplied(u *unstructured.Unstructured, manager string) time.Time {
	for _, f := range u.GetManagedFields() {
		if f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Time != nil {
			return f.Time.Time
		}
	}
	return u.GetCreationTimestamp().Time
}

// eventTime is when an event last happened, in whole seconds.
func eventTime(e *unstructured.Unstructured) time.Time {
	for _, path := range [...]string{"series.lastObservedTime", "lastTimestamp", "eventTime"} {
		if t, err := time.Parse(time.RFC3339, text(e.Object, strings.Split(path, ".")...)); err == nil {
			return t.Truncate(time.Second)
		}
	}
	return e.GetCreationTimestamp().Time
}
