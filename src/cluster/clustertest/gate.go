package clustertest

import (
	"net"
	"sync"
)

// gate is a listener that can make its connections silent or reset them, as a
// faulty network does.
type gate struct {
	net.Listener

	mu       sync.Mutex
	holes    int           // number of calls of hole that are not healed
	passing  chan struct{} // closed while data passes
	refusing bool
	conns    map[*gatedConn]bool
}

func newGate(l net.Listener) *gate {
	passing := make(chan struct{})
	close(passing)
	return &gate{Listener: l, passing: passing, conns: map[*gatedConn]bool{}}
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}
		if g.enter(c) {
			return c, nil
		}
		c.reset()
	}
}

func (g *gate) enter(c *gatedConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.refusing {
		g.conns[c] = true
	}
	return !g.refusing
}

// hole blocks all data until heal is called.
func (g *gate) hole() (heal func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holes++; g.holes == 1 {
		g.passing = make(chan struct{})
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.holes--; g.holes == 0 {
			close(g.passing)
		}
	})
}

// refuse resets all connections, and new ones until heal is called.
func (g *gate) refuse() (heal func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusing = true
	for c := range g.conns {
		c.reset()
	}
	clear(g.conns)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refusing = false
	}
}

// gatedConn is a connection through a gate.
type gatedConn struct {
	net.Conn

	gate   *gate
	once   sync.Once
	closed chan struct{}
}

// pass waits until data passes.
func (c *gatedConn) pass() {
	c.gate.mu.Lock()
	passing := c.gate.passing
	c.gate.mu.Unlock()
	select {
	case <-passing:
	case <-c.closed:
	}
}

// Read implements net.Conn.
func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

// Write implements net.Conn.
func (c *gatedConn) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// reset closes the connection at once; unsent data is lost.
func (c *gatedConn) reset() {
	c.once.Do(func() { close(c.closed) })
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the connection is broken either way
	}
	_ = c.Conn.Close()
}
