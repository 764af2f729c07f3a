package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Call is one HTTP request to a region, for whoever counts them.
type Call struct {
	Region string
	Verb   string        // the method, or "WATCH"
	Code   string        // of the answer: "200"; empty when there was none
	Reason string        // why it is not a good answer: "breaker", "cancelled", "replaced", or as in nf.RegionState
	Took   time.Duration // until the answer was read, or a watch had begun
}

// patience is how long an API server may keep silent in the middle of a request
// that is not a watch.
const patience = 30 * time.Second

var (
	// errSilent is the cause that ends a request which waited long enough; it
	// is told apart from the caller's own end.
	errSilent = errors.New("no answer in time")

	errReplaced = errors.New("it has another kubeconfig now, or is gone")
)

// guard is the way of every request to a region. It holds requests back while
// the region gives no answer, does not wait for ever, and keeps account of how
// the region is doing.
type guard struct {
	region    string
	cfg       PoolConfig
	share     *share
	transport *http.Transport
	proxy     atomic.Pointer[string] // host and port of the operator's, once it has been used
	next      http.RoundTripper      // leads to the transport
	breaker   breaker
	standing  standing
	gone      chan struct{} // closed when the cluster is retired
}

func newGuard(region string, cfg PoolConfig) *guard {
	return &guard{
		region: region, cfg: cfg, share: newShare(cfg.limits), gone: make(chan struct{}),
		breaker:  breaker{clock: cfg.Clock, threshold: cfg.Failures, state: nf.BreakerClosed},
		standing: standing{region: region, clock: cfg.Clock, log: cfg.Logger, condition: nf.RegionUnknown},
	}
}

// CloseIdleConnections is what http.Client calls; client-go's own layers do not
// hand it on.
func (g *guard) CloseIdleConnections() { g.transport.CloseIdleConnections() }

// retire makes every further request fail, and ends what waits. Requests that
// are under way finish. It is called once.
func (g *guard) retire() {
	close(g.gone)
	g.transport.CloseIdleConnections()
}

func (g *guard) retired() bool {
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// RoundTrip implements http.RoundTripper. But for a watch, the answer that it
// returns is there as a whole: one that breaks off is none.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	watch := req.URL.Query().Get("watch") != ""
	call := Call{Region: g.region, Verb: req.Method}
	if watch {
		call.Verb = "WATCH"
	}
	if g.retired() {
		call.Reason = "replaced"
		return nil, g.refuse(req, call, errReplaced)
	}
	t, err := g.breaker.admit(watch)
	if err != nil {
		call.Reason = "breaker"
		return nil, g.refuse(req, call, err)
	}
	var resp *http.Response
	if watch {
		resp, err = g.next.RoundTrip(req)
	} else {
		resp, err = g.exchange(req)
	}
	if err == nil {
		err = g.screen(resp)
	}
	if err != nil {
		resp = nil
	}
	call.Reason = g.settle(req.Context(), t, resp, err)
	if call.Took = g.cfg.Clock().Sub(t.began); resp != nil {
		call.Code = strconv.Itoa(resp.StatusCode)
	}
	g.cfg.Observe(call)
	if g.retired() {
		g.transport.CloseIdleConnections()
	}
	return resp, err
}

// refuse answers a request that is not sent.
func (g *guard) refuse(req *http.Request, call Call, err error) error {
	if req.Body != nil {
		_ = req.Body.Close() // an http.RoundTripper always does
	}
	g.cfg.Observe(call)
	return err
}

// exchange sends a request and reads its whole answer. It ends when the region
// keeps silent for too long, or sends too much.
func (g *guard) exchange(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	whole := time.AfterFunc(answerTime, func() { cancel(errSlow) })
	defer whole.Stop()
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err == nil {
		err = g.hold(ctx, resp, silence)
	}
	if err == nil {
		g.tidy(resp.Header)
		return resp, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) || errors.Is(cause, errSlow) {
		err = cause
	}
	return nil, err
}

// hold reads the body of an answer into memory. The timer begins anew with each
// piece that comes.
func (g *guard) hold(ctx context.Context, resp *http.Response, silence *time.Timer) error {
	defer resp.Body.Close()
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		own, end, err := g.share.take(ctx, g.share.answer)
		if err != nil {
			return err
		}
		defer end()
		t, _ = own.Value(turnKey{}).(*turn)
	}
	var body bytes.Buffer
	var s scale
	piece := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(piece)
		if n > 0 {
			silence.Stop() // what follows is not the server's silence
			if err := t.read(ctx, s.weigh(piece[:n])); err != nil {
				return err
			}
			silence.Reset(patience)
			body.Write(piece[:n])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the answer broke off: %w", err)
		}
	}
	resp.Body = io.NopCloser(&body)
	return nil
}

// screen returns an error for an answer that no API server gives, and takes the
// text out of errors that are not an API server's: what answers may be another
// server, whose words are not for whoever uses this service.
func (g *guard) screen(resp *http.Response) error {
	code := resp.StatusCode
	if code >= http.StatusMultipleChoices && code < http.StatusBadRequest {
		_ = resp.Body.Close() // nobody reads it
		return &misdirected{resp.Status}
	}
	if code < http.StatusBadRequest {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	var status metav1.Status
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.APIVersion != "v1" {
		body = nil
		resp.Header.Del("Content-Type") // or the client would try to read it
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// maxStatus is the size of an error that is read.
const maxStatus = 256 << 10

// misdirected is the error of a server that redirects. To follow it would bring
// the region's credentials to whatever it names.
type misdirected struct{ status string }

func (m *misdirected) Error() string {
	return "it answers " + m.status + ": redirects are not followed"
}

// tidy writes a time to come again at as a number of seconds, the only form
// that client-go understands.
func (g *guard) tidy(h http.Header) {
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait := max(at.Sub(g.cfg.Clock()), 0)
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}

// settle keeps account of what became of a request, and says what was wrong.
func (g *guard) settle(ctx context.Context, t ticket, resp *http.Response, err error) (reason string) {
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) && !isOversized(err):
		g.breaker.abandoned(t)
		return "cancelled"
	case isOversized(err):
		g.breaker.answered() // it did, and more than that
		g.standing.touch()
		return "oversized"
	case err != nil:
		reason = unreachable(err)
	case unavailable(resp):
		reason, err = "unavailable", fmt.Errorf("it answers %s", resp.Status)
	default:
		g.breaker.answered()
		return g.standing.hear(ctx, resp)
	}
	if !g.breaker.failed(t, err) {
		g.standing.touch()
		return reason
	}
	// What is left of its connections may be dead: the probe makes a new one.
	g.transport.CloseIdleConnections()
	g.standing.bad(ctx, reason, err)
	return reason
}

// unavailable reports whether an answer comes from what stands before an API
// server that is not there. One that says when to come again is there.
func unavailable(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return resp.Header.Get("Retry-After") == ""
	}
	return false
}
