package storetest

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Mortal simulates the crash of a process on its database. From a chosen write
// on, every call fails with nf.Unreachable, and nothing reaches the underlying
// database. That database stays usable for the next process; Close does not
// close it. A Mortal is safe for concurrent use. Create it with NewMortal.
type Mortal struct {
	kv   store.KV
	gone chan struct{} // closed when no call can reach kv any longer

	mu      sync.Mutex
	calls   int
	writes  int
	fatal   int  // number of the last write; 0: none
	done    bool // the last write is carried out
	dead    bool
	writing int // writes in progress
}

var _ store.KV = (*Mortal)(nil)

// NewMortal returns a Mortal over a database. It works until DieAt.
func NewMortal(kv store.KV) *Mortal {
	return &Mortal{kv: kv, gone: make(chan struct{})}
}

// DieAt makes the nth write from now on the last, counted from 1. It fails like
// every call after it. If done is true, it is carried out and only its response
// is lost; otherwise nothing happens.
func (m *Mortal) DieAt(n int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fatal, m.done = m.writes+n, done
}

// Dead is closed when the last write has failed and no earlier write is in
// progress.
func (m *Mortal) Dead() <-chan struct{} { return m.gone }

// Calls returns the number of calls of Get, Put, Delete and List, up to the
// last write.
func (m *Mortal) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Writes returns how many of the calls were Put or Delete, including failed
// ones.
func (m *Mortal) Writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// Get implements store.KV.
func (m *Mortal) Get(ctx context.Context, key string) (store.Entry, error) {
	if !m.read() {
		return store.Entry{}, died("read", key)
	}
	return m.kv.Get(ctx, key)
}

// Put implements store.KV.
func (m *Mortal) Put(ctx context.Context, key string, value []byte, expected store.Revision) (rev store.Revision, err error) {
	err = m.write("write", key, func() error {
		rev, err = m.kv.Put(ctx, key, value, expected)
		return err
	})
	if err != nil {
		return 0, err
	}
	return rev, nil
}

// Delete implements store.KV.
func (m *Mortal) Delete(ctx context.Context, key string, expected store.Revision) error {
	return m.write("delete", key, func() error { return m.kv.Delete(ctx, key, expected) })
}

// List implements store.KV. It ends with an error at the simulated crash.
func (m *Mortal) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if !m.read() {
			yield(store.Entry{}, died("list", prefix))
			return
		}
		for e, err := range m.kv.List(ctx, prefix, start) {
			if !m.alive() {
				e, err = store.Entry{}, died("list", prefix)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close implements store.KV.
func (*Mortal) Close() error { return nil }

func (m *Mortal) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dead
}

// read counts a read, and reports whether it comes before the crash.
func (m *Mortal) read() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false
	}
	m.calls++
	return true
}

// write counts a write, and carries it out if it comes before the crash.
func (m *Mortal) write(op, key string, call func() error) error {
	carry, last, ok := m.begin()
	if !ok {
		return died(op, key)
	}
	defer m.end()
	var err error
	if carry {
		err = call()
	}
	if last {
		return died(op, key)
	}
	return err
}

// begin counts a write that comes before the crash. It reports whether the
// write is carried out and whether it is the last.
func (m *Mortal) begin() (carry, last, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false, false
	}
	m.calls++
	m.writes++
	m.writing++
	m.dead = m.writes == m.fatal
	return !m.dead || m.done, m.dead, true
}

func (m *Mortal) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing--
	if m.dead && m.writing == 0 {
		close(m.gone) // only once: no write begins after this
	}
}

func died(op, key string) error {
	return nf.E(nf.Unreachable, op, "key "+strconv.Quote(key), errors.New("the process has died"))
}
