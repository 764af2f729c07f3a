package cluster

import (
	"iter"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// view is what is known of an owner's objects, and of the replica sets, pods
// and events below them. Streams write it; one reader takes what changed.
type view struct {
	manager string               // the owner's field manager
	wake    chan struct{}        // holds one token while there is something to take
	told    map[string]nf.Health // what the reader was last told, by Ref.Key

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by Ref.Key
	below   map[types.UID]map[string]bool         // controller, or subject of an event → keys
	names   map[types.UID]string                  // → key
	changed map[string]bool                       // keys whose status may have changed
	err     error
}

func newView(owner string) *view {
	return &view{
		manager: manager(owner),
		wake:    make(chan struct{}, 1),
		told:    map[string]nf.Health{},
		objects: map[string]*unstructured.Unstructured{},
		below:   map[types.UID]map[string]bool{},
		names:   map[types.UID]string{},
		changed: map[string]bool{},
	}
}

// put records the present state of an object.
func (v *view) put(u *unstructured.Unstructured) (key string) {
	key = refOf(u).Key()
	v.mu.Lock()
	defer v.mu.Unlock()
	if old, ok := v.objects[key]; ok {
		v.unlink(key, old)
	}
	v.objects[key] = u
	v.names[u.GetUID()] = key
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

// touch marks an object and all above it as changed: a pod's trouble is that of
// its Deployment.
func (v *view) touch(key string) {
	for key != "" && !v.changed[key] {
		v.changed[key] = true
		if u := v.objects[key]; u != nil {
			key = v.names[parentOf(u)]
		}
	}
	v.rouse()
}

// look marks objects as changed, whether or not they exist.
func (v *view) look(keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range keys {
		v.changed[key] = true
	}
	v.rouse()
}

// end records an error that ends the watching.
func (v *view) end(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		v.err = err
	}
	v.rouse()
}

func (v *view) rouse() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// take hands over the keys that changed, and the error.
func (v *view) take() (map[string]bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := v.changed
	v.changed = map[string]bool{}
	return changed, v.err
}

// of returns the health of a target, or false when what is known speaks of
// another object or another generation than the target's.
func (v *view) of(target nf.Change) (nf.Health, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := v.objects[target.Key()]
	absent := nf.Health{Ref: target.Ref, Status: nf.Absent}
	switch {
	case u == nil:
		return absent, true
	case target.UID != "" && target.UID != string(u.GetUID()):
		// What was deleted is gone, though another has its name.
		return absent, target.Action == nf.Deleted
	case u.GetGeneration() < target.Generation:
		return nf.Health{}, false
	}
	is := v.health(u)
	return nf.Health{
		Ref: target.Ref, Status: is.status, Message: is.message,
		UID: string(u.GetUID()), Generation: u.GetGeneration(), Done: done(u),
	}, true
}

// childrenOf yields the objects of a kind below u, ordered by key. The lock is
// held.
func (v *view) childrenOf(u *unstructured.Unstructured, kind string) iter.Seq[*unstructured.Unstructured] {
	keys := make([]string, 0, len(v.below[u.GetUID()]))
	for key := range v.below[u.GetUID()] {
		if v.objects[key].GetKind() == kind {
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

// parentOf returns what an object is below of: its controller, or what an event
// is about.
func parentOf(u *unstructured.Unstructured) types.UID {
	if u.GetKind() == "Event" {
		return types.UID(text(u.Object, "involvedObject", "uid"))
	}
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		return c.UID
	}
	return ""
}
