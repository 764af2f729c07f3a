package nfvo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	version     = "1.4.0" // of the Grants interface
	requestTime = time.Minute
	maxResponse = 4 << 20 // bytes
	firstPoll   = time.Second
	longestPoll = 30 * time.Second
)

// Config configures a client. URL, Transport and Credentials are required.
type Config struct {
	URL         string // of the NFVO, without /grant/v1
	TokenURL    string // of an OAuth2 server; empty: the credentials are sent to the NFVO itself
	Transport   http.RoundTripper
	Credentials func(ctx context.Context) (user string, password nf.Secret) // empty: none, such as with a client certificate
	Callback    string                                                      // URL of this service in the links of requests
}

// Client asks an NFVO for grants. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
	http http.Client
}

// New returns a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(cfg.URL, "/") + "/grant/v1/grants")
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, errors.New("cannot create a client of the NFVO: its URL must begin with http:// or https://, and contain a host and no user")
	}
	if cfg.Transport == nil || cfg.Credentials == nil {
		return nil, errors.New("cannot create a client of the NFVO: Transport and Credentials are required")
	}
	cfg.Callback = strings.TrimSuffix(cfg.Callback, "/")
	return &Client{cfg: cfg, base: base, http: http.Client{
		Transport: cfg.Transport, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would carry the credentials to another host
	}}, nil
}

// Ask asks for a grant. It returns nf.Forbidden if the NFVO refuses the occurrence,
// nf.Unreachable if it does not respond, and nf.Unsupported if its answer cannot be
// honoured. If the NFVO decides later, Await returns the decision.
func (c *Client) Ask(ctx context.Context, req nf.GrantRequest) (nf.Grant, nf.PendingGrant, error) {
	body, err := json.Marshal(requestOf(req, c.cfg.Callback))
	if err != nil {
		return nf.Grant{}, nf.PendingGrant{}, fmt.Errorf("cannot encode the request for a grant: %w", err)
	}
	answer, err := c.send(ctx, http.MethodPost, c.base, body)
	switch {
	case err != nil:
		return nf.Grant{}, nf.PendingGrant{}, err
	case answer.status == http.StatusAccepted && answer.location == nil:
		return nf.Grant{}, nf.PendingGrant{}, c.unusable("its answer 202 has no Location at the NFVO")
	case answer.status == http.StatusAccepted:
		return nf.Grant{}, nf.PendingGrant{At: answer.location.String(), Wait: answer.retry}, nil
	}
	g, err := c.grant(req, answer.body)
	return g, nf.PendingGrant{}, err
}

// Await waits until the NFVO has decided about a pending grant. The errors are those of
// Ask; it returns nf.Unsupported for one of another NFVO.
func (c *Client) Await(ctx context.Context, req nf.GrantRequest, pending nf.PendingGrant) (nf.Grant, error) {
	at, err := url.Parse(pending.At)
	if err != nil || !c.has(at) {
		return nf.Grant{}, c.unusable("it is pending at another NFVO")
	}
	answer := answer{status: http.StatusAccepted, retry: pending.Wait}
	for n := 0; answer.status == http.StatusAccepted; n++ {
		wait := answer.retry
		if wait <= 0 {
			wait = delay.Doubled(firstPoll, longestPoll, n)
		}
		delay.For(ctx, min(wait, longestPoll), nil)
		if ctx.Err() != nil {
			return nf.Grant{}, nf.E(nf.Unreachable, "get", "the grant for occurrence "+req.Occurrence, context.Cause(ctx))
		}
		if answer, err = c.send(ctx, http.MethodGet, at, nil); err != nil {
			return nf.Grant{}, err
		}
		if answer.location != nil {
			at = answer.location
		}
	}
	return c.grant(req, answer.body)
}

// has reports whether a URL is at the NFVO: the credentials go nowhere else.
func (c *Client) has(at *url.URL) bool { return at.Host == c.base.Host && at.Scheme == c.base.Scheme }

// answer is a response that is not an error.
type answer struct {
	status   int
	location *url.URL // nil: none, or at another host
	retry    time.Duration
	body     []byte
}

// send sends a request, and reads the whole answer.
func (c *Client) send(ctx context.Context, method string, to *url.URL, body []byte) (answer, error) {
	resp, err := c.attempt(ctx, method, to, body)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return answer{}, nf.E(nf.Unreachable, "read", "the answer of the NFVO", outbound.Plain(err))
	case len(content) > maxResponse:
		return answer{}, c.unusable(fmt.Sprintf("its answer has more than %d bytes", maxResponse))
	case resp.StatusCode >= 300 || resp.StatusCode < 200:
		return answer{}, refusal(resp.StatusCode, content)
	}
	out := answer{status: resp.StatusCode, body: content}
	if at, err := to.Parse(resp.Header.Get("Location")); err == nil && resp.Header.Get("Location") != "" && c.has(at) {
		out.location = at
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		out.retry = time.Duration(seconds) * time.Second
	}
	return out, nil
}

func (c *Client) attempt(ctx context.Context, method string, to *url.URL, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot ask the NFVO: %w", err)
	}
	req.Header.Set("Version", version)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "k8splugin")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.authorize(ctx, req); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nf.E(nf.Unreachable, "ask", "the NFVO", outbound.Plain(err))
	}
	return resp, nil
}

// authorize adds a token, or else the user and the password. An occurrence asks for a
// grant once, so a token is not kept.
func (c *Client) authorize(ctx context.Context, req *http.Request) error {
	user, password := c.cfg.Credentials(ctx)
	switch {
	case user == "" && len(password) == 0:
		return nil
	case c.cfg.TokenURL == "":
		req.SetBasicAuth(user, string(password))
		return nil
	}
	source := clientcredentials.Config{ClientID: user, ClientSecret: string(password), TokenURL: c.cfg.TokenURL}
	token, err := source.Token(context.WithValue(ctx, oauth2.HTTPClient, &c.http))
	if err != nil {
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			return nf.E(nf.Unreachable, "get", "a token for the NFVO", fmt.Errorf("the token server responds with %d", e.Response.StatusCode)) // its text may quote the secret
		}
		return nf.E(nf.Unreachable, "get", "a token for the NFVO", outbound.Plain(err))
	}
	token.SetAuthHeader(req)
	return nil
}

func (c *Client) unusable(why string) error {
	return nf.E(nf.Unsupported, "use", "the grant of the NFVO", errors.New(why))
}

// refusal returns the error for a status: the NFVO has refused with 403. Any other status of
// an error says that the NFVO has not decided.
func refusal(status int, body []byte) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	reason := fmt.Sprintf("the NFVO responds with %d", status)
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		reason += ": " + nf.Clip(problem.Detail, 1024)
	}
	kind := nf.Unreachable
	switch {
	case status == http.StatusForbidden:
		kind = nf.Forbidden
	case status < http.StatusInternalServerError && status != http.StatusUnauthorized && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		kind = nf.Unsupported // asking again changes nothing
	}
	return nf.E(kind, "get", "a grant", errors.New(reason))
}
