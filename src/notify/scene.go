package notify

import (
	"maps"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// scene is what is seen of the objects of all instances of one region.
type scene struct {
	mu        sync.Mutex
	kinds     map[string]*showing                     // by kindKey
	listeners map[string]map[chan<- struct{}]struct{} // by owner
}

// showing is what is seen of one kind.
type showing struct {
	synced bool                         // all that is there has been seen
	round  map[string]bool              // until then: what was seen since the sequence began, by owner and key
	seen   map[string]map[string]*thing // by owner and Ref.Key
}

// thing is one state of one object.
type thing struct {
	ref    nf.Ref
	object map[string]any
	mark   func() string // its digest, made when somebody asks
}

func newScene() *scene {
	return &scene{kinds: map[string]*showing{}, listeners: map[string]map[chan<- struct{}]struct{}{}}
}

// open begins to show a kind.
func (s *scene) open(kind string) *showing {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := &showing{round: map[string]bool{}, seen: map[string]map[string]*thing{}}
	s.kinds[kind] = sh
	return sh
}

// close forgets a kind. What is told of it from then on is not heard.
func (s *scene) close(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, kind)
}

// begin says that all that is there will be told anew. What was seen stays until
// then.
func (s *scene) begin(sh *showing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.round = map[string]bool{}
}

// take takes an event in, and wakes those whom it concerns.
func (s *scene) take(sh *showing, e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := e.Ref.Key()
	switch {
	case e.Synced:
		sh.complete()
		for _, all := range s.listeners {
			wake(all)
		}
		return
	case e.Deleted:
		delete(sh.seen[e.Owner], key)
		if len(sh.seen[e.Owner]) == 0 {
			delete(sh.seen, e.Owner)
		}
	default:
		if sh.seen[e.Owner] == nil {
			sh.seen[e.Owner] = map[string]*thing{}
		}
		object := e.Object
		sh.seen[e.Owner][key] = &thing{e.Ref, object, sync.OnceValue(func() string { return digest(object) })}
		if sh.round != nil {
			sh.round[e.Owner+" "+key] = true
		}
	}
	wake(s.listeners[e.Owner])
}

// none says that there are no objects of a kind, at all or unless some were seen.
func (s *scene) none(sh *showing, atAll bool) {
	s.mu.Lock()
	synced := sh.synced
	s.mu.Unlock()
	if synced && !atAll {
		return
	}
	s.begin(sh)
	s.take(sh, Event{Synced: true})
}

// complete forgets what was not told in this round.
func (sh *showing) complete() {
	for owner, things := range sh.seen {
		for key := range things {
			if !sh.round[owner+" "+key] {
				delete(things, key)
			}
		}
	}
	sh.synced, sh.round = true, nil
}

func wake(listeners map[chan<- struct{}]struct{}) {
	for c := range listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// listen puts a token into the channel whenever something of the owner's has
// changed, until leave is called.
func (s *scene) listen(owner string, c chan<- struct{}) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[owner] == nil {
		s.listeners[owner] = map[chan<- struct{}]struct{}{}
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

// of returns what is there of an owner's objects, and of which of the kinds all
// is known.
func (s *scene) of(owner string, kinds []nf.Ref) (things map[string]*thing, known map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	things, known = map[string]*thing{}, map[string]bool{}
	for _, k := range kinds {
		kind := kindKey(k)
		sh := s.kinds[kind]
		if sh == nil || !sh.synced {
			continue
		}
		known[kind] = true
		maps.Copy(things, sh.seen[owner])
	}
	return things, known
}
