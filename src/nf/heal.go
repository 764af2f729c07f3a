package nf

import (
	"fmt"
	"strings"
	"time"
)

// DefaultPatience is how long a heal waits for a disruption budget by default.
const DefaultPatience = time.Minute

// HealTask is what an operation heals.
type HealTask struct {
	Missing  []Ref         `json:"missing,omitempty"` // objects that are created again
	Drifted  []Ref         `json:"drifted,omitempty"` // objects whose fields are applied again
	Pods     []HealPod     `json:"pods,omitempty"`    // pods that are evicted, one after another
	Force    bool          `json:"force,omitempty"`   // the pods are deleted, whatever the disruption budgets say
	Patience time.Duration `json:"patience,omitempty"`

	Grace *time.Duration `json:"grace,omitempty"` // of pods that are deleted; nil: their own grace period
}

// HealPod is a pod that is to be replaced.
type HealPod struct {
	Ref
	UID      string `json:"uid"`
	Workload Ref    `json:"workload"`        // the object of the instance whose pods it is one of
	Sound    bool   `json:"sound,omitempty"` // the workload was ready when the heal was accepted, and is waited for between two of its pods
}

// checkPods returns violations for pods that are not named "name" or
// "namespace/name".
func checkPods(pods []string) Violations {
	var v Violations
	seen := map[string]bool{}
	for i, p := range pods {
		field := fmt.Sprintf("pods[%d]", i)
		namespace, name, found := strings.Cut(p, "/")
		switch {
		case p == "" || found && (namespace == "" || name == "" || strings.Contains(name, "/")):
			v = append(v, Violation{Field: field, Message: `must be the name of a pod, or "namespace/name"`})
		case seen[p]:
			v = append(v, Violation{Field: field, Message: fmt.Sprintf("%q is given twice", p)})
		}
		seen[p] = true
	}
	return v
}
