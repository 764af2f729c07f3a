package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stub is a region that exists in a function only.
type stub func(*http.Request) (*http.Response, error)

func (s stub) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

// answer is what a stub says. Headers are pairs of name and value.
func answer(code int, body string, headers ...string) (*http.Response, error) {
	resp := &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}
	for i := 0; i+1 < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp, nil
}

// refusing answers like a port on which no process listens.
func refusing(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// hole is a stub that never says anything.
func hole(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func well(*http.Request) (*http.Response, error) { return answer(200, `{}`) }

// notes are the reports of a pool.
type notes struct {
	mu    sync.Mutex
	calls []Call
	log   bytes.Buffer
}

func (n *notes) observe(c Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, c)
}

// said returns the messages of the log.
func (n *notes) said() []string {
	var out []string
	for line := range strings.Lines(n.log.String()) {
		_, rest, _ := strings.Cut(line, `msg="`)
		message, _, _ := strings.Cut(rest, `"`)
		out = append(out, message)
	}
	return out
}

// stubbed returns a pool of stubs by region.
func stubbed(regions map[string]stub) (*Pool, *notes) {
	n := &notes{}
	return New(PoolConfig{
		Wrap:    func(region string, _ http.RoundTripper) http.RoundTripper { return regions[region] },
		Observe: n.observe, Logger: slog.New(slog.NewTextHandler(&n.log, nil)),
	}), n
}

func opening(t *testing.T, p *Pool, id string) *Cluster {
	t.Helper()
	c, err := p.Open(id, accessAs(id, "t"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alone is a pool with one region.
func alone(t *testing.T, s stub) (*Pool, *Cluster, *notes) {
	t.Helper()
	p, n := stubbed(map[string]stub{"east": s})
	return p, opening(t, p, "east"), n
}

// tryOnce sends one request, as the package's methods do.
func (c *Cluster) tryOnce(ctx context.Context) error {
	_, err := c.client.send(ctx, func() *rest.Request { return c.client.verb(http.MethodGet).AbsPath("/api/v1/nodes") }, nil)
	return c.client.region.fail(ctx, "ask", "the region", err)
}

func TestGuardTellsOutcomes(t *testing.T) {
	cases := map[string]struct {
		reason string
		region stub
		call   Call
		want   nf.RegionCondition
		why    string
	}{
		"fine":      {"a good answer", well, Call{Code: "200"}, nf.RegionAvailable, ""},
		"not there": {"a no is an answer", func(*http.Request) (*http.Response, error) { return answer(404, "") }, Call{Code: "404"}, nf.RegionAvailable, ""},
		"throttled": {
			"who asks for patience is there",
			func(*http.Request) (*http.Response, error) { return answer(429, "", "Retry-After", "1") }, Call{Code: "429"}, nf.RegionAvailable, "",
		},
		"unauthorized": {
			"with these credentials nothing can be done",
			func(*http.Request) (*http.Response, error) { return answer(401, "") },
			Call{Code: "401", Reason: "unauthorized"}, nf.RegionUnreachable, "unauthorized",
		},
		"internal": {
			"trouble with one request says nothing of the region",
			func(*http.Request) (*http.Response, error) { return answer(500, "") }, Call{Code: "500"}, nf.RegionUnknown, "",
		},
		"patience": {
			"503 that says when to come again is the API server's own",
			func(*http.Request) (*http.Response, error) { return answer(503, "", "Retry-After", "1") }, Call{Code: "503"}, nf.RegionUnknown, "",
		},
		"bad gateway": {
			"what answers is not the API server",
			func(*http.Request) (*http.Response, error) { return answer(502, "") },
			Call{Code: "502", Reason: "unavailable"}, nf.RegionUnreachable, "unavailable",
		},
		"aggregated API": {
			"the server of an aggregated API is away, not the API server",
			func(req *http.Request) (*http.Response, error) {
				req.URL.Path = "/apis/metrics.example.org/v1/gizmos"
				return answer(503, "")
			}, Call{Code: "503", Reason: "unavailable"}, nf.RegionUnknown, "",
		},
		"aggregated API's denial": {
			"the server of an aggregated API does not accept the API server",
			func(req *http.Request) (*http.Response, error) {
				req.URL.Path = "/apis/metrics.k8s.io/v1beta1/pods"
				return answer(401, "")
			}, Call{Code: "401", Reason: "unauthorized"}, nf.RegionUnknown, "",
		},
		"Kubernetes' own API": {
			"only the API server itself serves this API",
			func(req *http.Request) (*http.Response, error) {
				req.URL.Path = "/apis/storage.k8s.io/v1/storageclasses"
				return answer(503, "")
			}, Call{Code: "503", Reason: "unavailable"}, nf.RegionUnreachable, "unavailable",
		},
		"refused": {"no process listens on the port", refusing, Call{Reason: "tcp"}, nf.RegionUnreachable, "tcp"},
		"no name": {
			"the name is not known",
			func(*http.Request) (*http.Response, error) {
				return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
			},
			Call{Reason: "dns"}, nf.RegionUnreachable, "dns",
		},
		"black hole": {"nothing comes back", hole, Call{Reason: "timeout"}, nf.RegionUnreachable, "timeout"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c, told := alone(t, tc.region)
				start := time.Now()
				for range 5 {
					_ = c.tryOnce(t.Context())
					<-time.After(time.Second)
				}
				got := told.calls[0]
				got.Took = 0
				tc.call.Region, tc.call.Verb = "east", "GET"
				diff(t, tc.reason, tc.call, got)
				state := p.State("east")
				if state.Condition != tc.want || state.Reason != tc.why || state.Checked.Before(start) {
					t.Errorf("%s: the state is %+v, want %s, reason %q", tc.reason, state, tc.want, tc.why)
				}
				if open := state.Breaker != nf.BreakerClosed; open != (tc.want == nf.RegionUnreachable && tc.why != "unauthorized") {
					t.Errorf("%s: the breaker is %s", tc.reason, state.Breaker)
				}
			})
		})
	}
}

func TestGuardBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, now := 0, stub(refusing)
		p, c, told := alone(t, func(req *http.Request) (*http.Response, error) { sent++; return now(req) })
		var err error
		for nf.ReasonOf(err) != "breaker" {
			err = c.tryOnce(t.Context())
			wantKind(t, err, nf.Unreachable)
		}
		after := nf.RetryAfterOf(err)
		if after <= 0 || after > 4*breaker.FirstPause || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("who is held back is told when to come again (%v) and what it was: %v", after, err)
		}
		state, before := p.State("east"), sent
		if state.Breaker != nf.BreakerOpen || time.Until(state.Retry) > after || state.Condition != nf.RegionUnreachable {
			t.Errorf("the state is %+v, want open until %v from now", state, after)
		}
		start := time.Now()
		err = c.tryOnce(t.Context())
		wantKind(t, err, nf.Unreachable)
		if sent != before || time.Since(start) > 0 {
			t.Errorf("%d requests were sent and %v waited while the breaker was open", sent-before, time.Since(start))
		}
		diff(t, "it is counted", Call{Region: "east", Verb: "GET", Reason: "breaker"}, told.calls[len(told.calls)-1])

		now = well
		<-time.After(after)
		if err := c.tryOnce(t.Context()); err != nil || sent != before+1 {
			t.Errorf("the probe goes through and closes the breaker: %v", err)
		}
		if state := p.State("east"); state.Condition != nf.RegionAvailable || state.Breaker != nf.BreakerClosed || !state.Retry.IsZero() || state.Message != "" {
			t.Errorf("the state is %+v, want available", state)
		}
		diff(t, "each change is logged once", []string{"cloud region is unreachable", "cloud region reachable again"}, told.said())
	})
}

