package operation

import (
	"maps"
	"slices"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// feed has the operations that run here, and notifies followers of an operation
// that it has changed. A slow follower misses versions, never the last one.
type feed struct {
	mu     sync.Mutex
	topics map[string]*topic       // only operations with followers
	live   map[string]nf.Operation // operations that run here, as last written
}

type topic struct {
	followers int
	latest    nf.Operation
	published bool          // latest is set
	changed   chan struct{} // closed when latest changes
}

func newFeed() *feed { return &feed{topics: map[string]*topic{}, live: map[string]nf.Operation{}} }

// setRunning records and publishes the state of an operation that runs here.
func (f *feed) setRunning(op nf.Operation) {
	f.mu.Lock()
	f.live[op.ID] = op
	f.mu.Unlock()
	f.publish(op)
}

// clearRunning records that an operation no longer runs here.
func (f *feed) clearRunning(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, id)
}

// running returns the operations that run here and have not ended.
func (f *feed) running() []nf.Operation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(f.live)), func(op nf.Operation) bool { return op.State.Final() })
}

// publish notifies the followers of an operation of its state.
func (f *feed) publish(op nf.Operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.topics[op.ID]
	if !ok || t.published && t.latest.State.Final() {
		return // no follower, or a late version after the final one
	}
	t.latest, t.published = op, true
	close(t.changed)
	t.changed = make(chan struct{})
}

// subscribe begins to follow an operation; leave must be called once.
func (f *feed) subscribe(id string) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.topics[id]
	if !ok {
		t = &topic{changed: make(chan struct{})}
		f.topics[id] = t
	}
	t.followers++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.followers--; t.followers == 0 {
			delete(f.topics, id)
		}
	}
}

// latest returns the newest version published since the first follower
// subscribed, if there is one, and a channel that closes when it is outdated.
func (f *feed) latest(id string) (op nf.Operation, ok bool, outdated <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topics[id]
	return t.latest, t.published, t.changed
}
