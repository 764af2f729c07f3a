package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// Call is one HTTP request to a region, for metrics.
type Call struct {
	Region string
	Verb   string        // the method, or "WATCH"
	Code   string        // of the response: "200"; empty if there was none
	Reason string        // why the request failed: "breaker", "cancelled", "replaced", or as in nf.RegionState
	Took   time.Duration // until the response was read or the watch had started
}

// patience is the longest silence of an API server during a request that is not
// a watch.
const patience = 30 * time.Second

// leastSilence is the minimum time without a response before the breaker opens:
// an API server that restarts responds soon.
const leastSilence = 3 * time.Second

var (
	// errSilent is the cause that cancels a request after patience. It
	// distinguishes this from a cancellation by the caller.
	errSilent = errors.New("no response in time")

	errReplaced = errors.New("it has a new access, or was deregistered")
)

// breakerTransport is the http.RoundTripper of all requests to a region. It rejects
// requests while the circuit breaker is open, limits their time, and records the
// health of the region.
type breakerTransport struct {
	region    string
	access    nf.Access
	cfg       PoolConfig
	usage     *usage
	transport *connections
	proxy     atomic.Pointer[string] // host:port of the operator's proxy, once used
	next      http.RoundTripper      // wraps the transport
	tokens    *tokens                // of a token that is renewed; otherwise nil
	breaker   *breaker.Breaker
	health    regionHealth
	closed    chan struct{} // closed by close

	certificates *clientCertificates // of a client certificate that is renewed; otherwise nil
}

func newBreakerTransport(region string, access nf.Access, cfg PoolConfig) *breakerTransport {
	shared := cfg.usage
	if shared == nil {
		shared = newUsage(cfg.limits)
	}
	return &breakerTransport{
		region: region, access: access, cfg: cfg, usage: shared, closed: make(chan struct{}),
		breaker: breaker.New(breaker.Config{Clock: cfg.Clock, Failures: cfg.Failures, Silence: leastSilence}),
		health:  regionHealth{region: region, clock: cfg.Clock, log: cfg.Logger, condition: nf.RegionUnknown},
	}
}

// CloseIdleConnections is called by http.Client; client-go's wrappers do not
// pass the call on.
func (bt *breakerTransport) CloseIdleConnections() { bt.transport.CloseIdleConnections() }

// close makes all later requests fail, and ends waits and watches. Requests in
// progress finish. It must be called only once.
func (bt *breakerTransport) close() {
	close(bt.closed)
	bt.transport.CloseIdleConnections()
}

// closeIdle closes idle connections if the transport is closed.
func (bt *breakerTransport) closeIdle() {
	if bt.isClosed() {
		bt.transport.CloseIdleConnections()
	}
}

func (bt *breakerTransport) isClosed() bool {
	select {
	case <-bt.closed:
		return true
	default:
		return false
	}
}

// RoundTrip implements http.RoundTripper. Except for a watch, it reads the
// whole response first: a response that breaks off is an error.
func (bt *breakerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	watch := req.URL.Query().Get("watch") != ""
	call := Call{Region: bt.region, Verb: req.Method}
	if watch {
		call.Verb = "WATCH"
	}
	if bt.isClosed() {
		call.Reason = nf.ReasonReplaced
		return nil, bt.refuse(req, call, errReplaced)
	}
	t, err := bt.breaker.Admit(!watch)
	if err != nil {
		call.Reason = nf.ReasonBreaker
		return nil, bt.refuse(req, call, err)
	}
	var resp *http.Response
	if watch {
		resp, err = bt.startWatch(req)
	} else {
		resp, err = bt.exchange(req)
	}
	if err == nil {
		err = bt.screen(resp)
	}
	if err != nil {
		resp = nil
	}
	call.Reason = bt.record(req, t, resp, err)
	if call.Took = bt.cfg.Clock().Sub(t.Began); resp != nil {
		call.Code = strconv.Itoa(resp.StatusCode)
	}
	bt.cfg.Observe(call)
	if rejected(req, resp, err) {
		bt.cfg.Rejected(bt.region, bt.access)
	}
	bt.closeIdle()
	return resp, err
}

// refuse returns the error of a request that is not sent.
func (bt *breakerTransport) refuse(req *http.Request, call Call, err error) error {
	if req.Body != nil {
		_ = req.Body.Close() // required of an http.RoundTripper
	}
	bt.cfg.Observe(call)
	return err
}

// exchange sends a request and reads its whole response. It fails if the region
// is silent for too long, takes too long, or sends too much.
func (bt *breakerTransport) exchange(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	whole := time.AfterFunc(answerTime, func() { cancel(errSlow) })
	defer whole.Stop()
	resp, err := bt.forward(req.WithContext(ctx)) //nolint:contextcheck // the request has the context
	if err == nil {
		err = bt.readBody(ctx, resp, silence)
	}
	if err == nil {
		bt.normalizeRetryAfter(resp.Header)
		return resp, nil
	}
	return nil, tooLong(ctx, err)
}

// startWatch starts a watch, which may be silent for any time. If the watch is
// rejected, startWatch reads the whole response.
func (bt *breakerTransport) startWatch(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := bt.forward(req.WithContext(ctx)) //nolint:contextcheck // the request has the context
	if err == nil && resp.StatusCode < http.StatusMultipleChoices {
		resp.Body = &granted{resp.Body, cancel}
		return resp, nil
	}
	defer cancel(nil)
	if err == nil {
		err = bt.receive(ctx, cancel, resp)
	}
	return resp, err
}

// granted is the body of a watch that the API server accepted.
type granted struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (g *granted) Close() error {
	defer g.cancel(nil)
	return g.ReadCloser.Close()
}

