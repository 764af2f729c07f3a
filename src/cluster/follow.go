package cluster

import (
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Sight is the state of one object that bears nf.OwnerLabel.
type Sight struct {
	Owner   string
	Ref     nf.Ref
	Object  map[string]any // shared with whoever else sees it: not to be changed
	Deleted bool           // it is gone, or the owner's no more; Object is what it was last
	Synced  bool           // no object: all that is there has been told
}

// Lookout watches the objects of all owners together: each kind of a region
// once, however many follow it, and only while somebody does. It is safe for
// concurrent use.
type Lookout struct {
	open func(ctx context.Context, region string) (*Cluster, error)

	mu     sync.Mutex
	shared map[string]*sharing // by region and kind
}

// NewLookout returns a lookout that nobody uses yet. Open returns the cluster of
// a region, without dialling.
func NewLookout(open func(ctx context.Context, region string) (*Cluster, error)) *Lookout {
	return &Lookout{open: open, shared: map[string]*sharing{}}
}

// Follow yields each object of a kind that bears nf.OwnerLabel, in whatever
// namespace and version, then a Sight that is Synced, and then each object that
// changes, until the loop stops or the context ends. Who is slow misses states
// of an object, never the last one, and holds nobody up.
//
// An error ends the sequence: nf.Unsupported when the region does not serve the
// kind, nf.NotFound when it is not registered, nf.Unreachable when it gives no
// answer at first or was replaced, nf.Failed when it refuses. A region that
// stops answering later is waited for.
func (l *Lookout) Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[Sight, error] {
	return func(yield func(Sight, error) bool) {
		f, leave := l.join(ctx, region, kind)
		defer leave()
		for f.wait(ctx) {
			sights, err := f.take()
			for _, s := range sights {
				if ctx.Err() != nil || !yield(s, nil) {
					return
				}
			}
			if err != nil {
				yield(Sight{}, err)
				return
			}
		}
	}
}

// join lets a follower share the watch of a kind; the first one starts it. The
// last one who leaves ends it, and waits until it has ended.
func (l *Lookout) join(ctx context.Context, region string, kind nf.Ref) (f *follower, leave func()) {
	key := region + "/" + nf.Ref{Group: kind.Group, Kind: kind.Kind}.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shared[key]
	if s == nil {
		s = &sharing{last: map[string]Sight{}, followers: map[*follower]bool{}}
		l.shared[key] = s
		// It outlives the context of the first follower while there are others.
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s.cancel = cancel
		s.running.Go(func() {
			err := l.watch(ctx, s, region, kind)
			l.drop(key, s)
			s.end(err)
		})
	}
	s.users++
	f = s.admit()
	return f, func() {
		s.dismiss(f)
		l.mu.Lock()
		s.users--
		last := s.users == 0
		if last && l.shared[key] == s {
			delete(l.shared, key)
		}
		l.mu.Unlock()
		if last {
			s.cancel()
			s.running.Wait()
		}
	}
}

// drop makes sure that nobody joins a watch that has ended.
func (l *Lookout) drop(key string, s *sharing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared[key] == s {
		delete(l.shared, key)
	}
}

// everything is the key that a view is told of when its stream has been read
// once. No object has it.
const everything = ""

// watch keeps what is shared up to date until the context ends.
func (l *Lookout) watch(ctx context.Context, s *sharing, region string, kind nf.Ref) error {
	c, err := l.open(ctx, region)
	if err != nil {
		return err
	}
	subject := kind.Kind + " objects"
	targets, err := c.targetsOf(ctx, []nf.Ref{kind})
	if err != nil {
		return err
	}
	if !targets[0].served || !targets[0].kind.can("list", "watch") {
		return nf.E(nf.Unsupported, "follow", subject, nil)
	}
	v := newView("")
	source := &stream{
		c: c, view: v, place: targets[0].kind.in(""), query: query{labels: nf.OwnerLabel},
		keys: []string{everything}, known: map[string]int64{},
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		if c.guard.retired() {
			c.guard.CloseIdleConnections()
		}
	}()
	running.Go(func() { source.run(ctx) })
	for c.wait(ctx, v) {
		changed, err := v.take()
		s.tell(v.states(changed))
		if err != nil {
			return err
		}
	}
	return c.fail(ctx, "follow", subject, errReplaced)
}

// states returns the present state of objects, by key: nil for one that is gone.
func (v *view) states(keys map[string]bool) map[string]*unstructured.Unstructured {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[string]*unstructured.Unstructured, len(keys))
	for key := range keys {
		out[key] = v.objects[key]
	}
	return out
}
