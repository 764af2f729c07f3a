package render

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindOrder compares two kinds, in any case of letters, by when they should be
// installed if nothing else is known: what others live in or refer to comes
// first, then workloads, then what acts on workloads. Kinds that are not known,
// among them all custom resources, follow by name, and whatever intercepts
// requests to the API server is last, since it does so before it works.
func KindOrder(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// rank is the place of a kind; custom resources share one.
func rank(kind string) int {
	if i := slices.Index(firstKinds, kind); i >= 0 {
		return i
	}
	return len(firstKinds) + 1 + slices.Index(lastKinds, kind)
}

// NetworkAttachmentDefinition is a custom resource, but pods that name one do
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

// The kinds that Order tells apart, as "Kind.group", or "Kind" in the core
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

	// permanent are the kinds that cannot be made again as they were.
	permanent = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolumeClaim", "PersistentVolume"}
)

// Protected reports whether an object of the kind takes with it what nobody can
// bring back: data, or all that lives in it. No change deletes one unless it is
// confirmed.
func Protected(kind schema.GroupKind) bool { return slices.Contains(protected, kind.String()) }

func isDefinition(o Object) bool   { return slices.Contains(definitions, groupKind(o)) }
func isPrerequisite(o Object) bool { return slices.Contains(prerequisites, groupKind(o)) }
func isWorkload(o Object) bool     { return slices.Contains(workloads, groupKind(o)) }

func groupKind(o Object) string { return o.GroupVersionKind().GroupKind().String() }
