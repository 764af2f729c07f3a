package sdc

import (
	"context"
	"net/http"
	"slices"
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		if f.Times == 0 {
			f.Times = 1
		}
		s.faults = append(s.faults, &f)
	}
}

// Repair removes all faults.
func (s *Simulator) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault returns the fault of a request, or one that does nothing.
func (s *Simulator) takeFault(path string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *Fault) bool { return strings.Contains(path, f.Path) })
	if i < 0 {
		return Fault{}
	}
	f := s.faults[i]
	if f.Times--; f.Times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return *f
}

// hold holds a request back, and reports whether its client is still there.
func (f Fault) hold(ctx context.Context) bool {
	if f.Before != nil {
		f.Before()
	}
	if f.Delay <= 0 {
		return true
	}
	timer := time.NewTimer(f.Delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
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
func (s *Simulator) Journal() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.journal
	s.journal = nil
	return out
}

// record adds a request to the journal.
func (s *Simulator) record(r *http.Request, resp response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.journal) == maxEntries {
		s.journal = slices.Delete(s.journal, 0, maxEntries/10)
	}
	s.journal = append(s.journal, Entry{Method: r.Method, URI: r.URL.RequestURI(), Status: resp.status, Code: resp.code})
}
