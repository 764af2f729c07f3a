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
	"time"
)

// line is the way of TCP connections from servers to what they use. It carries
// bytes as they are, TLS included, and can be hurt.
type line struct {
	name     string
	address  string // that it listens on
	upstream string // where it leads to

	group sync.WaitGroup // of all that carries

	mu       sync.Mutex
	mood     mood
	changed  chan struct{} // closed when the mood changes
	listener net.Listener  // nil: the line is cut
	links    map[*link]bool
}

// mood is what a line does to bytes.
type mood struct {
	number  int           // of the mood
	swallow bool          // take everything, deliver nothing, not even an end
	delay   time.Duration // of every piece, each way
	limit   int           // bytes of answers after which a connection breaks off; 0: never
	linger  time.Duration // by which ends come late
}

func newLine(name, listen, upstream string) *line {
	return &line{name: name, address: listen, upstream: upstream, changed: make(chan struct{}), links: map[*link]bool{}}
}

// open lets connections through, until the line is cut, and new ones at most
// until the context ends. It may be called on an open line.
func (l *line) open(ctx context.Context) error {
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

// cut ends all connections, and refuses new ones until the line is opened again.
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

// hurt changes the line's mood, also for connections that are open.
func (l *line) hurt(m mood) { l.feel(m) }

// heal lets the line carry bytes as they are. Connections that have lost some
// end.
func (l *line) heal() {
	for _, k := range l.feel(mood{}) {
		k.end()
	}
}

// feel sets the mood, and returns the connections that have lost bytes so far.
func (l *line) feel(m mood) (lossy []*link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.number = l.mood.number + 1
	l.mood = m
	close(l.changed)
	l.changed = make(chan struct{})
	for k := range l.links {
		if k.lost {
			lossy = append(lossy, k)
		}
	}
	return lossy
}

func (l *line) present() (m mood, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mood, l.changed
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

// connect carries one connection until it ends.
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
		both.Go(func() { k.carry(near, far, false) })
		both.Go(func() { k.carry(far, near, true) })
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
	over      chan struct{} // closed when it has been ended
	once      sync.Once
	lost      bool // bytes; under the line's lock

	// What has been answered in a mood. Only the carrier of answers uses it.
	answered, mood int
}

// end closes the connection.
func (k *link) end() {
	k.once.Do(func() {
		close(k.over)
		_, _ = k.near.Close(), k.far.Close()
	})
}

// piece is some bytes and when they arrive.
type piece struct {
	bytes  []byte
	arrive time.Time
}

// carry carries one direction. An end is carried, too: the other direction may
// go on.
func (k *link) carry(from, to net.Conn, answers bool) {
	pieces := make(chan piece, 1024)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pieces)
		k.read(from, pieces)
	})
	defer reader.Wait()
	for p := range pieces {
		if !k.rest(time.Until(p.arrive)) || !k.deliver(to, p.bytes, answers) {
			k.end()
			return
		}
	}
	if !k.passable() {
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // it may be closed already
	}
}

// read takes in what is sent, until its end.
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

// jittered returns the delay, a quarter more or less.
func (m mood) jittered() time.Duration {
	if m.delay == 0 {
		return 0
	}
	return m.delay*3/4 + rand.N(m.delay/2+1)
}

// rest waits, and reports whether the connection is still there.
func (k *link) rest(d time.Duration) bool {
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

// deliver writes bytes, as many as the mood lets through, and reports whether
// more may follow.
func (k *link) deliver(to net.Conn, b []byte, answers bool) bool {
	m, _ := k.line.present()
	whole := true
	if answers && m.limit > 0 {
		if k.mood != m.number {
			k.mood, k.answered = m.number, 0
		}
		b = b[:min(len(b), m.limit-k.answered)]
		k.answered += len(b)
		whole = k.answered < m.limit
	}
	_, err := to.Write(b)
	return err == nil && whole
}

// passable waits until the line lets an end through, and reports whether the
// connection is still there.
func (k *link) passable() bool {
	for {
		m, changed := k.line.present()
		if !m.swallow {
			return k.rest(m.linger)
		}
		select {
		case <-changed:
		case <-k.over:
			return false
		}
	}
}
