package oof

import "time"

// maxEntries is the number of placements that the journal keeps.
const maxEntries = 10_000

// Fault makes placements fail, or changes their result.
type Fault struct {
	Times  int             // placements that it applies to; 1 by default, and all until Repair if negative
	Before func()          // runs before the placement; it may wait, or change A&AI
	Delay  time.Duration   // before the placement
	Err    error           // returned instead of placing
	Edit   func(*Solution) // changes the result of a placement that succeeded
}

// Script adds faults. A placement takes the first one.
func (s *Simulator) Script(faults ...Fault) {
	for _, f := range faults {
		s.faults.Add(f, f.Times)
	}
}

// Repair removes all faults.
func (s *Simulator) Repair() { s.faults.Clear() }

// Entry is a placement in the journal.
type Entry struct {
	Demand   Demand
	Solution Solution
	Err      error
}

// Journal returns the placements since the last call, oldest first; at most the last
// 10,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// Violations returns what peers have sent since the last call and HAS misunderstands; at
// most the last 10,000.
func (s *Simulator) Violations() []string { return s.violations.Take() }
