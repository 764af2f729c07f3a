package cluster

import (
	"iter"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// view holds the known state of an owner's objects, and of the replica sets,
// pods and events below them. Streams write it; a single reader takes the
// changes.
type view struct {
	owner    nf.Subject           // zero: objects of any owner
	wake     delay.Signal         // holds one token if there are changes
	reported map[string]nf.Health // the last health given to the reader, by Ref.Key

	rules      *readiness.Rules
	categories map[schema.GroupKind][]string // of the targets' kinds

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by Ref.Key
	below   map[types.UID]map[string]bool         // uid of controller, or of an event's subject → keys
	names   map[types.UID]string                  // uid → key
	changed map[string]bool                       // keys whose status may have changed
	err     error

	observed map[string]observation // of custom resources, by Ref.Key; nil: a status that counts only after a time counts at once
	since    time.Time              // when observe was called; zero: as observed
	due      map[string]time.Time   // when the statuses count that do not yet, by Ref.Key
	passing  map[string]time.Time   // when failures that may pass were seen first, by Ref.Key
	failed   map[string]failure     // of objects that have failed for good and are gone, by Ref.Key; only after observe
}

// failure is the failure of an object with a uid.
type failure struct {
	uid     types.UID
	message string
}

func newView(owner nf.Subject, rules *readiness.Rules) *view {
	return &view{
		owner:    owner,
		wake:     delay.NewSignal(),
		reported: map[string]nf.Health{},

		rules:      rules,
		categories: map[schema.GroupKind][]string{},

		objects: map[string]*unstructured.Unstructured{},
		below:   map[types.UID]map[string]bool{},
		names:   map[types.UID]string{},
		changed: map[string]bool{},
		due:     map[string]time.Time{},
		passing: map[string]time.Time{},
		failed:  map[string]failure{},
	}
}

// put records the present state of an object.
func (v *view) put(u *unstructured.Unstructured) (key string) {
	key = nf.RefOf(u).Key()
	v.mu.Lock()
	defer v.mu.Unlock()
	if old, ok := v.objects[key]; ok {
		v.unlink(key, old)
	}
	v.objects[key] = u
	v.names[u.GetUID()] = key
	v.sight(key, u)
	if parent := parentOf(u); parent != "" {
		if v.below[parent] == nil {
			v.below[parent] = map[string]bool{}
		}
		v.below[parent][key] = true
	}
	v.touch(key)
	return key
}

// drop records that an object is gone.
func (v *view) drop(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if u, ok := v.objects[key]; ok {
		v.touch(key)
		v.unlink(key, u)
		if !v.since.IsZero() && hasFailedForGood(u) {
			v.failed[key] = failure{u.GetUID(), v.health(u).message}
		}
		delete(v.passing, key)
		delete(v.observed, key)
		delete(v.due, key)
	}
}

func (v *view) unlink(key string, u *unstructured.Unstructured) {
	delete(v.objects, key)
	delete(v.names, u.GetUID())
	if siblings := v.below[parentOf(u)]; siblings != nil {
		delete(siblings, key)
		if len(siblings) == 0 {
			delete(v.below, parentOf(u))
		}
	}
}

// touch marks an object and all its parents as changed, because the
// diagnosis of a pod is that of its Deployment.
func (v *view) touch(key string) {
	for key != "" && !v.changed[key] {
		v.changed[key] = true
		if u := v.objects[key]; u != nil {
			key = v.names[parentOf(u)]
		}
	}
	v.wake.Send()
}

// markChanged marks objects as changed, whether or not they exist.
func (v *view) markChanged(keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range keys {
		v.changed[key] = true
	}
	v.wake.Send()
}

// end records the error that ends the watch.
func (v *view) end(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		v.err = err
	}
	v.wake.Send()
}

// take returns and clears the changed keys, and returns the error.
func (v *view) take() (map[string]bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := v.changed
	v.changed = map[string]bool{}
	return changed, v.err
}

// of returns the health of a target, or false if the known object has another
// uid or an older generation than the target.
func (v *view) of(target nf.Change) (nf.Health, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := v.objects[target.Key()]
	absent := nf.Health{Ref: target.Ref, Status: nf.Absent}
	switch {
	case u == nil && target.Action != nf.Deleted && target.UID != "" && target.UID == string(v.failed[target.Key()].uid):
		// Its time to live may have ended before its failure was taken.
		return nf.Health{Ref: target.Ref, Status: nf.StatusFailed, Message: v.failed[target.Key()].message, UID: target.UID}, true
	case u == nil:
		return absent, true
	case target.UID != "" && target.UID != string(u.GetUID()):
		// A deleted object is absent even if another has its name.
		return absent, target.Action == nf.Deleted
	case u.GetGeneration() < target.Generation:
		return nf.Health{}, false
	}
	is := v.health(u)
	if is.status != nf.StatusFailed {
		delete(v.passing, target.Key())
	}
	switch {
	case is.status == nf.Current && len(target.Former) > 0:
		is = v.afresh(u, target.Former, is)
	case is.status == nf.StatusFailed:
		is = v.recovering(target, u, is)
	}
	out := nf.Health{
		Ref: target.Ref, Status: is.status, Message: is.message,
		UID: string(u.GetUID()), Generation: u.GetGeneration(), Done: done(u),
	}
	observed := integer(u, 0, "status", "observedGeneration") >= u.GetGeneration()
	if is.status == nf.InProgress && observed && !v.since.IsZero() {
		out.Blocker = v.blocker(u)
	}
	return out, true
}

// childrenOf yields the objects of a kind below u, sorted by key. The caller
// holds the lock.
func (v *view) childrenOf(u *unstructured.Unstructured, k kind) iter.Seq[*unstructured.Unstructured] {
	keys := make([]string, 0, len(v.below[u.GetUID()]))
	for key := range v.below[u.GetUID()] {
		if isOf(v.objects[key], k) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return func(yield func(*unstructured.Unstructured) bool) {
		for _, key := range keys {
			if !yield(v.objects[key]) {
				return
			}
		}
	}
}

// parentOf returns the uid of an object's controller, or of an event's subject.
func parentOf(u *unstructured.Unstructured) types.UID {
	if isOf(u, eventKind) {
		return types.UID(text(u.Object, "involvedObject", "uid"))
	}
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		return c.UID
	}
	return ""
}
