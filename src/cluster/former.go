package cluster

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Removing a pod does not change the generation of its workload, so the status of the
// workload says that all its pods are ready until its controller has noticed. Such a
// status counts more ready pods than exist.

// afresh returns the status of a workload that is Current, some of whose pods were
// removed. It is nf.InProgress while the workload's own status counts more ready pods
// than exist without these. The caller holds the lock.
func (v *view) afresh(u *unstructured.Unstructured, former []string, is objectStatus) objectStatus {
	ready := int64(0)
	for p := range v.allPodsOf(u) {
		condition, _ := condition(p, "Ready", "True")
		if condition && p.GetDeletionTimestamp() == nil && !slices.Contains(former, string(p.GetUID())) {
			ready++
		}
	}
	if countedReady(u) > ready {
		return objectStatus{nf.InProgress, "its status is older than the removal of its pods"}
	}
	return is
}

// allPodsOf yields the pods of a workload, of all its revisions. The caller holds the
// lock.
func (v *view) allPodsOf(u *unstructured.Unstructured) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		parents := []*unstructured.Unstructured{u}
		for set := range v.childrenOf(u, replicaSetKind) {
			parents = append(parents, set)
		}
		for _, parent := range parents {
			for p := range v.childrenOf(parent, podKind) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// countedReady returns how many ready pods the status of a workload counts; 0 if it does
// not say.
func countedReady(u *unstructured.Unstructured) int64 {
	switch runs(u.GroupVersionKind().GroupKind()) {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
		return integer(u, 0, "status", "readyReplicas")
	case "DaemonSet":
		return integer(u, 0, "status", "numberReady")
	}
	return 0
}
