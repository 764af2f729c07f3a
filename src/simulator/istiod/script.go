package istiod

import (
	"crypto/x509"
	"time"

	"google.golang.org/grpc/codes"
)

// maxEntries is the number of requests that the journal keeps.
const maxEntries = 10_000

// Fault makes requests fail, or changes their response.
type Fault struct {
	Times  int                           // requests that it applies to; 1 by default, and all until Repair if negative
	Before func()                        // runs before the request; it may wait, or rotate the root
	Code   codes.Code                    // sent instead of executing the request
	Edit   func(chain []string) []string // changes the response of a request that succeeded
}

// Script adds faults. A request takes the first one.
func (s *Simulator) Script(faults ...Fault) {
	for _, f := range faults {
		s.faults.Add(f, f.Times)
	}
}

// Unavailable makes the next n requests fail as if istiod was restarting; all until
// Repair if n is negative.
func (s *Simulator) Unavailable(n int) { s.Script(Fault{Times: n, Code: codes.Unavailable}) }

// Repair removes all faults.
func (s *Simulator) Repair() { s.faults.Clear() }

// takeFault returns the fault of a request, or one that does nothing.
func (s *Simulator) takeFault() Fault {
	return s.faults.Take(func(Fault) bool { return true })
}

// Entry is a request in the journal.
type Entry struct {
	Identity string                   // SPIFFE id of its token; empty if it was not accepted
	Cluster  string                   // id that it sent
	Lifetime time.Duration            // that it asks for
	CSR      *x509.CertificateRequest // nil if it was not accepted
	Code     codes.Code               // of the response
}

// Journal returns the requests since the last call, oldest first; at most the last
// 10,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }
