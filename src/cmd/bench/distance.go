package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// distance is a proxy between clients and an API server that adds latency. It
// delivers bytes unchanged and in order, with a delay and without a bandwidth
// limit.
type distance struct {
	listener net.Listener
	target   string
	oneWay   time.Duration

	sent, received atomic.Int64 // bytes, by the clients
}

// newDistance listens on loopback for the API server of a kubeconfig. It
// returns the path of a kubeconfig that connects through it.
func newDistance(kubeconfig, folder string, roundTrip time.Duration) (*distance, string, error) {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	api, err := newAPIServer(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen: %w", err)
	}
	d := &distance{listener: l, target: strings.TrimPrefix(api.url, "https://"), oneWay: roundTrip / 2}
	far := strings.ReplaceAll(string(content), api.url, "https://"+l.Addr().String())
	path := filepath.Join(folder, "far.kubeconfig")
	return d, path, os.WriteFile(path, []byte(far), 0o600)
}

// run forwards connections until the context ends.
func (d *distance) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return d.listener.Close()
	})
	group.Go(func() error {
		for {
			near, err := d.listener.Accept()
			if err != nil {
				return nil //nolint:nilerr // closed: that is how it ends
			}
			group.Go(func() error { return d.forward(ctx, near) })
		}
	})
	return group.Wait()
}

func (d *distance) forward(ctx context.Context, near net.Conn) error {
	far, err := new(net.Dialer).DialContext(ctx, "tcp", d.target)
	if err != nil {
		return near.Close()
	}
	stop := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer stop()
	var both errgroup.Group
	both.Go(func() error { return d.line(near, far, &d.sent) })
	both.Go(func() error { return d.line(far, near, &d.received) })
	_ = both.Wait() // the clients handle broken connections
	return nil
}

// traffic is a number of bytes that clients have sent and received, with those of TLS and
// HTTP.
type traffic struct{ sent, received int64 }

// traffic returns what has passed so far. Without a distance, it is nothing.
func (d *distance) traffic() traffic {
	if d == nil {
		return traffic{}
	}
	return traffic{d.sent.Load(), d.received.Load()}
}

// since returns what has passed since then.
func (t traffic) since(then traffic) traffic {
	return traffic{t.sent - then.sent, t.received - then.received}
}

func (t traffic) String() string {
	return fmt.Sprintf("%.1f, %.1f", float64(t.sent)/1024, float64(t.received)/1024)
}

// piece is some bytes and the time when they arrive.
type piece struct {
	bytes  []byte
	arrive time.Time
}

// line forwards one direction, counts its bytes, and closes both connections when it ends.
func (d *distance) line(from, to net.Conn, count *atomic.Int64) error {
	pieces := make(chan piece, 4096)
	var reader errgroup.Group
	reader.Go(func() error {
		defer close(pieces)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				count.Add(int64(n))
				pieces <- piece{buffer[:n], time.Now().Add(d.oneWay)}
			}
			if err != nil {
				return err
			}
		}
	})
	for p := range pieces {
		if wait := time.Until(p.arrive); wait > 0 {
			<-time.After(wait)
		}
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	err := to.Close()
	_ = from.Close()
	for range pieces { // the reader must not block
	}
	if failure := reader.Wait(); !errors.Is(failure, io.EOF) {
		return failure
	}
	return err
}
