package render

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Own adds the owner label and other labels to an object and to its templates
// of pods and jobs. The owner label takes precedence over the others. No other
// field changes: neither selectors nor any field of an unknown kind or version.
// A missing or malformed template stays as it is, for the API server to reject.
func Own(obj *unstructured.Unstructured, owner nf.Subject, others map[string]string) {
	labels := map[string]string{}
	maps.Copy(labels, others)
	delete(labels, nf.OwnerLabel)
	label, value := owner.Label()
	labels[label] = value
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

// Tag adds the owner label to an object but not to its templates, since a
// changed template would restart running pods.
func Tag(obj *unstructured.Unstructured, owner nf.Subject) {
	label, value := owner.Label()
	labelMetadata(obj.Object, map[string]string{label: value})
}

// Annotate sets an annotation of an object, unless its annotations are malformed.
func Annotate(obj *unstructured.Unstructured, name, value string) {
	if has := ensure(ensure(obj.Object, "metadata"), "annotations"); has != nil {
		has[name] = value
	}
}

// labelMetadata sets labels of an object or template, in place of nf.OwnerLabel,
// unless holder is nil.
func labelMetadata(holder map[string]any, labels map[string]string) {
	if has := ensure(ensure(holder, "metadata"), "labels"); has != nil {
		delete(has, nf.OwnerLabel)
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

// ensure returns the map in a field, and creates it if the field is missing. It
// returns nil if m is nil or the field is not a map.
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
