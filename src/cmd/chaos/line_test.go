package main

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// echo serves connections that give back what they get, until the test ends.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.Go(func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return nil //nolint:nilerr // closed: that is how it ends
			}
			group.Go(func() error {
				_, _ = io.Copy(c, c) // a hurt line breaks it off
				return c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		_ = group.Wait()
	})
	return l.Addr().String()
}

func openLine(t *testing.T, upstream string) *line {
	t.Helper()
	l := newLine("test", "127.0.0.1:0", upstream)
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.cut)
	return l
}

// say sends a text over a connection, and reads so much of what comes back.
func say(c net.Conn, text string, wanted int, within time.Duration) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	got := make([]byte, wanted)
	n, err := io.ReadFull(c, got)
	return string(got[:n]), err
}

func dialLine(t *testing.T, l *line) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if got, err := say(c, "hello", 5, time.Minute); err != nil || got != "hello" {
		t.Fatalf("a sound line carries what it is given: got %q, %v", got, err)
	}
	return c
}

func TestLineSwallows(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	c := dialLine(t, l)
	l.degrade(linkFault{swallow: true})
	if got, err := say(c, "hello", 1, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a black hole gives nothing back, and does not end: got %q, %v", got, err)
	}
	for lost := false; !lost && t.Context().Err() == nil; _ = pause(t.Context(), time.Millisecond) {
		l.mu.Lock()
		for k := range l.links {
			lost = lost || k.lost
		}
		l.mu.Unlock()
	}
	l.heal()
	if _, err := say(c, "hello", 5, time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that has lost bytes must end when the line heals: %v", err)
	}
	dialLine(t, l)
}

func TestLineIsCut(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	c := dialLine(t, l)
	l.cut()
	if _, err := say(c, "hello", 5, time.Minute); err == nil {
		t.Error("a connection survives that its line is cut")
	}
	deadline := time.Now().Add(patience) // see open
	for {
		c, err := net.Dial("tcp", l.address)
		if err != nil {
			break
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatal("a line that is cut takes connections")
		}
		_ = pause(t.Context(), 10*time.Millisecond)
	}
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	dialLine(t, l)
}

func TestLineWaitsForItsAddress(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	l.cut()
	other := newLine("other", l.address, l.upstream)
	if err := other.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, other.cut)
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	dialLine(t, l)
}

func TestLineBreaksOff(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	c := dialLine(t, l)
	l.degrade(linkFault{limit: 8})
	if got, err := say(c, "twelve bytes", 12, time.Minute); err == nil || got != "twelve b" {
		t.Errorf("a line that breaks off after 8 bytes gives %q, %v", got, err)
	}
	l.heal()
	dialLine(t, l)
}

func TestLineIsSlow(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	c := dialLine(t, l)
	l.degrade(linkFault{delay: 200 * time.Millisecond})
	began := time.Now()
	if got, err := say(c, "hello", 5, time.Minute); err != nil || got != "hello" || time.Since(began) < 100*time.Millisecond {
		t.Errorf("a slow line carries everything, later: %q, %v after %s", got, err, time.Since(began))
	}
	l.heal()
	dialLine(t, l)
}

func TestLineEndsLate(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	c := dialLine(t, l)
	const late = 100 * time.Millisecond
	l.degrade(linkFault{linger: late})
	began := time.Now()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 || time.Since(began) < 2*late {
		t.Errorf("an end goes through the line late, each way: %q, %v after %s", rest, err, time.Since(began))
	}
}

func TestLineDeliversWhatTheDeadHaveSent(t *testing.T) {
	t.Parallel()
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	l := openLine(t, far.Addr().String())
	l.degrade(linkFault{delay: 100 * time.Millisecond})
	near, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(near, "late"); err != nil {
		t.Fatal(err)
	}
	_ = near.Close()
	got, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Close() }()
	if text, err := io.ReadAll(got); err != nil || string(text) != "late" {
		t.Errorf("what was sent arrives, though its sender is gone: got %q, %v", text, err)
	}
}
