package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// line is a TCP proxy between a server and a dependency of it. It forwards
// bytes unchanged, including TLS, and can inject faults.
type line struct {
	name     string
	address  string // to listen on
	upstream string // of the dependency

	group sync.WaitGroup // all goroutines of the line

	mu       sync.Mutex
	fault    linkFault
	changed  chan struct{} // closed when the fault changes
	listener net.Listener  // nil: the line is cut
	links    map[*link]bool
}

// linkFault is how a line delays, drops or cuts off traffic; the zero value forwards normally.
type linkFault struct {
	number  int           // sequence number
	swallow bool          // accept all bytes, but forward neither bytes nor closes
	delay   time.Duration // of each piece, in both directions
	limit   int           // response bytes until a connection is closed; 0: no limit
	linger  time.Duration // delay of closes
}

func newLine(name, listen, upstream string) *line {
	return &line{name: name, address: listen, upstream: upstream, changed: make(chan struct{}), links: map[*link]bool{}}
}

// open accepts connections until the line is cut or the context ends. It has no
// effect on an open line. It waits for an address that is in use: a process that is being
// started has copies of all descriptors until it runs its program, so the listener of a
// line that was cut can still exist for a moment.
func (l *line) open(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := l.listen(ctx)
		if !errors.Is(err, syscall.EADDRINUSE) || limited.Err() != nil {
			return err
		}
		_ = pause(limited, 10*time.Millisecond) // the attempt after its end is the last one
	}
}

// listen makes one attempt to open the line.
func (l *line) listen(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("cannot open the line %s: %w", l.name, err)
	}
	l.listener, l.address = listener, listener.Addr().String()
	l.group.Go(func() { l.accept(ctx, listener) })
	return nil
}

// cut closes all connections, and refuses new ones until the line is opened
// again.
func (l *line) cut() {
	l.mu.Lock()
	links := slices.Collect(maps.Keys(l.links))
	if l.listener != nil {
		_ = l.listener.Close()
	}
	l.listener = nil
	l.mu.Unlock()
	for _, k := range links {
		k.end()
	}
	l.group.Wait()
}

// degrade sets the line's fault, also for open connections.
func (l *line) degrade(m linkFault) { l.setFault(m) }

// heal restores normal forwarding. It closes connections that have lost bytes.
func (l *line) heal() {
	for _, k := range l.setFault(linkFault{}) {
		k.end()
	}
}

// setFault sets the fault, and returns the connections that have lost bytes.
func (l *line) setFault(m linkFault) (lossy []*link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.number = l.fault.number + 1
	l.fault = m
	close(l.changed)
	l.changed = make(chan struct{})
	for k := range l.links {
		if k.lost {
			lossy = append(lossy, k)
		}
	}
	return lossy
}

func (l *line) present() (m linkFault, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.changed
}

func (l *line) accept(ctx context.Context, listener net.Listener) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return // the line was cut
		}
		l.group.Go(func() { l.connect(ctx, near) })
	}
}

// connect forwards one connection until it ends.
func (l *line) connect(ctx context.Context, near net.Conn) {
	far, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", l.upstream)
	if err != nil {
		_ = near.Close()
		return
	}
	k := &link{line: l, near: near, far: far, over: make(chan struct{})}
	l.mu.Lock()
	open := l.listener != nil
	if open {
		l.links[k] = true
	}
	l.mu.Unlock()
	if open {
		var both sync.WaitGroup
		both.Go(func() { k.forward(near, far, false) })
		both.Go(func() { k.forward(far, near, true) })
		both.Wait()
	}
	k.end()
	l.mu.Lock()
	delete(l.links, k)
	l.mu.Unlock()
}

// link is one connection through a line.
type link struct {
	line      *line
	near, far net.Conn
	over      chan struct{} // closed when the connection is closed
	once      sync.Once
	lost      bool // bytes were dropped; guarded by the line's lock

	// Response bytes that were forwarded under the fault with this number. Only the
	// goroutine for responses uses them.
	answered, faultNumber int
}

// end closes the connection.
func (k *link) end() {
	k.once.Do(func() {
		close(k.over)
		_, _ = k.near.Close(), k.far.Close()
	})
}

// piece is some bytes and the time when they arrive.
type piece struct {
	bytes  []byte
	arrive time.Time
}

// forward copies one direction. It also forwards the close of that direction,
// because the other may continue.
func (k *link) forward(from, to net.Conn, answers bool) {
	pieces := make(chan piece, 1024)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pieces)
		k.read(from, pieces)
	})
	defer reader.Wait()
	for p := range pieces {
		if !k.sleep(time.Until(p.arrive)) || !k.deliver(to, p.bytes, answers) {
			k.end()
			return
		}
	}
	if !k.passable() {
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // may be closed already
	}
}

// read reads the sender's bytes until the end.
func (k *link) read(from net.Conn, pieces chan<- piece) {
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		m, _ := k.line.present()
		switch {
		case n > 0 && m.swallow:
			k.line.mu.Lock()
			k.lost = true
			k.line.mu.Unlock()
		case n > 0:
			select {
			case pieces <- piece{buffer[:n], time.Now().Add(m.jittered())}:
			case <-k.over:
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				k.end()
			}
			return
		}
	}
}

// jittered returns the delay with a random change of up to a quarter.
func (m linkFault) jittered() time.Duration {
	if m.delay == 0 {
		return 0
	}
	return m.delay*3/4 + rand.N(m.delay/2+1)
}

// sleep waits, and reports whether the connection is still open.
func (k *link) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.over:
		return false
	}
}

// deliver writes as many bytes as the fault allows, and reports whether more may
// follow.
func (k *link) deliver(to net.Conn, b []byte, answers bool) bool {
	m, _ := k.line.present()
	whole := true
	if answers && m.limit > 0 {
		if k.faultNumber != m.number {
			k.faultNumber, k.answered = m.number, 0
		}
		b = b[:min(len(b), m.limit-k.answered)]
		k.answered += len(b)
		whole = k.answered < m.limit
	}
	_, err := to.Write(b)
	return err == nil && whole
}

// passable waits until the line forwards a close, and reports whether the
// connection is still open.
func (k *link) passable() bool {
	for {
		m, changed := k.line.present()
		if !m.swallow {
			return k.sleep(m.linger)
		}
		select {
		case <-changed:
		case <-k.over:
			return false
		}
	}
}
