package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Own labels an object, and the pods (and jobs) that it makes, with its owner.
// Nothing else is changed: not the selectors, nor any field of a kind or
// version that we have never heard of. What is missing or malformed where a
// template should be stays so, for the API server to refuse.
func Own(obj *unstructured.Unstructured, owner string) {
	labelMetadata(obj.Object, owner)
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController", "Job.batch":
		labelMetadata(descend(obj.Object, "spec", "template"), owner)
	case "CronJob.batch":
		job := descend(obj.Object, "spec", "jobTemplate")
		labelMetadata(job, owner)
		labelMetadata(descend(job, "spec", "template"), owner)
	case "PodTemplate":
		labelMetadata(descend(obj.Object, "template"), owner)
	}
}

// labelMetadata sets the owner label of an object or template, if there is one.
func labelMetadata(holder map[string]any, owner string) {
	if labels := ensure(ensure(holder, "metadata"), "labels"); labels != nil {
		labels[nf.OwnerLabel] = owner
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
