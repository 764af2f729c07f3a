package lease

import (
	"maps"
	"time"
)

// Observations holds, for each of the other leases, its last observed value and
// the time since when it has that value. It is not safe for concurrent use.
type Observations[T comparable] struct {
	lasts time.Duration
	clock func() time.Time
	first map[string]observation[T]
}

type observation[T comparable] struct {
	lease T
	since time.Time
}

// NewObservations returns empty observations.
func NewObservations[T comparable](lasts time.Duration, clock func() time.Time) *Observations[T] {
	return &Observations[T]{lasts: lasts, clock: clock, first: map[string]observation[T]{}}
}

// Expired records the current value of a lease, and reports whether it has been
// the same for the whole lease time. The value may be anything that changes
// with the heartbeat.
func (s *Observations[T]) Expired(id string, now T) bool {
	before, known := s.first[id]
	if !known || before.lease != now {
		s.first[id] = observation[T]{lease: now, since: s.clock()}
		return false
	}
	return s.clock().Sub(before.since) >= s.lasts
}

// Retain deletes the observations of leases that no longer exist.
func (s *Observations[T]) Retain(there func(id string) bool) {
	maps.DeleteFunc(s.first, func(id string, _ observation[T]) bool { return !there(id) })
}
