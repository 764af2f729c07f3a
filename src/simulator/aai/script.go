package aai

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// maxEntries is the number of requests that the journal keeps.
const maxEntries = 100_000

// Fault makes requests fail, or take time.
type Fault struct {
	Method string        // of the requests; empty: of any
	Path   string        // text in their paths; empty: any
	Times  int           // requests that it applies to; 1 by default, and all until Repair if negative
	Before func()        // runs before the request; it may wait, or change objects as another client
	Delay  time.Duration // before the request
	Status int           // sent instead of executing the request
	Code   int           // A&AI's number of an error, such as 7406, that is sent likewise
	Cut    bool          // close the connection instead of responding
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
func (s *Simulator) takeFault(method, path string) Fault {
	return s.faults.Take(func(f Fault) bool {
		return (f.Method == "" || f.Method == method) && strings.Contains(path, f.Path)
	})
}

// Entry is a request in the journal.
type Entry struct {
	Method        string
	URI           string // with its query
	AppID         string
	TransactionID string
	Body          []byte
	Changes       int    // operations of a bulk request; 1 for another change; 0 for a GET
	Status        int    // of the response, even if it was lost
	Code          string // of the error, such as "ERR.5.4.6114"
}

// Journal returns the requests since the last call, oldest first; at most the last
// 100,000.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// Violations returns the mistakes of clients since the last call that A&AI
// ignores.
func (s *Simulator) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.violations
	s.violations = nil
	return out
}

// record adds a request to the journal.
func (s *Simulator) record(r *http.Request, method string, body []byte, resp response) {
	c := callerOf(r.Header)
	e := Entry{
		Method: method, URI: r.URL.RequestURI(), AppID: c.appID, TransactionID: c.transactionID, Body: body,
		Changes: changes(method, body), Status: resp.status,
	}
	if resp.err != nil {
		e.Status, e.Code = codes[resp.err.code].status, codes[resp.err.code].shown
	}
	s.journal.Add(e)
}

// changes returns the number of changes that a request asks for.
func changes(method string, body []byte) int {
	var bulk struct {
		Operations   []json.RawMessage              `json:"operations"`
		Transactions []map[string][]json.RawMessage `json:"transactions"`
	}
	if method == http.MethodGet {
		return 0
	}
	if err := json.Unmarshal(body, &bulk); err != nil {
		return 1
	}
	n := len(bulk.Operations)
	for _, t := range bulk.Transactions {
		for _, operations := range t {
			n += len(operations)
		}
	}
	return max(n, 1)
}
