package etcd

import (
	"sync"
	"time"
)

// maxRead is the time for which a list keeps the history that it reads. It allows
// for a backup that a client downloads slowly.
const maxRead = 15 * time.Minute

// readers are the lists in progress.
type readers struct {
	mu   sync.Mutex
	open map[*reader]struct{}
}

// reader is a list in progress.
type reader struct {
	revision int64 // at least this one, until the first page has arrived
	since    time.Time
}

// add adds a list that will read the given revision or a later one.
func (r *readers) add(revision int64) *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*reader]struct{}{}
	}
	one := &reader{revision: revision, since: time.Now()}
	r.open[one] = struct{}{}
	return one
}

func (r *readers) remove(one *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, one)
}

func (r *readers) reads(one *reader, revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.revision = revision
}

// oldest returns the oldest revision that is being read, but at most the given one.
func (r *readers) oldest(than int64, now time.Time) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.open {
		if now.Sub(one.since) < maxRead {
			than = min(than, one.revision)
		}
	}
	return than
}
