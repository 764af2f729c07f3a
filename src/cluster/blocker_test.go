package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWatchOfAbandonedRevision gives up a StatefulSet's revision whose first pod does not
// become ready. Its controller would wait for that pod without end.
func TestWatchOfAbandonedRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		waits  string // why the first pod of the second revision waits; empty: it just is not ready
	}{
		"Broken":    {"the kubelet cannot start it", "CrashLoopBackOff"},
		"Not ready": {"it runs, and is not ready", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, ns := sandbox(t)
			revision := func(scheduler string) *unstructured.Unstructured {
				return workloadOf(t, ns, "StatefulSet", "db", scheduler, "serviceName: db, replicas: 2,")
			}
			await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", revision(scheduled)), nf.Current)
			mustApply(t, c, "vnf-1", revision(held))
			if tc.waits == "" {
				heldPods(t, ns, 1, func(*unstructured.Unstructured) {})
			} else {
				breakPods(t, c, ns, tc.waits, 1)
			}
			back := mustApply(t, c, "vnf-1", revision(scheduled))
			var removed []string
			for h, err := range c.Watch(t.Context(), instance("vnf-1"), back) {
				if err != nil || h.Status == nf.StatusFailed {
					t.Fatalf("%s: %+v, %v", tc.reason, h, err)
				}
				if h.Status == nf.Current {
					break
				}
				if h.Blocker.UID == "" {
					continue
				}
				if change, err := c.Evict(t.Context(), instance("vnf-1"), h.Blocker, nf.HealTask{Force: true}); err != nil || change.Action != nf.Deleted {
					t.Fatalf("%s: %+v, %v", tc.reason, change, err)
				}
				removed = append(removed, h.Blocker.Name)
			}
			diff(t, tc.reason+": only the pod of the second revision is in the way", []string{"db-1"}, removed)
		})
	}
}
