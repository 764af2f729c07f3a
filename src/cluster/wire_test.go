package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest/adversary"
)

// pipes is a listener whose network is in memory, and can begin to drop all
// that a client sends.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
	drops  atomic.Bool
	limits limits // of the region; default: the real ones
	log    *slog.Logger
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return &lossy{client, &p.drops}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

type lossy struct {
	net.Conn

	drops *atomic.Bool
}

func (l *lossy) Write(b []byte) (int, error) {
	if l.drops.Load() {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// wired serves the handler over HTTP/2 in memory and returns a cluster that is
// connected to it.
func wired(t *testing.T, network *pipes, handler http.Handler) *Cluster {
	t.Helper()
	cert, key := certificates(t, time.Now().Add(time.Hour))
	decode := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pair, err := tls.X509KeyPair(decode(cert), decode(key))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	if hostile, ok := handler.(*adversary.Server); ok {
		server.TLSNextProto = hostile.NextProtos()
	}
	served := make(chan error)
	go func() { served <- server.ServeTLS(network, "", "") }()
	t.Cleanup(func() {
		_ = server.Close() // what is left of the connections
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	access := accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true`, "token: t")))
	c, err := newCluster(access, "east", PoolConfig{limits: network.limits, Logger: network.log, dial: network.dial}.filled())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// TestDeadConnectionIsNoticed is about a watch, which may be silent for long:
// when its connection is dead, that is found out all the same.
func TestDeadConnectionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		c := wired(t, network, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("the request came over HTTP/%d", r.ProtoMajor)
			}
			_, _ = io.WriteString(w, "hello\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		body, err := c.client.verb(http.MethodGet).AbsPath("/api/v1/pods").Param("watch", "true").Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		lines := bufio.NewReader(body)
		if line, err := lines.ReadString('\n'); err != nil || line != "hello\n" {
			t.Fatalf("the watch says %q, %v", line, err)
		}
		<-time.After(time.Hour)
		network.drops.Store(true)
		start := time.Now()
		_, err = lines.ReadString('\n')
		if took := time.Since(start); err == nil || took > pingAfter+pingTimeout {
			t.Errorf("a watch on a dead connection ended after %v: %v", took, err)
		}
	})
}
