package site

import (
	"context"
	"iter"
	"reflect"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Site returns a site, or nf.NotFound.
func (s *Sites) Site(ctx context.Context, id string) (nf.Site, error) { return s.sites.Get(ctx, id) }

// Sites returns every site, ordered by id.
func (s *Sites) Sites(ctx context.Context) ([]nf.Site, error) { return s.sites.List(ctx, "") }

// Operation returns an operation of a site, or nf.NotFound. Those of a site that
// is gone are kept for a while.
func (s *Sites) Operation(ctx context.Context, site, id string) (nf.SiteOperation, error) {
	return s.operations.Get(ctx, under(site, id))
}

// Operations returns the operations of a site, in the order in which they were
// accepted.
func (s *Sites) Operations(ctx context.Context, site string) ([]nf.SiteOperation, error) {
	return s.operations.List(ctx, site+"/")
}

// Running returns the operations that run here, from memory.
func (s *Sites) Running() []nf.SiteOperation {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]nf.SiteOperation, 0, len(s.running))
	for _, op := range s.running {
		if op.ID != "" && !op.State.Final() {
			all = append(all, op)
		}
	}
	return all
}

// followPause is how often an operation is looked at that another replica runs.
const followPause = time.Second

// Follow yields the events of an operation after the given number, and the
// operation whenever it changes, until it is final, the loop stops, the context
// ends (which is not an error), or Run has returned. The final state comes after
// the last event.
func (s *Sites) Follow(ctx context.Context, site, id string, after int) iter.Seq2[nf.SiteUpdate, error] {
	return func(yield func(nf.SiteUpdate, error) bool) {
		f := follower{s: s, site: site, id: id, told: after, yield: yield}
		for {
			outdated := s.changes()
			more, err := f.catchUp(ctx)
			if err != nil && (ctx.Err() == nil || f.last.ID == "") {
				yield(nf.SiteUpdate{}, err)
			}
			if err != nil || !more || !s.awaitChange(ctx, outdated) {
				return
			}
		}
	}
}

// follower is one who follows an operation.
type follower struct {
	s        *Sites
	site, id string
	yield    func(nf.SiteUpdate, error) bool

	last nf.SiteOperation // that was told
	told int              // number of the event that was told last
	part int              // the chunk that comes next
}

// catchUp yields what is new; false when there will be nothing more, or nobody
// wants to know.
func (f *follower) catchUp(ctx context.Context) (more bool, err error) {
	// The operation comes first: what happened before its end is then there.
	op, err := f.s.operations.Get(ctx, under(f.site, f.id))
	if err != nil {
		return false, err
	}
	if f.last.ID == "" && !op.State.Final() && !f.tell(op) {
		return false, nil
	}
	for {
		c, err := f.s.events.Get(ctx, part(f.id, f.part))
		if nf.KindOf(err) == nf.NotFound {
			break
		}
		if err != nil {
			return false, err
		}
		f.part++
		for _, e := range c.Events {
			if e.Number <= f.told {
				continue
			}
			f.told = e.Number
			if !f.yield(nf.SiteUpdate{Event: e}, nil) {
				return false, nil
			}
		}
	}
	return f.tell(op) && !op.State.Final(), nil
}

// tell yields the operation unless it was told already.
func (f *follower) tell(op nf.SiteOperation) bool {
	if reflect.DeepEqual(op, f.last) {
		return true
	}
	f.last = op
	return f.yield(nf.SiteUpdate{Operation: &op}, nil)
}

// changes returns a channel that closes when something of an operation is
// written here.
func (s *Sites) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// announce tells those who follow operations that something was written.
func (s *Sites) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Sites) awaitChange(ctx context.Context, outdated <-chan struct{}) bool {
	timer := time.NewTimer(followPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.stopped:
		return false
	case <-outdated:
	case <-timer.C:
	}
	return true
}
