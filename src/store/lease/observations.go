package lease

import (
	"maps"
	"time"
)

// observations holds, for each of the other leases, its last observed value and
// the time since when it has that value. It is not safe for concurrent use.
type observations struct {
	lasts time.Duration
	clock func() time.Time
	first map[string]observation
}

type observation struct {
	lease int64
	since time.Time
}

// newObservations returns empty observations.
func newObservations(lasts time.Duration, clock func() time.Time) *observations {
	return &observations{lasts: lasts, clock: clock, first: map[string]observation{}}
}

// Expired records the current value of a lease, and reports whether it has been
// the same for the whole lease time. The value changes with the heartbeat.
func (s *observations) Expired(id string, now int64) bool {
	before, known := s.first[id]
	if !known || before.lease != now {
		s.first[id] = observation{lease: now, since: s.clock()}
		return false
	}
	return s.clock().Sub(before.since) >= s.lasts
}

// Retain deletes the observations of leases that no longer exist.
func (s *observations) Retain(there func(id string) bool) {
	maps.DeleteFunc(s.first, func(id string, _ observation) bool { return !there(id) })
}
