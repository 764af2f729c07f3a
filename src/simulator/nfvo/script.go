package nfvo

import (
	"encoding/json"
	"time"
)

// maxEntries is the number of requests that the journal keeps.
const maxEntries = 10_000

// Fault changes the answer to a request for a grant.
type Fault struct {
	Times  int                  // requests that it applies to; 1 by default, and all until Repair if negative
	Before func()               // runs before the answer; it may wait
	Delay  time.Duration        // before the answer
	Status int                  // of an error; 403 refuses the occurrence
	Detail string               // of the error
	Later  int                  // the decision is pending for so many requests
	Edit   func(map[string]any) // changes the grant
	Raw    string               // is sent instead of the grant
	Cut    bool                 // the connection ends before the answer
}

// Entry is a request in the journal.
type Entry struct {
	Method string
	Path   string
	Status int // of the answer; 0 if there was none
	Body   json.RawMessage
}

// Script adds faults. A request takes the first one.
func (s *Simulator) Script(faults ...Fault) {
	for _, f := range faults {
		s.faults.Add(f, f.Times)
	}
}

// Repair removes all faults.
func (s *Simulator) Repair() { s.faults.Clear() }

// Journal returns the requests since the last call, oldest first; at most the last 10,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }
