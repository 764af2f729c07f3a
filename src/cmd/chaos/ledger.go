package main

import (
	"slices"
	"sync"
	"time"
)

// request is one request for a change, with all that became of it.
type request struct {
	Key     string
	Life    string // name of the instance that it is about
	Verb    string // create, upgrade, rollback, retry, undo, terminate, cancel
	Target  string // the operation that is retried, undone or cancelled
	Asked   content
	Fate    fate
	Keep    bool // what happens on failure: keep, not undo
	Shared  bool // the instance shares its namespace with others
	Place   place
	Confirm bool // it was repeated with the confirmation that the first answer asked for

	Operation string   // that was accepted; empty: it was refused
	Instance  string   // its id
	Also      []string // operations that repetitions of the request were answered with
	Status    int
	Problem   problem
	Cancelled bool // somebody asked to stop it, and was told that it will
	Waited    time.Duration
}

// fate is how an operation is meant to end.
type fate string

const (
	succeeds fate = "succeeds"
	fails    fate = "fails"      // its image cannot be pulled
	drags    fate = "never ends" // its pods never become ready: it is cancelled, or its deadline passes
)

// place is where an instance lives.
type place struct{ Region, Namespace string }

// ledger remembers the requests. It is what the servers' records are held
// against.
type ledger struct {
	mu       sync.Mutex
	requests []request
}

func (l *ledger) write(r request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// cancel notes that an operation was promised to stop.
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
