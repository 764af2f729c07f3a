package cluster

import (
	"context"
	"errors"
	"log/slog"
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

// bearer is a token.
type bearer struct {
	token   string
	fetched time.Time // zero: the service did not fetch it
	expires time.Time // zero: unknown
}

// renewal returns the time at which the token is to be renewed: after two
// thirds of its life, or at once if the service did not fetch it. A delay
// between 0 and 1 adds up to a tenth of the life.
func (b bearer) renewal(delay float64) time.Time {
	if b.fetched.IsZero() {
		return time.Time{}
	}
	return renewalTime(b.fetched, b.expires, delay)
}

// renewalTime returns when a credential is to be renewed: after two thirds of its life.
// A delay between 0 and 1 adds up to a tenth of the life.
func renewalTime(issued, expires time.Time, delay float64) time.Time {
	life := expires.Sub(issued)
	return issued.Add(life*2/3 + time.Duration(float64(life)/10*delay))
}

// valid reports whether the token has not expired.
func (b bearer) valid(now time.Time) bool {
	return b.token != "" && (b.expires.IsZero() || now.Before(b.expires))
}

// tokenError is the error of a token that could not be fetched. Its text quotes
// nothing that a server sent. It does not wrap err: the token's server failed, not
// the region.
type tokenError struct {
	reason string // of package nf
	err    error
}

func (e *tokenError) Error() string { return "it has no token: " + outbound.Plain(e.err).Error() }

// tokenCause returns why a token could not be fetched.
func tokenCause(err error) string {
	if missing, ok := errors.AsType[*tokenError](err); ok {
		err = missing.err
	}
	return outbound.Plain(err).Error()
}

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
	fetch func(ctx context.Context, current string) (bearer, error) // nil: the token is not renewed
	keep  func(context.Context, bearer) error                       // stores a token; nil: tokens are not stored
	clock func() time.Time
	log   *slog.Logger  // names the region
	delay float64       // of renewals, between 0 and 1, so that replicas do not renew together
	given bearer        // of a service account: the token of the access
	turn  chan struct{} // holds an element while a token is fetched

	mu      sync.Mutex
	current bearer
	latest  bearer    // the last that was fetched or stored
	unkept  bool      // the current token is not stored yet
	next    time.Time // no renewal before
	refusal error     // of the last attempt; nil: it was not refused
	failure error     // of the last renewal; nil: it succeeded
	failing time.Time // since when renewals fail
}

func newTokens(clock func() time.Time, log *slog.Logger) *tokens {
	return &tokens{clock: clock, log: log, turn: make(chan struct{}, 1)}
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
// fetched or stored now.
func (ts *tokens) state() (current bearer, valid, due bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := ts.clock()
	if !ts.current.valid(now) && ts.given.valid(now) {
		ts.current = ts.given
	}
	valid = ts.current.valid(now)
	wanted := ts.unkept || !now.Before(ts.current.renewal(ts.delay))
	due = ts.fetch != nil && (!valid || wanted && !now.Before(ts.next))
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

// renew fetches a token and stores it. A token that cannot be stored is used,
// and stored later.
func (ts *tokens) renew(ctx context.Context) (bearer, error) {
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	got, err := ts.fetched(limited)
	if err == nil && ts.keep != nil {
		kept := ts.keep(limited, got)
		ts.mu.Lock()
		ts.unkept = kept != nil
		ts.mu.Unlock()
		if kept != nil && ctx.Err() == nil {
			ts.log.WarnContext(ctx, "failed to store a renewed token", "error", kept.Error())
		}
	}
	if ctx.Err() == nil { // otherwise the caller has left: that says nothing about the token
		ts.conclude(ctx, err)
	}
	return got, err
}

// fetched returns a new token, or the current one if it only has to be stored.
func (ts *tokens) fetched(ctx context.Context) (bearer, error) {
	ts.mu.Lock()
	current, began := ts.current, ts.clock()
	young := ts.unkept && began.Before(current.renewal(ts.delay))
	ts.next = began.Add(tokenRetry)
	ts.mu.Unlock()
	if young {
		return current, nil
	}
	got, err := ts.fetch(ctx, current.token)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.next, ts.refusal = ts.clock().Add(tokenRetry), nil // from the end of the attempt
	if missing, ok := errors.AsType[*tokenError](err); ok && missing.reason == nf.ReasonUnauthorized {
		ts.refusal = err
	}
	if err != nil {
		return bearer{}, err
	}
	if got.fetched = began; got.expires.IsZero() {
		got.expires = began.Add(unknownLife)
	}
	ts.current, ts.latest = got, got
	return got, nil
}

// conclude records the result of a renewal. Only the first failure is logged.
func (ts *tokens) conclude(ctx context.Context, err error) {
	ts.mu.Lock()
	before := ts.failure
	if ts.failure = err; before == nil {
		ts.failing = ts.clock()
	}
	ts.mu.Unlock()
	switch {
	case err != nil && before == nil:
		ts.log.WarnContext(ctx, "failed to renew the token of a cloud region", "error", tokenCause(err))
	case err == nil && before != nil:
		ts.log.InfoContext(ctx, "token of a cloud region renewed again")
	}
}

// renewalProblem is why a credential is not renewed, if it is not.
type renewalProblem struct {
	failure error     // of the last renewal; nil: it succeeded
	since   time.Time // of the first failure
	expires time.Time // of the current credential; zero: unknown
	request string    // name of the CertificateSigningRequest that is not answered
}

func (ts *tokens) progress() renewalProblem {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return renewalProblem{failure: ts.failure, since: ts.failing, expires: ts.current.expires}
}

// renewal returns how far the renewal of the region's credential is; renewed is false if
// it is not renewed.
func (bt *breakerTransport) renewal() (p renewalProblem, renewed bool) {
	switch {
	case bt.tokens != nil:
		return bt.tokens.progress(), true
	case bt.certificates != nil:
		return bt.certificates.progress(), true
	}
	return renewalProblem{}, false
}

// offer uses a token that another replica has fetched, if it expires later than
// the last token that this one has.
func (ts *tokens) offer(b bearer) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if b.token != "" && b.expires.After(ts.latest.expires) {
		ts.current, ts.latest, ts.unkept, ts.failure = b, b, false, nil
	}
}

// reject drops a token that the API server does not accept, so that the next
// request fetches another. A token that was fetched a moment ago stays: another
// would not be accepted either. With a service account, the next request uses
// the other token of the access, if that is valid.
func (ts *tokens) reject(token string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := ts.clock()
	if ts.current.token != token || now.Before(ts.next) {
		return
	}
	switch {
	case ts.given.token == "":
		ts.current = bearer{}
	case token == ts.given.token && ts.latest.valid(now):
		ts.current = ts.latest
	case ts.given.valid(now):
		ts.current = ts.given
	}
}

// authorize returns the request with the region's current token, and the token.
// It returns the request unchanged if the region has no token that is renewed. A client
// certificate that is renewed is that of the connection.
func (bt *breakerTransport) authorize(req *http.Request) (*http.Request, string, error) {
	if bt.certificates != nil {
		bt.certificates.choose()
	}
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
