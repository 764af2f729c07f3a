package nf

import (
	"fmt"
	"slices"
)

// HealthState says whether an instance's objects are in its region and ready.
// The state of an instance, in contrast, is the result of its last change.
type HealthState string

// The states of health.
const (
	Healthy       HealthState = "healthy"   // every object is Current
	Unhealthy     HealthState = "unhealthy" // an object is not
	HealthUnknown HealthState = "unknown"   // the objects cannot be read
)

// HealthStates lists every state.
func HealthStates() []HealthState { return []HealthState{Healthy, Unhealthy, HealthUnknown} }

// InstanceHealth is the health of one instance at one time. It is observed,
// never stored.
type InstanceHealth struct {
	State   HealthState
	Message string // why it is not healthy, or why healthy says little: names and statuses of objects, never their messages
}

// InstanceCount is the number of instances in one state and health, in one
// region.
type InstanceCount struct {
	Region string
	State  InstanceState
	Health HealthState
	Number int
}

// Assess returns the health of an instance from its state and the health of its
// objects. An object that is not ready outweighs one that cannot be read. An
// instance without objects is healthy if it is Ready, because none can be
// missing.
func Assess(state InstanceState, objects []Health) InstanceHealth {
	count := func(ill func(Health) bool) (n int, first Health) {
		for _, h := range objects {
			if ill(h) {
				if n++; n == 1 {
					first = h
				}
			}
		}
		return n, first
	}
	tell := func(state HealthState, n int, first Health) InstanceHealth {
		message := fmt.Sprintf("%s %s", first.Ref, troubles[first.Status])
		if n > 1 {
			message += fmt.Sprintf(", and %d more of %d objects are not healthy", n-1, len(objects))
		}
		return InstanceHealth{state, message}
	}
	if n, first := count(func(h Health) bool { return h.Status != Current && h.Status != Unknown }); n > 0 {
		return tell(Unhealthy, n, first)
	}
	if n, first := count(func(h Health) bool { return h.Status == Unknown }); n > 0 {
		return tell(HealthUnknown, n, first)
	}
	switch {
	case len(objects) == 0 && state == Ready:
		return InstanceHealth{Healthy, "it has no objects that show its health"}
	case len(objects) == 0:
		return InstanceHealth{HealthUnknown, "it has no objects"}
	}
	return InstanceHealth{State: Healthy}
}

var troubles = map[Status]string{
	InProgress: "is not ready", StatusFailed: "has failed", StatusDeleting: "is being deleted", Absent: "is missing", Unknown: "cannot be read",
}

// Judged returns the inventory items that an instance's health depends on.
// Objects created by hooks and volumes of StatefulSets are left out.
func Judged(inventory []Item) []Item {
	return slices.DeleteFunc(slices.Clone(inventory), func(it Item) bool { return it.Hook || it.Volume })
}

// Judge returns Current for a passing object that is absent or being deleted.
// Such an object is deleted by Kubernetes when it is done. All others are
// returned unchanged.
func (it Item) Judge(h Health) Health {
	if it.Passing && (h.Status == Absent || h.Status == StatusDeleting) {
		h.Status, h.Message, h.Done = Current, "it is complete, and is deleted automatically", true
	}
	return h
}
