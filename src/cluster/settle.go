package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// observation is when a view has seen a generation of an object first, and a change of
// the object last. The times are this process's, because the API server's clock may
// differ.
type observation struct {
	uid        types.UID
	generation int64
	version    string
	first      time.Time
	changed    time.Time
}

// observe makes the view wait for the time after which a status counts.
func (v *view) observe() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.observed, v.since = map[string]observation{}, time.Now()
}

// recoveryTime is how long a failure may last that may pass: one that an object had before
// the apply, or one whose cause others may be about to remove. A controller tries again
// only after a delay: the kubelet pulls an image after 10 s, then after 20 s.
const recoveryTime = 20 * time.Second

// recovering returns the status of a target that has failed: nf.InProgress while the
// failure does not count yet. The caller holds the lock.
func (v *view) recovering(target nf.Change, u *unstructured.Unstructured, is objectStatus) objectStatus {
	key := target.Key()
	passing := v.diagnose(u).passing
	if !passing {
		delete(v.passing, key)
	} else if _, seen := v.passing[key]; !seen {
		v.passing[key] = time.Now()
	}
	counts, why := time.Time{}, "it had failed before, and has %v to recover"
	if target.Action == nf.Unchanged || isOverdueSinceBefore(u, lastApplied(u, manager(v.owner))) {
		counts = v.since.Add(recoveryTime)
	}
	if later := v.passing[key].Add(recoveryTime); passing && later.After(counts) {
		counts, why = later, "it has %v to recover"
	}
	if v.since.IsZero() || hasFailedForGood(u) || !time.Now().Before(counts) {
		return is
	}
	v.due[key] = counts
	return objectStatus{nf.InProgress, is.message + "; " + fmt.Sprintf(why, recoveryTime)}
}

// isOverdueSinceBefore reports whether a Deployment has exceeded its progress deadline
// not later than at a time, of the API server's clock. Its controller keeps that condition
// after a change of the template, until pods make progress.
func isOverdueSinceBefore(u *unstructured.Unstructured, at time.Time) bool {
	for c := range members(u.Object, "status", "conditions") {
		if text(c, "type") == "Progressing" && text(c, "reason") == "ProgressDeadlineExceeded" {
			since, err := time.Parse(time.RFC3339, text(c, "lastUpdateTime"))
			return err == nil && runs(u.GroupVersionKind().GroupKind()) == "Deployment" && !since.After(at)
		}
	}
	return false
}

// sight records the state of a custom resource. The caller holds the lock.
func (v *view) sight(key string, u *unstructured.Unstructured) {
	if v.observed == nil || !isCustom(u) {
		return
	}
	seen, now := v.observed[key], time.Now()
	if seen.uid != u.GetUID() || seen.generation != u.GetGeneration() {
		seen = observation{uid: u.GetUID(), generation: u.GetGeneration(), first: now}
	}
	if seen.version != u.GetResourceVersion() || seen.changed.IsZero() {
		seen.version, seen.changed = u.GetResourceVersion(), now
	}
	v.observed[key] = seen
}

// settled returns the status of an object by its verdict: nf.InProgress while it
// does not count yet. The caller holds the lock.
func (v *view) settled(u *unstructured.Unstructured, verdict readiness.Verdict) objectStatus {
	key := nf.RefOf(u).Key()
	delete(v.due, key)
	is := objectStatus{verdict.Status, verdict.Message}
	seen, ok := v.observed[key]
	if !ok {
		return is
	}
	var counts time.Time
	switch verdict.Wait {
	case readiness.NoWait:
		return is
	case readiness.ForStatus:
		counts = seen.first.Add(readiness.StatusTime)
		is = objectStatus{nf.InProgress, "its controller has not written a status yet"}
	case readiness.ForStillness:
		counts = seen.changed.Add(readiness.StillTime)
		if most := seen.first.Add(readiness.LongestStillness); most.Before(counts) {
			counts = most
		}
		is = objectStatus{nf.InProgress, fmt.Sprintf("it has changed less than %v ago", readiness.StillTime)}
	}
	if !time.Now().Before(counts) {
		return objectStatus{verdict.Status, verdict.Message}
	}
	v.due[key] = counts
	return is
}

// wakeWhenDue sets the timer to the time when the next status counts, and stops it if
// there is none.
func (v *view) wakeWhenDue(timer *time.Timer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	timer.Stop()
	if len(v.due) > 0 {
		next := slices.MinFunc(slices.Collect(maps.Values(v.due)), time.Time.Compare)
		timer.Reset(delay.Positive(time.Until(next)))
	}
}

// markDue marks the objects as changed whose statuses count now.
func (v *view) markDue() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, at := range v.due {
		if !time.Now().Before(at) {
			v.changed[key] = true
		}
	}
	v.wake.Send()
}
