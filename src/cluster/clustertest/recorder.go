package clustertest

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Recorder is a proxy in front of the sandbox's API server. It records the
// requests that it receives, and injects faults on demand. It sends requests as
// the sandbox's admin, unless a request impersonates a user. Clients see each
// recorder as a separate region, which can become unreachable on its own.
type Recorder struct {
	server *httptest.Server
	gate   *gate

	mu       sync.Mutex
	requests []Request
	faults   []*fault
}

// Request is a request to the API server.
type Request struct {
	Method string
	Path   string     // "/apis/apps/v1/namespaces/a/deployments/web"
	Query  url.Values // "fieldManager", "watch", ...
	Accept string     // the requested media types
}

// String returns, for example, "PATCH
// /apis/apps/v1/namespaces/a/deployments/web".
func (r Request) String() string { return r.Method + " " + r.Path }

// Fault handles a request instead of next, the API server.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

type fault struct {
	match func(Request) bool
	spoil Fault
}

// NewRecorder returns a recorder that runs until the test ends.
func NewRecorder(t testing.TB) *Recorder {
	t.Helper()
	cfg := config(t)
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatalf("cannot use the sandbox's address: %v", err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatalf("cannot use the sandbox's kubeconfig: %v", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // required for watches
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	r := &Recorder{}
	r.server = httptest.NewUnstartedServer(r.handler(proxy))
	r.gate = newGate(r.server.Listener)
	r.server.Listener = r.gate
	r.server.EnableHTTP2 = true
	r.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	r.server.StartTLS()
	t.Cleanup(r.close)
	return r
}

// close ends all connections and stops the server. The server waits for open
// watches, and a client that still runs opens them again at once, so new
// connections are reset first.
func (r *Recorder) close() {
	r.gate.refuse()
	r.server.Close()
}

func (r *Recorder) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		spoil := r.record(Request{Method: req.Method, Path: req.URL.Path, Query: req.URL.Query(), Accept: req.Header.Get("Accept")})
		if spoil == nil {
			next.ServeHTTP(w, req)
			return
		}
		spoil(w, req, next)
	})
}

// record records a request and returns its fault, or nil.
func (r *Recorder) record(req Request) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req)
	for _, f := range r.faults {
		if f.match(req) {
			return f.spoil
		}
	}
	return nil
}

// Kubeconfig returns a kubeconfig for the recorder.
func (r *Recorder) Kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: recorder
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: recorder
  user: {}
contexts:
- name: recorder
  context: {cluster: recorder, user: recorder}
current-context: recorder
`, r.server.URL, base64.StdEncoding.EncodeToString(ca))
}

// Requests returns the requests so far, in order of arrival.
func (r *Recorder) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Reset clears the recorded requests.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// Fail injects spoil into every request that matches, until heal is called. If
// several faults match, the oldest is used. match is called for one request at
// a time, so it may count requests.
func (r *Recorder) Fail(match func(Request) bool, spoil Fault) (heal func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &fault{match: match, spoil: spoil}
	r.faults = append(r.faults, f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults = slices.DeleteFunc(r.faults, func(g *fault) bool { return g == f })
	}
}

// BlackHole simulates a network that drops all packets, until heal is called or
// the test ends: open connections become silent, and new ones get no further
// than TCP.
func (r *Recorder) BlackHole(t testing.TB) (heal func()) {
	t.Helper()
	heal = r.gate.hole()
	t.Cleanup(heal) // before the server is closed, which waits for its connections
	return heal
}

// Refuse resets all connections and each new one, until heal is called, as a
// proxy in front of a stopped API server does.
func (r *Recorder) Refuse() (heal func()) { return r.gate.refuse() }

// Times returns a function that accepts the first n requests that match
// accepts.
func Times(n int, match func(Request) bool) func(Request) bool {
	return func(r Request) bool {
		if n == 0 || !match(r) {
			return false
		}
		n--
		return true
	}
}

// Drop breaks the connection without forwarding the request.
func Drop(http.ResponseWriter, *http.Request, http.Handler) {
	panic(http.ErrAbortHandler)
}

// Lose forwards the request, and breaks the connection before the response.
func Lose(_ http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Hang never responds: it holds the request until the client cancels it.
func Hang(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Slow delays the request by d.
func Slow(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// Status responds with an HTTP status and no Kubernetes object, without
// forwarding the request. Headers are pairs of name and value.
func Status(code int, headers ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}
