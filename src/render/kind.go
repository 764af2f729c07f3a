package render

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindOrder compares two kinds, ignoring case, by the default order in which
// they are installed. Kinds that others live in or refer to come first, then
// workloads, then kinds that act on workloads. Unknown kinds, including all
// custom resources, follow by name. Kinds that intercept requests to the API
// server are last, since they intercept before they can respond.
func KindOrder(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// SameOrder reports whether KindOrder puts two kinds next to each other only by
// their names: both are unknown.
func SameOrder(a, b string) bool { return rank(strings.ToLower(a)) == rank(strings.ToLower(b)) }

// rank returns the position of a kind. All unknown kinds have the same one.
func rank(kind string) int {
	if i := slices.Index(firstKinds, kind); i >= 0 {
		return i
	}
	return len(firstKinds) + 1 + slices.Index(lastKinds, kind)
}

// networkattachmentdefinition is a custom resource, but pods that name one do
// not start without it.
var firstKinds = []string{
	"namespace", "customresourcedefinition",
	"priorityclass", "runtimeclass", "storageclass", "ingressclass",
	"resourcequota", "limitrange", "networkpolicy", "networkattachmentdefinition",
	"serviceaccount", "clusterrole", "clusterrolebinding", "role", "rolebinding",
	"secret", "configmap", "persistentvolume", "persistentvolumeclaim",
	"service", "endpoints", "endpointslice", "poddisruptionbudget", "podtemplate",
	"daemonset", "statefulset", "pod", "replicationcontroller", "replicaset", "deployment",
	"horizontalpodautoscaler", "job", "cronjob", "ingress",
}

var lastKinds = []string{
	"apiservice",
	"validatingadmissionpolicy", "validatingadmissionpolicybinding",
	"mutatingadmissionpolicy", "mutatingadmissionpolicybinding",
	"mutatingwebhookconfiguration", "validatingwebhookconfiguration",
}

// The kinds that Order distinguishes, as "Kind.group", or as "Kind" in the core
// group.
var (
	definitions = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io"}

	prerequisites = []string{
		"ServiceAccount", "ResourceQuota", "LimitRange", "PriorityClass.scheduling.k8s.io",
		"RuntimeClass.node.k8s.io", "StorageClass.storage.k8s.io",
	}

	workloads = []string{
		"Pod", "ReplicationController", "Deployment.apps", "StatefulSet.apps",
		"DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "CronJob.batch",
	}

	protected = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolumeClaim", "Cluster.cluster.x-k8s.io"}

	// permanent are the kinds that cannot be created again as they were.
	permanent = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolumeClaim", "PersistentVolume", "Cluster.cluster.x-k8s.io"}
)

// Protected reports whether deleting an object of the kind loses something that
// cannot be restored: data, or everything in it. Such a deletion must be
// confirmed.
func Protected(kind schema.GroupKind) bool { return slices.Contains(protected, kind.String()) }

// DeletionTurn returns when objects of a kind are deleted with others of an instance.
// The turns from 1 to LastTurn come first, each after the one before has ended.
// Objects of turn 0 follow, from the last stage to the first.
//
// A Cluster of Cluster API is alone in the first turn: its controller deletes its
// machines in the right order, as long as everything that it needs for that exists.
// The objects that describe its parts follow. What they refer to, such as templates,
// classes, and Secrets with the credentials of the infrastructure, has no turn.
func DeletionTurn(kind schema.GroupKind) int {
	for i, kinds := range turns {
		if slices.ContainsFunc(kinds, func(p kindPattern) bool { return p.matches(kind) }) {
			return i + 1
		}
	}
	return 0
}

// LastTurn is the last turn of DeletionTurn.
const LastTurn = 2

var turns = [LastTurn][]kindPattern{
	{{group: "cluster.x-k8s.io", kind: "Cluster"}},
	{
		{group: "cluster.x-k8s.io", not: isReferredTo}, {group: "controlplane.cluster.x-k8s.io", not: isReferredTo},
		{group: "bootstrap.cluster.x-k8s.io", not: isReferredTo}, {group: "infrastructure.cluster.x-k8s.io", not: isReferredTo},
		{group: "addons.cluster.x-k8s.io"},
	},
}

// kindPattern matches the kinds of a group.
type kindPattern struct {
	group string
	kind  string            // empty: all
	not   func(string) bool // kinds that it does not match; nil: none
}

func (p kindPattern) matches(k schema.GroupKind) bool {
	return k.Group == p.group && (p.kind == "" || k.Kind == p.kind) && (p.not == nil || !p.not(k.Kind))
}

// isReferredTo reports whether objects of a kind of Cluster API are only referred to: no
// machine is part of them.
func isReferredTo(kind string) bool {
	return strings.HasSuffix(kind, "Template") || strings.HasSuffix(kind, "Identity") || kind == "ClusterClass"
}

// Settles reports whether objects of a kind are deleted only when those of a turn are
// Current: machines that are being replaced may still refer to their former template.
func Settles(kind schema.GroupKind) bool {
	return strings.HasSuffix(kind.Group, "cluster.x-k8s.io") && isReferredTo(kind.Kind)
}

func isDefinition(o Object) bool   { return slices.Contains(definitions, groupKind(o)) }
func isPrerequisite(o Object) bool { return slices.Contains(prerequisites, groupKind(o)) }
func isWorkload(o Object) bool     { return slices.Contains(workloads, groupKind(o)) }

func groupKind(o Object) string { return o.GroupVersionKind().GroupKind().String() }
