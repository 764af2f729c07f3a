package storetest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Relay is a proxy between a client and a server that simulates network
// failures. Create it with StartRelay.
type Relay struct {
	listener net.Listener
	to       string
	silent   atomic.Bool
	mute     atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
	all   errgroup.Group
}

// StartRelay returns a relay to a server's host and port. t.Cleanup closes it.
func StartRelay(t *testing.T, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, to: to}
	r.all.Go(func() error { r.accept(); return nil })
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		r.HangUp()
		_ = r.all.Wait() // returns no error
	})
	return r
}

// Addr returns the host and port on which the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Silence drops all data from now on, in both directions, and closes nothing,
// like a host that loses power.
func (r *Relay) Silence() { r.silent.Store(true) }

// Mute drops all data from the server from now on: requests arrive, but their
// responses are lost.
func (r *Relay) Mute() { r.mute.Store(true) }

// Heal ends Silence and Mute. Dropped data stays lost.
func (r *Relay) Heal() {
	r.silent.Store(false)
	r.mute.Store(false)
}

// HangUp closes the existing connections. New ones are accepted.
func (r *Relay) HangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close() // it may have been closed before
	}
}

// accept accepts connections until the listener is closed.
func (r *Relay) accept() {
	for near, err := r.listener.Accept(); err == nil; near, err = r.listener.Accept() {
		far, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = near.Close() // nothing was passed
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, near, far)
		r.mu.Unlock()
		r.all.Go(func() error { r.pass(near, far, false); return nil })
		r.all.Go(func() error { r.pass(far, near, true); return nil })
	}
}

// pass copies bytes in one direction. If either side closes, it closes both.
func (r *Relay) pass(from, to net.Conn, answers bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if r.silent.Load() || answers && r.mute.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