// receive reads the body of a response whose header has been received.
func (bt *breakerTransport) receive(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response) error {
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	whole := time.AfterFunc(answerTime, func() { cancel(errSlow) })
	defer whole.Stop()
	return tooLong(ctx, bt.readBody(ctx, resp, silence))
}

// tooLong returns the cause if a request was cancelled by one of its time
// limits, otherwise err.
func tooLong(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errSilent) || errors.Is(cause, errSlow)) {
		return cause
	}
	return err
}

// The numbers of bytes that readBody reads at a time: at first, and at most. Most responses
// have less than two KiB.
const (
	leastPiece   = 2 << 10
	largestPiece = 32 << 10
)

// readBody reads the body of a response into memory. Each piece that arrives
// restarts the silence timer.
func (bt *breakerTransport) readBody(ctx context.Context, resp *http.Response, silence *time.Timer) error {
	defer resp.Body.Close()
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		own, end, err := bt.usage.begin(ctx, bt.usage.limits.answer)
		if err != nil {
			return err
		}
		defer end()
		t, _ = own.Value(turnKey{}).(*turn)
	}
	var body bytes.Buffer
	var s scale
	piece := make([]byte, leastPiece)
	for {
		n, err := resp.Body.Read(piece)
		if n > 0 {
			silence.Stop() // the waiting below is not the server's silence
			if err := t.add(ctx, s.weigh(piece[:n])); err != nil {
				return err
			}
			silence.Reset(patience)
			body.Write(piece[:n])
			if n == len(piece) && n < largestPiece {
				piece = make([]byte, 2*n)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unquoted(ctx, err, resp.ProtoMajor == 1)
		}
	}
	resp.Body = io.NopCloser(&body)
	return nil
}

// screen returns an error for a response that no API server sends, and removes
// the text of error responses that are not a Kubernetes Status. The responder
// may be another server, whose text must not be shown to users of this service.
func (bt *breakerTransport) screen(resp *http.Response) error {
	code := resp.StatusCode
	if code >= http.StatusMultipleChoices && code < http.StatusBadRequest {
		_ = resp.Body.Close() // it is not read
		return &redirectError{statusText(code)}
	}
	if code < http.StatusBadRequest {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	var status metav1.Status
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.APIVersion != "v1" {
		body = nil
		resp.Header.Del("Content-Type") // otherwise the client would decode it
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// maxStatus is how many bytes of an error response are read.
const maxStatus = 256 << 10

// redirectError is the error of a redirect. Following it would send the region's
// credentials to another address.
type redirectError struct{ status string }

func (m *redirectError) Error() string {
	return "it answers " + m.status + ": redirects are not followed"
}

// normalizeRetryAfter converts a Retry-After date to seconds, the only form that client-go
// understands.
func (bt *breakerTransport) normalizeRetryAfter(h http.Header) {
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait := max(at.Sub(bt.cfg.Clock()), 0)
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}

// record updates breaker and state with the result of a request, and returns
// the reason if it failed.
func (bt *breakerTransport) record(req *http.Request, t breaker.Ticket, resp *http.Response, err error) (reason string) {
	ctx := req.Context()
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) && !isOversized(err):
		bt.breaker.Abandoned(t)
		return "cancelled"
	case isOversized(err), errors.Is(err, errCrowded):
		bt.breaker.Responded() // the region responded; the limit exceeded is ours
		bt.health.markProbed()
		return unreachable(err)
	case err != nil:
		reason = unreachable(err)
	case unavailable(resp) && delegated(req.URL.Path):
		bt.breaker.Abandoned(t) // says nothing about the API server itself
		bt.health.markProbed()
		return nf.ReasonUnavailable
	case resp.StatusCode == http.StatusUnauthorized && !denied(req, resp):
		bt.breaker.Responded()
		bt.health.markProbed()
		return nf.ReasonUnauthorized
	case unavailable(resp):
		reason, err = nf.ReasonUnavailable, fmt.Errorf("it answers %s", statusText(resp.StatusCode))
	default:
		bt.breaker.Responded()
		return bt.health.observe(ctx, resp)
	}
	if !bt.breaker.Failed(t, outbound.Plain(err).Error()) {
		bt.health.markProbed()
		return reason
	}
	// The remaining connections may be dead; the probe needs a new one.
	bt.transport.CloseIdleConnections()
	bt.health.markUnreachable(ctx, reason, err)
	return reason
}

// unavailable reports whether a response comes from a proxy or load balancer
// whose API server is down. A response with Retry-After comes from an API
// server.
func unavailable(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return resp.Header.Get("Retry-After") == ""
	}
	return false
}

// rejected reports whether the credentials of a request were not accepted: by the
// API server, or by a proxy before it, which refuses a client certificate with an
// alert of TLS.
func rejected(req *http.Request, resp *http.Response, err error) bool {
	alert, failed := errors.AsType[*net.OpError](err)
	return resp != nil && denied(req, resp) || failed && alert.Op == "remote error"
}

// denied reports whether a response shows that the API server does not accept the
// credentials of the request. The server of an aggregated API also responds with 401,
// if it does not accept those of the API server.
func denied(req *http.Request, resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized && !delegated(req.URL.Path)
}

// delegated reports whether the API server may forward requests for the path to
// another server (aggregated APIs). Only Kubernetes' own groups are certainly
// not forwarded; the metrics groups may be.
func delegated(path string) bool {
	_, rest, ok := strings.Cut(path, "/apis/")
	group, _, _ := strings.Cut(rest, "/")
	own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix("."+group, ".metrics.k8s.io")
	return ok && !own
}
