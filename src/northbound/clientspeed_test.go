package northbound_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// tightLimits waits for no body and no reader, but leaves one of the two the
// time that it needs on a slow machine.
func tightLimits(grace, write time.Duration) northbound.SlowClientLimits {
	return northbound.SlowClientLimits{Grace: grace, Rate: 1 << 30, Write: write}
}

func dialTo(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestDribble has a client that sends a part of its body, and then nothing.
func TestDribble(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	s := httptest.NewServer(handler(t, northbound.Config{SlowClients: tightLimits(20*time.Millisecond, time.Minute), APIs: []northbound.API{routes{
		"POST /read": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
			return fmt.Errorf("cannot take it: %w", err)
		},
		"POST /unread": func(http.ResponseWriter, *http.Request) error { return nil },
		"POST /much": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(make([]byte, 8<<10)) // more than is kept back until the handler has ended
			return err
		},
	}}}))
	defer s.Close()
	for name, c := range map[string]struct {
		reason string
		path   string
		status int
	}{
		"Read":   {"who reads the body is told", "/read", 408},
		"Unread": {"a body that nobody reads keeps nobody, either", "/unread", 200},
		"Much":   {"nor does it keep an answer", "/much", 200},
	} {
		conn := dialTo(t, s)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\npart", c.path)
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, c.reason, err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != c.status {
			t.Errorf("%s: %s: %s, %v", name, c.reason, answer.Status, err)
		}
		answer.Body.Close()
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) { // and not for as long as the client likes
			t.Errorf("%s: the connection is kept: %v", name, err)
		}
	}
	if err := <-read; northbound.Status(err) != 408 {
		t.Errorf("the handler is told %v", err)
	}
}

// TestSlowReader has a client that takes nothing of an answer.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	endless := func(w http.ResponseWriter) error {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	}
	s := httptest.NewServer(handler(t, northbound.Config{SlowClients: tightLimits(time.Minute, 20*time.Millisecond), APIs: []northbound.API{routes{
		"GET /file": func(w http.ResponseWriter, _ *http.Request) error { ended <- endless(w); return nil },
		"GET /events": func(w http.ResponseWriter, _ *http.Request) error {
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Time{}) // as a stream does
			for {
				_, err := w.Write(make([]byte, 2<<10))
				if err = errors.Join(err, control.Flush()); err != nil {
					ended <- err
					return err
				}
			}
		},
	}}}))
	defer s.Close()
	for _, path := range []string{"/file", "/events"} {
		conn := dialTo(t, s)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: who takes nothing of it ends it with %v", path, err)
		}
	}
}

// TestSlowButSteady has a client that is slow and makes progress, on a
// connection that is used again.
func TestSlowButSteady(t *testing.T) {
	t.Parallel()
	limits := northbound.SlowClientLimits{Grace: time.Hour, Rate: 1, Write: time.Hour}
	proceed := make(chan struct{})
	s := httptest.NewServer(handler(t, northbound.Config{SlowClients: limits, APIs: []northbound.API{routes{
		"POST /echo": func(w http.ResponseWriter, r *http.Request) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			<-proceed // while nothing is read or written, no deadline stands
			if r.Context().Err() != nil {
				return errors.New("the request was given up")
			}
			_, err = w.Write(body)
			return err
		},
	}}}))
	defer s.Close()
	conn := dialTo(t, s)
	in := bufio.NewReader(conn)
	for i := range 3 {
		body := strings.Repeat("x", 100)
		fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(body))
		for _, b := range []byte(body) {
			if _, err := conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		proceed <- struct{}{}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if got, err := io.ReadAll(answer.Body); err != nil || string(got) != body {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
		answer.Body.Close()
	}
}

// slowConn notes the deadlines that it is given, by a clock that stops except
// while a call waits for it.
type slowConn struct {
	httptest.ResponseRecorder

	now         time.Time
	reads       []time.Duration // until the deadline, if a call waited; -1: there was none
	writes      []time.Duration
	read, write time.Time
	takes       time.Duration // to read or write a part
}

func (w *slowConn) SetReadDeadline(t time.Time) error  { w.read = t; return nil }
func (w *slowConn) SetWriteDeadline(t time.Time) error { w.write = t; return nil }

func (w *slowConn) recordOutcome(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return -1
	}
	return deadline.Sub(w.now)
}

func (w *slowConn) Write(b []byte) (int, error) {
	w.writes = append(w.writes, w.recordOutcome(w.write))
	w.now = w.now.Add(w.takes)
	return len(b), nil
}

func (w *slowConn) FlushError() error {
	_, err := w.Write(nil)
	return err
}

// client is a body that comes in parts of 1000 bytes.
type client struct {
	conn  *slowConn
	parts int
}

func (c *client) Read(p []byte) (int, error) {
	c.conn.reads = append(c.conn.reads, c.conn.recordOutcome(c.conn.read))
	c.conn.now = c.conn.now.Add(c.conn.takes)
	if c.parts == 0 {
		return 0, io.EOF
	}
	c.parts--
	return min(len(p), 1000), nil
}

func (*client) Close() error { return nil }

// TestDeadlines follows the deadlines of one request.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	w := &slowConn{now: time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC), takes: 3 * time.Second}
	limits := northbound.SlowClientLimits{Grace: 10 * time.Second, Rate: 500, Write: 20 * time.Second}
	r := httptest.NewRequest("POST", "/", &client{conn: w, parts: 2})
	w.write = w.now // of the request before
	p, finish := northbound.NewDeadlineWriter(limits, w, r, func() time.Time { return w.now })
	between := func(when string) {
		t.Helper()
		if !w.read.IsZero() || !w.write.IsZero() {
			t.Errorf("%s a deadline stands though nobody waits for the client: %v, %v", when, w.read, w.write)
		}
	}
	between("at the beginning")
	buffer := make([]byte, 4096)
	_, _ = r.Body.Read(buffer)
	between("after the first part")
	w.now = w.now.Add(time.Hour) // the handler's own time is not the client's
	_, _ = p.Write([]byte("early"))
	between("after an early answer")
	for range 2 {
		_, _ = r.Body.Read(buffer)
	}
	_, _ = p.Write(make([]byte, 150<<10))
	_ = http.NewResponseController(p).Flush()
	between("at the end")
	// 10 s; then 2 s more for 1000 bytes, less the 3 s that they took; and so on.
	// While there is something left of it, the answer waits for that first.
	if diff := cmp.Diff([]time.Duration{10 * time.Second, 9 * time.Second, 8 * time.Second}, w.reads); diff != "" {
		t.Errorf("the body may be late by (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{30 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second}, w.writes); diff != "" {
		t.Errorf("each part of the answer may take (-want +got)\n%s", diff)
	}
	finish()
	if w.recordOutcome(w.write) != 20*time.Second || !w.read.IsZero() {
		t.Errorf("what the server still sends has %s, and what it takes of a body that was read %v", w.recordOutcome(w.write), w.read)
	}
}

func TestTooSlowIsNotInvalid(t *testing.T) {
	t.Parallel()
	h := handler(t, northbound.Config{APIs: []northbound.API{routes{"POST /v1/packages": func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		return nf.E(nf.KindOf(err), "upload", "package", err) // as the catalog does
	}}}})
	w := serve(h, httptest.NewRequest("POST", "/v1/packages", late{}))
	if p := problemOf(t, w); w.Code != 408 || !strings.Contains(p.Detail, "too slowly") {
		t.Errorf("it is answered %+v", p)
	}
}

type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
