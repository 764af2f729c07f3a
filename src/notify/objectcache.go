package notify

import (
	"maps"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// objectCache caches the objects of all instances of one region.
type objectCache struct {
	mu        sync.Mutex
	kinds     map[string]*kindCache                // by kindKey
	listeners map[string]map[delay.Signal]struct{} // by owner
}

// kindCache caches the objects of one kind.
type kindCache struct {
	synced  bool                                // all existing objects have been seen, or cannot be
	guessed bool                                // they cannot be seen
	listed  map[string]bool                     // until synced: objects seen since the sequence began, by owner and key
	objects map[string]map[string]*cachedObject // by owner and Ref.Key
}

// cachedObject is one state of an object.
type cachedObject struct {
	ref    nf.Ref
	object map[string]any
	mark   func() string // its digest, computed on first use
}

func newObjectCache() *objectCache {
	return &objectCache{kinds: map[string]*kindCache{}, listeners: map[string]map[delay.Signal]struct{}{}}
}

// open starts caching a kind.
func (s *objectCache) open(kind string) *kindCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	kc := &kindCache{listed: map[string]bool{}, objects: map[string]map[string]*cachedObject{}}
	s.kinds[kind] = kc
	return kc
}

// close removes a kind. Later events for it have no effect.
func (s *objectCache) close(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, kind)
}

// begin marks the start of a new sequence, which yields all existing objects
// again. The objects seen before stay until it has synced.
func (s *objectCache) begin(kc *kindCache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kc.listed = map[string]bool{}
}

// apply applies an event and wakes the listeners of the object's owner.
func (s *objectCache) apply(kc *kindCache, e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := e.Ref.Key()
	switch {
	case e.Synced:
		s.complete(kc, false)
		return
	case e.Deleted:
		delete(kc.objects[e.Owner], key)
		if len(kc.objects[e.Owner]) == 0 {
			delete(kc.objects, e.Owner)
		}
	default:
		if kc.objects[e.Owner] == nil {
			kc.objects[e.Owner] = map[string]*cachedObject{}
		}
		object := e.Object
		kc.objects[e.Owner][key] = &cachedObject{e.Ref, object, sync.OnceValue(func() string { return digest(object) })}
		if kc.listed != nil {
			kc.listed[e.Owner+" "+key] = true
		}
	}
	wakeAll(s.listeners[e.Owner])
}

// markEmpty records that a kind has no objects. Unless atAll is set, they only cannot be
// seen; then it does nothing if the kind has already synced.
func (s *objectCache) markEmpty(kc *kindCache, atAll bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kc.synced && !atAll {
		return
	}
	kc.listed = map[string]bool{}
	s.complete(kc, !atAll)
}

// complete ends a sequence. The lock is held.
func (s *objectCache) complete(kc *kindCache, guessed bool) {
	kc.complete()
	kc.guessed = guessed
	for _, all := range s.listeners {
		wakeAll(all)
	}
}

// complete drops the objects that the current sequence has not yielded.
func (kc *kindCache) complete() {
	for owner, objects := range kc.objects {
		for key := range objects {
			if !kc.listed[owner+" "+key] {
				delete(objects, key)
			}
		}
	}
	kc.synced, kc.listed = true, nil
}

func wakeAll(listeners map[delay.Signal]struct{}) {
	for c := range listeners {
		c.Send()
	}
}

// subscribe puts a token into the channel whenever an object of the owner changes,
// until leave is called.
func (s *objectCache) subscribe(owner string, c delay.Signal) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[owner] == nil {
		s.listeners[owner] = map[delay.Signal]struct{}{}
	}
	s.listeners[owner][c] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners[owner], c)
		if len(s.listeners[owner]) == 0 {
			delete(s.listeners, owner)
		}
	}
}

// objectsOf returns an owner's objects of the given kinds, and those of the kinds that have
// synced: false for one whose objects cannot be seen.
func (s *objectCache) objectsOf(owner string, kinds []nf.Ref) (objects map[string]*cachedObject, known map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, known = map[string]*cachedObject{}, map[string]bool{}
	for _, k := range kinds {
		kind := kindKey(k)
		kc := s.kinds[kind]
		if kc == nil || !kc.synced {
			continue
		}
		known[kind] = !kc.guessed
		maps.Copy(objects, kc.objects[owner])
	}
	return objects, known
}
