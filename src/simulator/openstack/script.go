package openstack

import (
	"net/http"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// maxEntries is the number of requests that the journal keeps.
const maxEntries = 100_000

// Fault makes requests fail, or take time.
type Fault struct {
	Method string        // of the requests; empty: of any
	Path   string        // text in their paths; empty: any
	Times  int           // requests that it applies to; 1 by default, and all until Repair if negative
	Before func()        // runs before the request; it may wait, or change objects
	Delay  time.Duration // before the request
	Status int           // sent instead of executing the request
	Cut    bool          // execute the request, and close the connection instead of responding
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
func (s *Simulator) takeFault(r *http.Request) Fault {
	return s.faults.Take(func(f Fault) bool {
		return (f.Method == "" || f.Method == r.Method) && strings.Contains(r.URL.Path, f.Path)
	})
}

// Entry is a request in the journal. A body of Keystone is not kept, because it has
// a password.
type Entry struct {
	Method string
	URI    string // with its query
	Body   string
	Status int // of the response, even if it was lost
}

// Journal returns the requests since the last call, oldest first; at most the last
// 100,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// hold holds a request back as its fault demands, and reports whether its client is
// still there.
func (f Fault) hold(r *http.Request) bool { return script.Hold(r.Context(), f.Before, f.Delay) }
