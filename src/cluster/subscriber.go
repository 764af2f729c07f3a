package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// broadcast is the state of one watch, and its subscribers.
type broadcast struct {
	cancel        context.CancelFunc
	running       sync.WaitGroup
	subscriptions int // guarded by the SharedWatch's lock

	mu          sync.Mutex
	last        map[string]ObjectEvent // the existing objects, by Ref.Key
	synced      bool
	ended       bool
	err         error
	subscribers map[*subscriber]bool
}

// join adds a subscriber and queues the current state for it.
func (b *broadcast) join() *subscriber {
	s := &subscriber{wake: delay.NewSignal(), pending: map[string]ObjectEvent{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.last)) {
		s.put(ownKey(key, b.last[key]), b.last[key])
	}
	if b.synced {
		s.put(initialListDone, ObjectEvent{Synced: true})
	}
	if b.ended {
		s.end(b.err)
	}
	b.subscribers[s] = true
	return s
}

func (b *broadcast) leave(s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subscribers, s)
}

// publish passes the states of objects to all subscribers.
func (b *broadcast) publish(states map[string]*unstructured.Unstructured) {
	_, synced := states[initialListDone]
	delete(states, initialListDone)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(states)) {
		b.put(key, states[key])
	}
	if synced {
		b.synced = true
		b.send(initialListDone, ObjectEvent{Synced: true})
	}
}

// put passes on the new state of one object. If its owner has changed, it is
// reported as deleted for the previous owner.
func (b *broadcast) put(key string, u *unstructured.Unstructured) {
	before, known := b.last[key]
	var now ObjectEvent
	if u != nil {
		now = ObjectEvent{Owner: u.GetLabels()[nf.OwnerLabel], Ref: nf.RefOf(u), Object: u.Object}
	}
	if known && now.Owner != before.Owner {
		gone := before
		gone.Deleted = true
		delete(b.last, key)
		b.send(ownKey(key, gone), gone)
	}
	if now.Owner != "" {
		b.last[key] = now
		b.send(ownKey(key, now), now)
	}
}

// ownKey returns a separate key for each owner of an object, so that both the
// previous and the new owner get its state.
func ownKey(key string, e ObjectEvent) string { return e.Owner + " " + key }

func (b *broadcast) send(key string, e ObjectEvent) {
	for s := range b.subscribers {
		s.put(key, e)
	}
}

// end ends the sequence for all present and future subscribers.
func (b *broadcast) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.err = true, err
	for s := range b.subscribers {
		s.end(err)
	}
}

// subscriber queues the events that its reader has not taken yet: the last state
// of each object, in the order of the first change.
type subscriber struct {
	wake delay.Signal // holds one token if the queue is not empty

	mu      sync.Mutex
	pending map[string]ObjectEvent
	order   []string
	err     error
}

func (s *subscriber) put(key string, e ObjectEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waiting := s.pending[key]; !waiting {
		s.order = append(s.order, key)
	}
	s.pending[key] = e
	s.wake.Send()
}

func (s *subscriber) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.wake.Send()
}

// wait returns true if the queue is not empty, and false if the context has
// ended.
func (s *subscriber) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.wake:
		return true
	}
}

func (s *subscriber) take() ([]ObjectEvent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ObjectEvent, len(s.order))
	for i, key := range s.order {
		out[i] = s.pending[key]
	}
	s.pending, s.order = map[string]ObjectEvent{}, nil
	return out, s.err
}
