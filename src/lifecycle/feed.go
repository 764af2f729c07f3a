package lifecycle

import (
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// feed tells followers of an operation that it has changed. A slow follower
// misses versions, never the last one.
type feed struct {
	mu     sync.Mutex
	topics map[string]*topic // only operations that somebody follows
}

type topic struct {
	followers int
	latest    nf.Operation
	published bool          // latest is set
	changed   chan struct{} // closed when latest changes
}

func newFeed() *feed { return &feed{topics: map[string]*topic{}} }

func (f *feed) publish(op nf.Operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.topics[op.ID]
	if !ok || t.published && t.latest.State.Final() {
		return // nobody listens, or somebody speaks late: the last word has been said
	}
	t.latest, t.published = op, true
	close(t.changed)
	t.changed = make(chan struct{})
}

// follow begins to listen; leave must be called once for each follow.
func (f *feed) follow(id string) (leave func()) {
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

// latest returns the newest published version, if there was one since the
// first follower came, and a channel that closes when it is outdated.
func (f *feed) latest(id string) (op nf.Operation, ok bool, outdated <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topics[id]
	return t.latest, t.published, t.changed
}
