package readiness

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Verdict is the status of an object by a rule.
type Verdict struct {
	Status  nf.Status // nf.Current, nf.InProgress or nf.StatusFailed
	Message string
	Wait    Wait // what must pass before the status counts
}

// Wait is a time that must pass before a verdict counts. Until then, the object is
// nf.InProgress.
type Wait int

// The waits.
const (
	NoWait       Wait = iota
	ForStatus         // the object has had no status for StatusTime
	ForStillness      // the object has not changed for StillTime
)

// The times of the waits.
const (
	StatusTime = 5 * time.Second
	StillTime  = 2 * time.Second

	// LongestStillness limits the wait for an object that changes all the time. It
	// begins with the object's generation.
	LongestStillness = 30 * time.Second
)

// Silent reports whether an object has neither a condition nor an observed
// generation, so that nothing is known about its readiness.
func Silent(object map[string]any) bool {
	for range conditions(object) {
		return false
	}
	_, observed := number(object, "status", "observedGeneration")
	return !observed
}

// SilentVerdict is the verdict on an object that is Silent and for whose kind there
// is no rule.
func SilentVerdict() Verdict {
	return Verdict{nf.Current, "it exists; nothing else is known about its readiness, because it has no conditions and its kind has no readiness rule", ForStillness}
}

// generic returns the verdict of the checks that hold for all kinds: an older
// generation was observed, or a condition Reconciling or Stalled is true. It
// reports whether there is one.
func generic(object map[string]any) (Verdict, bool) {
	generation, _ := number(object, "metadata", "generation")
	if observed, found := number(object, "status", "observedGeneration"); found && observed < generation {
		return inProgress("its controller has observed generation %d, not yet %d", observed, generation), true
	}
	for c := range conditions(object) {
		says := cmp.Or(text(c, "message"), text(c, "reason"))
		switch {
		case text(c, "status") != "True":
		case text(c, "type") == "Reconciling":
			return inProgress("%s", cmp.Or(says, "it is being reconciled")), true
		case text(c, "type") == "Stalled":
			return Verdict{Status: nf.StatusFailed, Message: cmp.Or(says, "it is stalled")}, true
		}
	}
	return Verdict{}, false
}

func inProgress(format string, args ...any) Verdict {
	return Verdict{Status: nf.InProgress, Message: fmt.Sprintf(format, args...)}
}

// positive are types of conditions that are True for an object that is ready, in
// the order in which they explain one that is not.
var positive = [...]string{
	"Ready", "Available", "Synced", "Reconciled", "Healthy", "Installed", "Established", "NetworkCreated", "NetworkAllocationSucceeded", "Succeeded",
}

// explain returns why an object is not ready, as far as it says so itself: the
// message of a condition, or its phase.
func explain(object map[string]any) string {
	for _, kind := range positive {
		c := condition(object, kind)
		if is := text(c, "status"); is != "" && is != "True" {
			return fmt.Sprintf("%s is %s: %s", kind, is, cmp.Or(text(c, "message"), text(c, "reason"), "no reason is given"))
		}
	}
	for _, field := range [...]string{"phase", "printableStatus", "state", "health"} {
		if is := text(object, "status", field); is != "" {
			return fmt.Sprintf("its %s is %s", field, is)
		}
	}
	return "it is not ready yet"
}

// conditions yields the conditions of an object.
func conditions(object map[string]any) iter.Seq[map[string]any] {
	list, _ := at(object, "status", "conditions").([]any)
	return func(yield func(map[string]any) bool) {
		for _, item := range list {
			if c, ok := item.(map[string]any); ok && !yield(c) {
				return
			}
		}
	}
}

// condition returns the condition of a type, or nil.
func condition(object map[string]any, kind string) map[string]any {
	for c := range conditions(object) {
		if text(c, "type") == kind {
			return c
		}
	}
	return nil
}

// at returns the value at a path of an object, or nil.
func at(object map[string]any, path ...string) any {
	var value any = object
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func text(object map[string]any, path ...string) string {
	s, _ := at(object, path...).(string)
	return s
}

func number(object map[string]any, path ...string) (int64, bool) {
	switch n := at(object, path...).(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}
