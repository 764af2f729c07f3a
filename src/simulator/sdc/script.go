package sdc

import (
	"net/http"
	"strings"
	"time"
)

// maxEntries is the number of requests that the journal keeps.
const maxEntries = 100_000

// Fault makes requests fail, or take time.
type Fault struct {
	Path     string        // text in their paths; empty: any
	Times    int           // requests that it applies to; 1 by default, and all until Repair if negative
	Before   func()        // runs before the request
	Delay    time.Duration // before the request
	Status   int           // sent instead of executing the request
	Redirect string        // the URL of a redirect that is sent likewise
	Damage   bool          // change a bit of the artifact
	Longer   int64         // bytes that are sent after the artifact
	Cut      bool          // close the connection instead of responding
}

// Script adds faults. A request takes the first one that applies to it.
func (s *Simulator) Script(faults ...Fault) {
	for _, f := range faults {
		s.faults.Add(f, f.Times)
	}
}

// Repair removes all faults.
func (s *Simulator) Repair() { s.faults.Clear() }

// takeFault returns the fault of a request, or one that does nothing.
func (s *Simulator) takeFault(path string) Fault {
	return s.faults.Take(func(f Fault) bool { return strings.Contains(path, f.Path) })
}

// Entry is a request in the journal.
type Entry struct {
	Method string
	URI    string // with its query
	Status int    // of the response, even if it was lost
	Code   string // of the error, such as "SVC4642"
}

// Journal returns the requests since the last call, oldest first; at most the last
// 100,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// record adds a request to the journal.
func (s *Simulator) record(r *http.Request, resp response) {
	s.journal.Add(Entry{Method: r.Method, URI: r.URL.RequestURI(), Status: resp.status, Code: resp.code})
}