// TestGuardHoleHurtsNobodyElse is the promise that regions share nothing.
func TestGuardHoleHurtsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := stubbed(map[string]stub{"dead": hole, "alive": well})
		dead, alive := opening(t, p, "dead"), opening(t, p, "alive")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if err := dead.tryOnce(ctx); err == nil {
					t.Error("a dead region answered")
				}
			})
		}
		start := time.Now()
		synctest.Wait() // all callers of the dead region wait
		if err := alive.tryOnce(t.Context()); err != nil || time.Since(start) > 0 {
			t.Errorf("another region answers at once: %v after %v", err, time.Since(start))
		}
		callers.Wait()
		if waited := time.Since(start); waited > patience+2*firstPause {
			t.Errorf("the callers waited for %v, want %v and a little: then the breaker is open", waited, patience)
		}
	})
}

func TestGuardCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, told := alone(t, hole)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wantKind(t, c.tryOnce(ctx), nf.Timeout)
			cancel()
		}
		if state := p.State("east"); state.Breaker != nf.BreakerClosed || told.calls[0].Reason != "cancelled" {
			t.Errorf("impatient callers do not open the breaker: %+v, %+v", state, told.calls[0])
		}
	})
}

// drip is a body that comes a byte at a time.
type drip struct {
	ctx   context.Context //nolint:containedctx // it is a request's own
	left  int
	pause time.Duration
	end   error
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, d.end
	}
	d.left--
	select {
	case <-time.After(d.pause):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	p[0] = ' '
	return 1, nil
}

func TestGuardReadsAnswers(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   drip
		want   string // the reason; empty: none
		took   time.Duration
	}{
		"slow":    {"an answer that comes piece by piece is waited for", drip{left: 3, pause: patience - 1, end: io.EOF}, "", 3 * (patience - 1)},
		"endless": {"but not for ever", drip{left: 1000, pause: patience - 1, end: io.EOF}, "timeout", answerTime},
		"stalled": {"one that does not go on is none", drip{left: 2, pause: patience + 1}, "timeout", patience},
		"cut":     {"one that breaks off is none", drip{left: 1, end: io.ErrUnexpectedEOF}, "tcp", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, told := alone(t, func(req *http.Request) (*http.Response, error) {
					resp, err := answer(200, "")
					body := tc.body
					body.ctx = req.Context()
					resp.Body = io.NopCloser(&body)
					return resp, err
				})
				err := c.client.verb(http.MethodGet).AbsPath("/version").MaxRetries(0).Do(t.Context()).Error()
				if got := told.calls[0]; got.Reason != tc.want || got.Took != tc.took || (err == nil) != (tc.want == "") {
					t.Errorf("%s: %+v, %v; want reason %q after %v", tc.reason, got, err, tc.want, tc.took)
				}
			})
		})
	}
}

// TestGuardClosesBodies is http.RoundTripper's contract, also for a request that
// is not sent.
func TestGuardClosesBodies(t *testing.T) {
	_, c, _ := alone(t, well)
	c.transport.close()
	body := &closing{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://east.invalid", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.transport.RoundTrip(req) //nolint:bodyclose // there is no answer
	if !errors.Is(err, errReplaced) || !body.closed {
		t.Errorf("a retired cluster sends nothing and closes the body: %v, closed %v", err, body.closed)
	}
}

type closing struct {
	io.Reader

	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}
