package northboundtest

import "github.com/multicloud-k8s/k8splugin/src/nf"

// HookStep returns a step of a hook. At holds the hook's index and the number
// of hooks.
func HookStep(phase nf.Phase, event nf.HookEvent, at [2]int, object nf.Ref) nf.Step {
	return nf.Step{StepID: nf.StepID{Phase: phase, Event: event, Index: at[0], Ref: object}, Of: at[1]}
}
