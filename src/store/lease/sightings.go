package lease

import (
	"maps"
	"time"
)

// Sightings is since when one process has seen others' leases to be what they
// are. It is not safe for concurrent use.
type Sightings[T comparable] struct {
	lasts time.Duration
	clock func() time.Time
	first map[string]sighting[T]
}

type sighting[T comparable] struct {
	lease T
	since time.Time
}

// NewSightings returns the sightings of one who has seen nothing yet.
func NewSightings[T comparable](lasts time.Duration, clock func() time.Time) *Sightings[T] {
	return &Sightings[T]{lasts: lasts, clock: clock, first: map[string]sighting[T]{}}
}

// Lapsed notes a lease as it is now, and reports whether it has been seen to be
// like this for the whole of its time. Whatever moves with the beat will do as
// the lease.
func (s *Sightings[T]) Lapsed(id string, now T) bool {
	before, known := s.first[id]
	if !known || before.lease != now {
		s.first[id] = sighting[T]{lease: now, since: s.clock()}
		return false
	}
	return s.clock().Sub(before.since) >= s.lasts
}

// Retain forgets the leases that are none any more.
func (s *Sightings[T]) Retain(there func(id string) bool) {
	maps.DeleteFunc(s.first, func(id string, _ sighting[T]) bool { return !there(id) })
}
