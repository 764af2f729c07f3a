package storetest

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// CrashingStore simulates the crash of a process on its database. From a chosen
// write on, every call fails with nf.Unreachable, and nothing reaches the
// underlying database. That database stays usable for the next process; Close
// does not close it. A CrashingStore is safe for concurrent use. Create it with
// NewCrashingStore.
type CrashingStore struct {
	kv      store.KV
	ignored string        // prefix of keys
	crashed chan struct{} // closed when no call can reach kv any longer

	mu         sync.Mutex
	calls      int
	writes     int
	lastWrite  int  // number of the last write; 0: none
	done       bool // the last write is carried out
	hasCrashed bool
	writing    int // writes in progress
}

var _ store.KV = (*CrashingStore)(nil)

// NewCrashingStore returns a CrashingStore over a database. It works until the
// write that CrashAt has chosen.
func NewCrashingStore(kv store.KV) *CrashingStore {
	return &CrashingStore{kv: kv, crashed: make(chan struct{})}
}

// Ignore makes writes of keys with the prefix count for nothing, until the crash. It is
// called before the store is used.
func (c *CrashingStore) Ignore(prefix string) { c.ignored = prefix }

// Crash makes every call from now on fail.
func (c *CrashingStore) Crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCrashed {
		return
	}
	c.hasCrashed = true
	if c.writing == 0 {
		close(c.crashed)
	}
}

// HasCrashed reports whether the last write has begun.
func (c *CrashingStore) HasCrashed() bool { return !c.alive() }

// CrashAt makes the nth write from now on the last, counted from 1. It fails like
// every call after it. If done is true, it is carried out and only its response
// is lost; otherwise nothing happens.
func (c *CrashingStore) CrashAt(n int, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastWrite, c.done = c.writes+n, done
}

// Crashed is closed when the last write has failed and no earlier write is in
// progress.
func (c *CrashingStore) Crashed() <-chan struct{} { return c.crashed }

// Calls returns the number of calls of Get, Put, Delete and List, up to the
// last write.
func (c *CrashingStore) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Writes returns how many of the calls were Put or Delete, including failed
// ones.
func (c *CrashingStore) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// Get implements store.KV.
func (c *CrashingStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if !c.read() {
		return store.Entry{}, crashError("read", key)
	}
	return c.kv.Get(ctx, key)
}

// Put implements store.KV.
func (c *CrashingStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (rev store.Revision, err error) {
	err = c.write("write", key, func() error {
		rev, err = c.kv.Put(ctx, key, value, expected)
		return err
	})
	if err != nil {
		return 0, err
	}
	return rev, nil
}

// Delete implements store.KV.
func (c *CrashingStore) Delete(ctx context.Context, key string, expected store.Revision) error {
	return c.write("delete", key, func() error { return c.kv.Delete(ctx, key, expected) })
}

// List implements store.KV. It ends with an error at the simulated crash.
func (c *CrashingStore) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if !c.read() {
			yield(store.Entry{}, crashError("list", prefix))
			return
		}
		for e, err := range c.kv.List(ctx, prefix, start) {
			if !c.alive() {
				e, err = store.Entry{}, crashError("list", prefix)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close implements store.KV.
func (*CrashingStore) Close() error { return nil }

func (c *CrashingStore) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.hasCrashed
}

// read counts a read, and reports whether it comes before the crash.
func (c *CrashingStore) read() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCrashed {
		return false
	}
	c.calls++
	return true
}

// write counts a write, and carries it out if it comes before the crash.
func (c *CrashingStore) write(op, key string, call func() error) error {
	applied, last, ok := c.begin(key)
	if !ok {
		return crashError(op, key)
	}
	defer c.end()
	var err error
	if applied {
		err = call()
	}
	if last {
		return crashError(op, key)
	}
	return err
}

// begin counts a write that comes before the crash. It reports whether the
// write is carried out and whether it is the last.
func (c *CrashingStore) begin(key string) (applied, last, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCrashed {
		return false, false, false
	}
	c.writing++
	if c.ignored != "" && strings.HasPrefix(key, c.ignored) {
		return true, false, true
	}
	c.calls++
	c.writes++
	c.hasCrashed = c.writes == c.lastWrite
	return !c.hasCrashed || c.done, c.hasCrashed, true
}

func (c *CrashingStore) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	if c.hasCrashed && c.writing == 0 {
		close(c.crashed) // only once: no write begins after this
	}
}

func crashError(op, key string) error {
	return nf.E(nf.Unreachable, op, "key "+strconv.Quote(key), errors.New("the process has died"))
}
