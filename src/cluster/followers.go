package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sharing is one watch and those who follow it.
type sharing struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	users   int // the lookout's lock guards it

	mu        sync.Mutex
	last      map[string]Sight // of the objects that are there, by Ref.Key
	synced    bool
	ended     bool
	err       error
	followers map[*follower]bool
}

// admit adds a follower, who is told first of all that is known.
func (s *sharing) admit() *follower {
	f := &follower{wake: make(chan struct{}, 1), pending: map[string]Sight{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.last)) {
		f.put(ownKey(key, s.last[key]), s.last[key])
	}
	if s.synced {
		f.put(everything, Sight{Synced: true})
	}
	if s.ended {
		f.end(s.err)
	}
	s.followers[f] = true
	return f
}

func (s *sharing) dismiss(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followers, f)
}

// tell hands the states of objects on to all followers.
func (s *sharing) tell(states map[string]*unstructured.Unstructured) {
	_, synced := states[everything]
	delete(states, everything)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(states)) {
		s.put(key, states[key])
	}
	if synced {
		s.synced = true
		s.hand(everything, Sight{Synced: true})
	}
}

// put tells what became of one object. One that has got another owner is gone
// for the former.
func (s *sharing) put(key string, u *unstructured.Unstructured) {
	before, known := s.last[key]
	var now Sight
	if u != nil {
		now = Sight{Owner: u.GetLabels()[nf.OwnerLabel], Ref: refOf(u), Object: u.Object}
	}
	if known && now.Owner != before.Owner {
		gone := before
		gone.Deleted = true
		delete(s.last, key)
		s.hand(ownKey(key, gone), gone)
	}
	if now.Owner != "" {
		s.last[key] = now
		s.hand(ownKey(key, now), now)
	}
}

// ownKey tells an object that had two owners apart: each hears of it.
func ownKey(key string, s Sight) string { return s.Owner + " " + key }

func (s *sharing) hand(key string, sight Sight) {
	for f := range s.followers {
		f.put(key, sight)
	}
}

// end tells the followers, present and to come, that there will be nothing more.
func (s *sharing) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.err = true, err
	for f := range s.followers {
		f.end(err)
	}
}

// follower is what one who follows has not taken yet: of each object the last
// state, in the order in which they changed first.
type follower struct {
	wake chan struct{} // holds one token while there is something to take

	mu      sync.Mutex
	pending map[string]Sight
	order   []string
	err     error
}

func (f *follower) put(key string, s Sight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, waiting := f.pending[key]; !waiting {
		f.order = append(f.order, key)
	}
	f.pending[key] = s
	f.rouse()
}

func (f *follower) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.rouse()
}

func (f *follower) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// wait returns true when there is something to take, and false when the context
// has ended.
func (f *follower) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-f.wake:
		return true
	}
}

func (f *follower) take() ([]Sight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Sight, len(f.order))
	for i, key := range f.order {
		out[i] = f.pending[key]
	}
	f.pending, f.order = map[string]Sight{}, nil
	return out, f.err
}
