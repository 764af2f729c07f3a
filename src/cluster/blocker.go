package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// blocker returns the pod that blocks the rollout of a StatefulSet; zero: none. The
// controller replaces pods one after another, and waits until each is ready before it
// replaces another one. It even waits for a pod of a revision that was given up. Kubernetes'
// documentation calls the removal of such a pod a forced rollback. The caller holds the
// lock.
//
// A pod that may still become ready is left to the controller, unless its revision is
// neither the wanted one nor the last one that was rolled out completely.
func (v *view) blocker(u *unstructured.Unstructured) nf.HealPod {
	wanted, last := text(u.Object, "status", "updateRevision"), text(u.Object, "status", "currentRevision")
	inOrder := text(u.Object, "spec", "podManagementPolicy") != "Parallel" && text(u.Object, "spec", "updateStrategy", "type") != "OnDelete"
	if runs(u.GroupVersionKind().GroupKind()) != "StatefulSet" || !inOrder || wanted == "" {
		return nf.HealPod{}
	}
	partitioned := integer(u, 0, "spec", "updateStrategy", "rollingUpdate", "partition") > 0
	for p := range v.childrenOf(u, podKind) {
		revision := p.GetLabels()[revisionLabel]
		if revision == "" || revision == wanted || p.GetDeletionTimestamp() != nil || isReady(p) {
			continue
		}
		if revision != last || !partitioned && v.diagnosePod(p).fatal {
			return nf.HealPod{Ref: nf.RefOf(p), UID: string(p.GetUID()), Workload: nf.RefOf(u)}
		}
	}
	return nf.HealPod{}
}
