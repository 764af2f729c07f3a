package script

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Faults are the faults that requests take. The zero value has none. Faults is safe for
// concurrent use.
type Faults[F any] struct {
	mu  sync.Mutex
	all []*scripted[F]
}

type scripted[F any] struct {
	fault F
	times int
}

// Add adds a fault for a number of requests: 0 is one, and a negative number is all until
// Clear.
func (s *Faults[F]) Add(fault F, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times == 0 {
		times = 1
	}
	s.all = append(s.all, &scripted[F]{fault, times})
}

// Clear removes all faults.
func (s *Faults[F]) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

// Take returns the first fault that applies to a request, or the zero value.
func (s *Faults[F]) Take(applies func(F) bool) (fault F) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(one *scripted[F]) bool { return applies(one.fault) })
	if i < 0 {
		return fault
	}
	one := s.all[i]
	if one.times--; one.times == 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	return one.fault
}

// Hold holds a request back, and reports whether its client is still there. Before may be
// nil.
func Hold(ctx context.Context, before func(), delay time.Duration) bool {
	if before != nil {
		before()
	}
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Journal keeps the last requests. It is safe for concurrent use.
type Journal[E any] struct {
	Most int // requests that it keeps

	mu  sync.Mutex
	all []E
}

// Add adds a request.
func (j *Journal[E]) Add(entry E) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.all) >= j.Most {
		j.all = slices.Delete(j.all, 0, len(j.all)/10+1)
	}
	j.all = append(j.all, entry)
}

// Take returns the requests since the last call, oldest first.
func (j *Journal[E]) Take() []E {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.all
	j.all = nil
	return out
}
