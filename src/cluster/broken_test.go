package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest/adversary"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestGuardDoesNotQuote has a server answer every request with bytes that are not
// HTTP, or with words in the parts of HTTP that Go's errors repeat.
func TestGuardDoesNotQuote(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	said := func(format string) string { return fmt.Sprintf(format, adversary.Secret) }
	cases := map[string]struct {
		reason string
		answer string
		want   string // the reason of the error
		via    string // the proxy; empty: none
	}{
		"Banner":    {"another protocol", said("SSH-2.0-%s\r\n"), "not-kubernetes", ""},
		"Version":   {"another version of HTTP", said("HTTP/%s 200 OK\r\n\r\n"), "not-kubernetes", ""},
		"Code":      {"a status that is not a number", said("HTTP/1.1 %s OK\r\n\r\n"), "not-kubernetes", ""},
		"Header":    {"a header without a colon", said(ok + "%s\r\n\r\n"), "not-kubernetes", ""},
		"Length":    {"a length that is not a number", said(ok + "Content-Length: %s\r\n\r\n"), "not-kubernetes", ""},
		"Encoding":  {"an unknown encoding", said(ok + "Transfer-Encoding: %s\r\n\r\n"), "not-kubernetes", ""},
		"Chunk":     {"a chunk without a length", said(ok + "Transfer-Encoding: chunked\r\n\r\n%s\r\n"), "not-kubernetes", ""},
		"Trailer":   {"a trailer without a colon", said(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n%s\r\n\r\n"), "not-kubernetes", ""},
		"Long":      {"a header that does not end", ok + "X: " + strings.Repeat("x", 1<<20), "not-kubernetes", ""},
		"Moved":     {"the words of a redirect", said("HTTP/1.1 307 %s\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), "not-kubernetes", ""},
		"Refused":   {"the words of a denial", said("HTTP/1.1 401 %s\r\nContent-Length: 0\r\n\r\n"), "unauthorized", ""},
		"Away":      {"the words of a gateway", said("HTTP/1.1 502 %s\r\nContent-Length: 0\r\n\r\n"), "unavailable", ""},
		"Unknown":   {"a code without words of its own", said("HTTP/1.1 399 %s\r\nContent-Length: 0\r\n\r\n"), "not-kubernetes", ""},
		"Cut":       {"a connection may break in a header", ok + "Content-Type: application/json\r\n", "tcp", ""},
		"Nothing":   {"or before it", "", "tcp", ""},
		"Truncated": {"or after it", ok + "Content-Length: 100\r\n\r\n{", "tcp", ""},
		"Proxy":     {"the words of a proxy", said("HTTP/1.1 407 %s\r\nContent-Length: 0\r\n\r\n"), "tcp", "http://proxy.invalid:3128"},
		"No proxy":  {"another protocol, in the place of a proxy", said("SSH-2.0-%s\r\n"), "tcp", "http://proxy.invalid:3128"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				parrot(t, network, tc.answer)
				var log bytes.Buffer
				c := plain(t, network, tc.via, PoolConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				texts := []string{}
				for range 6 { // the breaker opens in the meantime
					err := c.tryOnce(t.Context())
					wantKind(t, err, nf.Unreachable)
					if got := nf.ReasonOf(err); got != tc.want && got != "breaker" {
						t.Errorf("%s: the reason is %q, want %q: %v", tc.reason, got, tc.want, err)
					}
					texts = append(texts, err.Error())
					<-time.After(time.Second)
				}
				_, err := probe(t.Context(), c.service)
				state := c.state(0)
				if state.Condition != nf.RegionUnreachable || state.Reason != tc.want {
					t.Errorf("%s: the state is %+v, want unreachable for %q", tc.reason, state, tc.want)
				}
				texts = append(texts, probeError(probeReason(t.Context(), err), err).Error(), state.Message, log.String())
				for _, text := range texts {
					if strings.Contains(text, adversary.Secret) || text == "" {
						t.Errorf("%s: it says %q", tc.reason, text)
					}
				}
			})
		})
	}
}

// parrot gives the same answer to every request, and ends the connection.
func parrot(t *testing.T, network *pipes, answer string) {
	t.Helper()
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = network.Close() // it never fails
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := network.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, answer) // a client may leave
				}
				_ = conn.Close() // nothing is left to be sent
			})
		}
	})
}

// plain returns a cluster that speaks HTTP without TLS to what is in memory, or to a
// proxy that is.
func plain(t *testing.T, network *pipes, proxy string, pool PoolConfig) *Cluster {
	t.Helper()
	server := `server: "http://127.0.0.1:6443"`
	if proxy != "" {
		server = `server: "https://east.invalid", proxy-url: "` + proxy + `"`
	}
	pool.dial = network.dial
	c, err := newCluster(accessTo(t, []byte(testConfig(server, "token: t"))), "east", pool.filled())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// TestGuardKeepsItsOwnErrors has a request fail before it is sent. The error is kept:
// it helps, and quotes no server.
func TestGuardKeepsItsOwnErrors(t *testing.T) {
	access := accessTo(t, []byte(testConfig(`server: "http://127.0.0.1:6443"`, `token: t, as: "a\nb"`)))
	c, err := newCluster(access, "east", PoolConfig{}.filled())
	if err != nil {
		t.Fatal(err)
	}
	const want = `invalid header field value for "Impersonate-User"`
	if _, err = probe(t.Context(), c.service); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestProxyRefuses has the proxy of a kubeconfig deny a connection: its status says
// what to look at.
func TestProxyRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		parrot(t, network, "HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n")
		_, err := probe(t.Context(), plain(t, network, "http://proxy.invalid:3128", PoolConfig{}).service)
		if err == nil || !strings.Contains(err.Error(), "the proxy answers 407 Proxy Authentication Required") {
			t.Errorf("the error is %v", err)
		}
	})
}
