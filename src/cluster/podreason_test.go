package cluster

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPodReason finds why a pod does not run.
func TestPodReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, status, want string }{
		"Starts":     {"a container that starts says nothing", `{"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}`, ""},
		"Crash loop": {"a container waits for its next start", `{"phase": "Running", "containerStatuses": [{"state": {"running": {}}}, {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}`, "CrashLoopBackOff"},
		"Init":       {"so does one that runs before the others", `{"initContainerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}], "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}`, "ImagePullBackOff"},
		"Node":       {"the node is lost", `{"reason": "NodeLost", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}`, "NodeLost"},
		"Taint":      {"the node's controller evicts it", `{"conditions": [{"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]}`, "DeletionByTaintManager"},
		"No longer":  {"a condition that is not met says nothing", `{"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "DeletionByTaintManager"}]}`, ""},
		"None":       {"there is no status yet", `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status map[string]any
			if err := json.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			if got := podReason(&unstructured.Unstructured{Object: map[string]any{"status": status}}); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
