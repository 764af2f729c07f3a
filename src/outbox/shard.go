package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

// Queue is a sequence of requests that are delivered in order.
type Queue struct {
	Key     string // differs from that of all earlier queues
	Shard   string // queues of one shard are served by one replica
	Name    string // for logs
	Version string // if it changes, the feed is woken
}

// Shard is the queues that one replica serves together.
type Shard struct {
	Name string

	o      *Outbox
	wakeCh delay.Signal // holds a token when queues may have changed

	mu     sync.Mutex
	queues map[string]Queue // to serve, by key

	// Only Run uses these.
	workers  map[string]*worker
	surveyed time.Time

	// Only membership uses these.
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// assign sets the queues to serve. It wakes those that have changed.
func (s *Shard) assign(queues []Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former := s.queues
	s.queues = map[string]Queue{}
	for _, q := range queues {
		s.queues[q.Key] = q
		if former[q.Key] != q {
			s.o.review(q.Key)
		}
	}
	s.wakeCh.Send()
}

// assigned returns the queues to serve.
func (s *Shard) assigned() map[string]Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues // assign makes a new map each time
}

// Run serves the shard's queues until the context ends. It opens a feed for
// each; the feed may send the signal to have Next called. It must be called
// only once.
func (s *Shard) Run(ctx context.Context, open func(q Queue, wakeCh delay.Signal) Feed) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		queues := s.assigned()
		s.stopWorkers(queues)
		for key, q := range queues {
			if s.workers[key] != nil {
				continue
			}
			ctx, stop := context.WithCancel(ctx)
			wakeCh := delay.NewSignal()
			w := &worker{o: s.o, feed: open(q, wakeCh), queue: q, stop: stop, wakeCh: wakeCh}
			s.workers[key] = w
			running.Go(func() {
				defer stop()
				w.run(ctx)
			})
		}
		s.survey()
		delay.For(ctx, s.o.cfg.Survey, s.wakeCh)
	}
}

// stopWorkers stops the workers of removed queues.
func (s *Shard) stopWorkers(queues map[string]Queue) {
	for key, w := range s.workers {
		if _, ok := queues[key]; !ok {
			w.stop()
		}
		if w.over.Load() {
			delete(s.workers, key)
		}
	}
}

// survey makes all workers check for changes at the configured interval: not
// every change arrives as a signal.
func (s *Shard) survey() {
	if time.Since(s.surveyed) < s.o.cfg.Survey {
		return
	}
	s.surveyed = time.Now()
	for _, w := range s.workers {
		w.review()
	}
}
