package lifecycle

import (
	"context"
	"sync"
)

// queue hands operation ids to workers, first in first out. Pushing never
// blocks: its length is bounded by the operations that the store holds.
type queue struct {
	mu    sync.Mutex
	ids   []string
	ready chan struct{} // holds a token while ids may be non-empty
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) push(id string) {
	q.mu.Lock()
	q.ids = append(q.ids, id)
	q.mu.Unlock()
	q.signal()
}

// next waits for an id until the context ends.
func (q *queue) next(ctx context.Context) (string, error) {
	for {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if id, more := q.pop(); id != "" {
			if more {
				q.signal() // the token wakes one worker only; pass it on
			}
			return id, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-q.ready:
		}
	}
}

func (q *queue) pop() (id string, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ids) == 0 {
		return "", false
	}
	id, q.ids = q.ids[0], q.ids[1:]
	return id, len(q.ids) > 0
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
