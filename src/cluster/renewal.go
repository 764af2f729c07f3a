package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	tokenTimeout = 15 * time.Second // to fetch a token
	tokenRetry   = 30 * time.Second // before a failed renewal or a rejected token is tried again
	unknownLife  = 5 * time.Minute  // of a token that does not say when it expires
)

// bearer is a token that expires.
type bearer struct {
	token            string
	fetched, expires time.Time
}

// renewal returns the time at which the token is to be renewed: after two
// thirds of its life.
func (b bearer) renewal() time.Time { return b.fetched.Add(b.expires.Sub(b.fetched) * 2 / 3) }

// tokenError is the error of a token that could not be fetched. Its text quotes
// nothing that a server sent. It does not wrap err: the token's server failed, not
// the region.
type tokenError struct {
	reason string // of package nf
	err    error
}

func (e *tokenError) Error() string { return "it has no token: " + outbound.Plain(e.err).Error() }

// refusedToken returns the error of a server that answers a request for a token
// with another status than success.
func refusedToken(server string, code int) error {
	reason := nf.ReasonUnavailable
	switch {
	case code == http.StatusForbidden:
		reason = nf.ReasonForbidden
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		reason = nf.ReasonUnauthorized
	}
	return &tokenError{reason, errors.New(server + " answers " + statusText(code))}
}

// tokens holds the bearer token of a region, and renews it after two thirds of
// its life. While a renewal fails, the token is used until it expires. It is
// safe for concurrent use.
type tokens struct {
	fetch func(context.Context) (bearer, error)
	clock func() time.Time
	turn  chan struct{} // holds an element while a token is fetched

	mu      sync.Mutex
	current bearer
	next    time.Time // no renewal before
	refusal error     // of the last attempt; nil: it was not refused
}

func newTokens(clock func() time.Time, fetch func(context.Context) (bearer, error)) *tokens {
	return &tokens{fetch: fetch, clock: clock, turn: make(chan struct{}, 1)}
}

// token returns a valid token. Only one request at a time fetches one; the
// others use the current token while it is valid, and wait otherwise.
func (ts *tokens) token(ctx context.Context) (string, error) {
	current, valid, due := ts.state()
	if !due {
		return current.token, nil
	}
	select {
	case ts.turn <- struct{}{}:
	default:
		if valid {
			return current.token, nil
		}
		select {
		case ts.turn <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	defer func() { <-ts.turn }()
	if current, valid, due = ts.state(); !due { // another request has fetched it
		return current.token, nil
	}
	if err := ts.refused(); err != nil {
		return "", err
	}
	got, err := ts.renew(ctx)
	if err != nil && valid {
		return current.token, nil
	}
	return got.token, err
}

// state returns the current token, whether it is valid, and whether it is to be
// fetched now.
func (ts *tokens) state() (current bearer, valid, due bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := ts.clock()
	valid = ts.current.token != "" && now.Before(ts.current.expires)
	due = !valid || !now.Before(ts.current.renewal()) && !now.Before(ts.next)
	return ts.current, valid, due
}

// refused returns the error of the last attempt if it was refused a moment ago.
// Providers lock an account after some wrong passwords.
func (ts *tokens) refused() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.clock().Before(ts.next) {
		return ts.refusal
	}
	return nil
}

func (ts *tokens) renew(ctx context.Context) (bearer, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	began := ts.clock()
	got, err := ts.fetch(ctx)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.next, ts.refusal = ts.clock().Add(tokenRetry), nil
	if missing, ok := errors.AsType[*tokenError](err); ok && missing.reason == nf.ReasonUnauthorized {
		ts.refusal = err
	}
	if err != nil {
		return bearer{}, err
	}
	if got.fetched = began; got.expires.IsZero() {
		got.expires = began.Add(unknownLife)
	}
	ts.current = got
	return got, nil
}

// reject drops a token that the API server does not accept, so that the next
// request fetches another. A token that was fetched a moment ago stays: another
// would not be accepted either.
func (ts *tokens) reject(token string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.current.token == token && !ts.clock().Before(ts.next) {
		ts.current = bearer{}
	}
}

// authorize returns the request with the region's current token, and the token.
// It returns the request unchanged if the region's credential is not renewed.
func (bt *breakerTransport) authorize(req *http.Request) (*http.Request, string, error) {
	if bt.tokens == nil {
		return req, "", nil
	}
	token, err := bt.tokens.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required of an http.RoundTripper
		}
		return nil, "", err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req, token, nil
}
