package main

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// request is one request for a change, and its results.
type request struct {
	Key      string
	Workload string // name of the instance
	Verb     string // create, upgrade, rollback, retry, undo, terminate, cancel
	Target   string // the operation to retry, undo or cancel
	Asked    content
	End      expectedEnd
	Keep     bool // on failure keep the result instead of undoing it
	Shared   bool // the instance shares its namespace with others
	Place    place
	Confirm  bool // repeated with the confirmation that the first response required

	Operation string   // accepted operation; empty: the request was rejected
	Instance  string   // of the instance
	Also      []string // operations in responses to repetitions of the request
	Status    int
	Problem   problem
	Cancelled bool // the service has accepted a request to cancel it
	Waited    time.Duration
}

// expectedEnd is the intended end of an operation.
type expectedEnd string

const (
	succeeds expectedEnd = "succeeds"
	fails    expectedEnd = "fails"      // its image cannot be pulled
	drags    expectedEnd = "never ends" // its pods never become ready: it is cancelled or exceeds its deadline
)

// place is the region and namespace of an instance.
type place struct{ Region, Namespace string }

// ledger records the requests, to compare the servers' records with.
type ledger struct {
	mu       sync.Mutex
	requests []request
	released map[string]bool // ids of the volumes that were created: whether they were released
}

// volume records that a volume was created or released.
func (l *ledger) volume(id string, released bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released == nil {
		l.released = map[string]bool{}
	}
	l.released[id] = released
}

func (l *ledger) volumes() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.released)
}

func (l *ledger) write(r request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// cancel records that the cancellation of an operation was accepted.
func (l *ledger) cancel(operation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.requests {
		if l.requests[i].Operation == operation {
			l.requests[i].Cancelled = true
		}
	}
}

func (l *ledger) all() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// accepted returns how many operations have been accepted.
func (l *ledger) accepted() int {
	n := 0
	for _, r := range l.all() {
		if r.Operation != "" && r.Verb != cancel {
			n++
		}
	}
	return n
}
