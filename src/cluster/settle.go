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

// recoveryTime is how long a failure may last that an object had before an apply that did
// not change it. What has caused the failure may be gone, and a controller tries again
// only after a delay: the kubelet pulls an image after 10 s, then after 20 s.
const recoveryTime = 20 * time.Second

// recovering returns the status of an object that has failed, of a target that the apply
// did not change: nf.InProgress while the failure does not count yet. The caller holds the
// lock.
func (v *view) recovering(u *unstructured.Unstructured, is objectStatus) objectStatus {
	counts := v.since.Add(recoveryTime)
	if !time.Now().Before(counts) || hasFailedForGood(u) {
		return is
	}
	v.due[nf.RefOf(u).Key()] = counts
	return objectStatus{nf.InProgress, fmt.Sprintf("%s; it had failed before, and has %v to recover", is.message, recoveryTime)}
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
