package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// errBroken is a connection that could not be made or that ended, with an error
// text of net/http. Like errGarbage, it does not quote that text, which may
// repeat bytes of another server.
var errBroken = errors.New("the connection broke before the response was complete")

// progress is how far a request got.
type progress struct{ connecting, answered atomic.Bool }

// trace returns a context that records a request's progress.
func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { p.connecting.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}

// forward sends a request. Its errors do not quote anything that the server
// sent.
func (bt *breakerTransport) forward(req *http.Request) (*http.Response, error) {
	req, token, err := bt.authorize(req)
	if err != nil {
		return nil, err
	}
	var p progress
	resp, err := bt.next.RoundTrip(req.WithContext(p.trace(req.Context())))
	if err == nil && bt.tokens != nil && denied(req, resp) {
		bt.tokens.reject(token)
	}
	if err == nil || !p.connecting.Load() { // otherwise the failure is local
		return resp, err
	}
	return nil, unquoted(req.Context(), err, p.answered.Load())
}

// unquoted returns err, or an error without its text if that may quote the
// server. If received is set, the server sent something other than HTTP
// (errGarbage); otherwise the connection failed (errBroken).
func unquoted(ctx context.Context, err error, received bool) error {
	switch {
	case ctx.Err() != nil, outbound.Reason(err) != "":
		return err
	case received && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return errGarbage
	}
	return errBroken
}

// statusText returns a status code with HTTP's text for it, not the server's.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// viaProxy returns an error if the proxy does not connect to the API server.
func viaProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: fmt.Errorf("the proxy answers %s", statusText(resp.StatusCode))}
}
