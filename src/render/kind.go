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

	protected = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolumeClaim"}

	// permanent are the kinds that cannot be created again as they were.
	permanent = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolumeClaim", "PersistentVolume"}
)

// Protected reports whether deleting an object of the kind loses something that
// cannot be restored: data, or everything in it. Such a deletion must be
// confirmed.
func Protected(kind schema.GroupKind) bool { return slices.Contains(protected, kind.String()) }

func isDefinition(o Object) bool   { return slices.Contains(definitions, groupKind(o)) }
func isPrerequisite(o Object) bool { return slices.Contains(prerequisites, groupKind(o)) }
func isWorkload(o Object) bool     { return slices.Contains(workloads, groupKind(o)) }

func groupKind(o Object) string { return o.GroupVersionKind().GroupKind().String() }
