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

// Mortal is a database as a process sees it that dies: from one write on every
// call fails with nf.Unreachable, and nothing reaches the database underneath
// any more. That one lives on, for the process that comes after; Close does not
// close it. A Mortal is safe for concurrent use. Create it with NewMortal.
type Mortal struct {
	kv   store.KV
	gone chan struct{} // closed when nothing reaches kv any more

	mu      sync.Mutex
	calls   int
	writes  int
	fatal   int  // the write that is the last; 0: none
	done    bool // the last write is carried out
	dead    bool
	writing int // writes that have begun and not ended
}

var _ store.KV = (*Mortal)(nil)

// NewMortal returns a Mortal over a database. It lives until DieAt.
func NewMortal(kv store.KV) *Mortal {
	return &Mortal{kv: kv, gone: make(chan struct{})}
}

// DieAt makes the nth write from now on the last, counted from 1. It fails like
// every call after it: with done it is carried out and only its answer is lost,
// without it nothing happens.
func (m *Mortal) DieAt(n int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fatal, m.done = m.writes+n, done
}

// Dead is closed when the last write has failed and no other, begun before it,
// is on its way.
func (m *Mortal) Dead() <-chan struct{} { return m.gone }

// Calls returns how many of Get, Put, Delete and List were called, up to the
// last write.
func (m *Mortal) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Writes returns how many of the calls were Put or Delete, whatever came of
// them.
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

// List implements store.KV. A list that is being read when the process dies ends
// there.
func (m *Mortal) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if !m.read() {
			yield(store.Entry{}, died("list", prefix))
			return
		}
		for e, err := range m.kv.List(ctx, prefix) {
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

// read counts a call that reads, unless it comes too late.
func (m *Mortal) read() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false
	}
	m.calls++
	return true
}

// write carries out a call that writes, as far as it is to be.
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

// begin counts a write, unless it comes too late, and tells whether it is
// carried out and whether it is the last.
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
		close(m.gone) // once: no write begins any more
	}
}

func died(op, key string) error {
	return nf.E(nf.Unreachable, op, "key "+strconv.Quote(key), errors.New("the process has died"))
}
