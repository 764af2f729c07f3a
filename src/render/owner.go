package render

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Own labels an object, and the pods (and jobs) that it makes, with its owner
// and with the other labels; the owner's own goes before them. Nothing else is changed: not the selectors, nor any field of a kind or
// version that we have never heard of. What is missing or malformed where a
// template should be stays so, for the API server to refuse.
func Own(obj *unstructured.Unstructured, owner string, others map[string]string) {
	labels := map[string]string{}
	maps.Copy(labels, others)
	labels[nf.OwnerLabel] = owner
	labelMetadata(obj.Object, labels)
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController", "Job.batch",
		"VirtualMachine.kubevirt.io", "VirtualMachineInstanceReplicaSet.kubevirt.io":
		labelMetadata(descend(obj.Object, "spec", "template"), labels)
	case "CronJob.batch":
		job := descend(obj.Object, "spec", "jobTemplate")
		labelMetadata(job, labels)
		labelMetadata(descend(job, "spec", "template"), labels)
	case "PodTemplate":
		labelMetadata(descend(obj.Object, "template"), labels)
	}
}

// Tag labels an object with its owner, and nothing below it: what runs already
// would be restarted by another template.
func Tag(obj *unstructured.Unstructured, owner string) {
	labelMetadata(obj.Object, map[string]string{nf.OwnerLabel: owner})
}

// labelMetadata sets labels of an object or template, if there is one.
func labelMetadata(holder map[string]any, labels map[string]string) {
	if has := ensure(ensure(holder, "metadata"), "labels"); has != nil {
		for name, value := range labels {
			has[name] = value
		}
	}
}

// descend returns the map at the end of the path, or nil.
func descend(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// ensure returns the map in a field, making one where there is nothing; nil if
// there is something else, or no map to look in.
func ensure(m map[string]any, name string) map[string]any {
	if m == nil {
		return nil
	}
	if m[name] == nil {
		m[name] = map[string]any{}
	}
	child, _ := m[name].(map[string]any)
	return child
}
