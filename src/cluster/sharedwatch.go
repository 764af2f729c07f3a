package cluster

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ObjectEvent is the new state of one object that has nf.OwnerLabel.
type ObjectEvent struct {
	Owner   string
	Ref     nf.Ref
	Object  map[string]any // shared by all subscribers: do not modify
	Deleted bool           // it was deleted or the owner's label changed; Object is its last state
	Synced  bool           // no object: the initial list is complete
}

// SharedWatch multiplexes one watch per region and kind, for the objects of all
// owners, to any number of subscribers. The watch starts with the first subscriber
// and stops with the last. SharedWatch is safe for concurrent use.
type SharedWatch struct {
	open func(ctx context.Context, region string) (*Cluster, error)

	mu         sync.Mutex
	broadcasts map[string]*broadcast // by region and kind
}

// NewSharedWatch returns a SharedWatch that has started no watch. Open returns the
// cluster of a region, without connecting.
func NewSharedWatch(open func(ctx context.Context, region string) (*Cluster, error)) *SharedWatch {
	return &SharedWatch{open: open, broadcasts: map[string]*broadcast{}}
}

// Subscribe yields each object of a kind that has nf.OwnerLabel, in any namespace
// and version, then an event with Synced set, and then each object that changes,
// until the loop stops or the context ends. A slow subscriber misses intermediate
// states of an object, but never the last, and does not delay others.
//
// An error ends the sequence: nf.Unsupported if the region does not serve the
// kind, nf.NotFound if the region is not registered, nf.Unreachable if it does
// not respond at first, was replaced, or no longer serves the version that is
// watched, nf.Failed if it denies access, or if it responds but the server of the
// kind's API is down. If a region becomes unreachable later, Subscribe waits for it.
func (w *SharedWatch) Subscribe(ctx context.Context, region string, kind nf.Ref) iter.Seq2[ObjectEvent, error] {
	return func(yield func(ObjectEvent, error) bool) {
		s, leave := w.join(ctx, region, kind)
		defer leave()
		for s.wait(ctx) {
			events, err := s.take()
			for _, e := range events {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(ObjectEvent{}, err)
				return
			}
		}
	}
}

// join adds a subscriber to the watch of a kind, and starts the watch for the
// first one. When the last one leaves, leave ends the watch and waits for that.
func (w *SharedWatch) join(ctx context.Context, region string, kind nf.Ref) (s *subscriber, leave func()) {
	key := region + "/" + nf.Ref{Group: kind.Group, Kind: kind.Kind}.Key()
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.broadcasts[key]
	if b == nil {
		b = &broadcast{last: map[string]ObjectEvent{}, subscribers: map[*subscriber]bool{}}
		w.broadcasts[key] = b
		// The watch outlives the context of the first subscriber while it has
		// others.
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		b.cancel = cancel
		b.running.Go(func() {
			err := w.broadcast(ctx, b, region, kind)
			w.drop(key, b)
			b.end(err)
		})
	}
	b.subscriptions++
	s = b.join()
	return s, func() {
		b.leave(s)
		w.mu.Lock()
		b.subscriptions--
		last := b.subscriptions == 0
		if last && w.broadcasts[key] == b {
			delete(w.broadcasts, key)
		}
		w.mu.Unlock()
		if last {
			b.cancel()
			b.running.Wait()
		}
	}
}

// drop removes a watch that has ended, so that no subscriber joins it.
func (w *SharedWatch) drop(key string, b *broadcast) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broadcasts[key] == b {
		delete(w.broadcasts, key)
	}
}

// initialListDone is the key that a stream marks as changed after its first full
// list. No object has this key.
const initialListDone = ""

// broadcast watches the kind and updates b until the context ends.
func (w *SharedWatch) broadcast(ctx context.Context, b *broadcast, region string, kind nf.Ref) error {
	c, err := w.open(ctx, region)
	if err != nil {
		return err
	}
	subject := kind.Kind + " objects"
	targets, hidden, err := c.client.apis.resolve(ctx, []nf.Ref{kind})
	if err != nil {
		return err
	}
	if why := hidden[kind.Key()]; why != nil {
		return nf.E(nf.Failed, "follow", subject, why)
	}
	if !targets[0].served || !targets[0].kind.can("list", "watch") {
		return nf.E(nf.Unsupported, "follow", subject, nil)
	}
	set := newStreamSet(c.client, nf.Subject{})
	set.addTarget(targets[0].kind.in(""), query{labels: nf.OwnerLabel}, initialListDone)
	set.streams[0].lasting = true // the objects may exist in another version
	var failure error
	err = set.run(ctx, func() bool {
		var changed map[string]bool
		changed, failure = set.view.take()
		b.publish(set.view.states(changed))
		return failure == nil
	})
	if nf.KindOf(failure) == nf.NotFound {
		return nf.E(nf.Unreachable, "follow", subject, fmt.Errorf("the cloud region no longer serves them in version %s", targets[0].kind.Version))
	}
	if failure != nil {
		return failure
	}
	return c.client.region.fail(ctx, "follow", subject, err)
}

// states returns the present state of objects, by key; nil for one that is
// gone.
func (v *view) states(keys map[string]bool) map[string]*unstructured.Unstructured {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[string]*unstructured.Unstructured, len(keys))
	for key := range keys {
		out[key] = v.objects[key]
	}
	return out
}
