package northbound

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// call holds the state of the request that is being answered. The outermost
// layer creates it and the inner layers fill it in.
type call struct {
	id        string
	log       *slog.Logger
	route     string              // the path's template; empty until the router has matched one
	operation *openapi3.Operation // nil when the contract does not describe the route
	identity  string              // the caller's; empty if unknown
	answer    *recorder           // records the response; nil outside requestMiddleware
	failed    bool                // the response is a problem, of this kind
	kind      nf.Kind
	begun     string // id of the operation that the problem names
}

// code returns the status of the response.
func (c *call) code() int {
	switch {
	case c.answer != nil && c.answer.status != 0:
		return c.answer.status
	case c.failed: // before anything was written
		return statuses[c.kind]
	}
	return http.StatusOK
}

type callKey struct{}

func withCall(r *http.Request, c *call) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, c))
}

// callOf returns the request's call. Outside requestMiddleware, for example in a
// handler under test, it returns an empty one.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{log: slog.New(slog.DiscardHandler)}
}

// RequestID returns the id of the request that the context belongs to, or "".
func RequestID(ctx context.Context) string { return callOf(ctx).id }

const requestIDHeader = "X-Request-Id"

// plainID matches request ids that are accepted from clients, because they are
// safe in a log.
var plainID = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,128}$`)

func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); plainID.MatchString(id) {
		return id
	}
	return rand.Text()
}
