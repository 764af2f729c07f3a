package aai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// OldestVersion is the oldest version of the API that has k8s-resources.
const OldestVersion = 24

const (
	defaultVersion = 30
	requestTime    = time.Minute
	maxResponse    = 32 << 20 // bytes
	pageSize       = 100      // objects in a page of a list
	failures       = 5        // consecutive requests without a response that open the circuit breaker
)

// ClientConfig configures a client. URL, AppID, Credentials, Transport and NewID are
// required.
type ClientConfig struct {
	URL         string // of A&AI, without /aai
	Version     int    // of the API; 30 by default, at least 24
	AppID       string // X-FromAppId
	Credentials func(ctx context.Context) (user string, password nf.Secret)
	Transport   http.RoundTripper
	NewID       func() string // creates the ids of requests
	Rate        float64       // requests per second; no limit by default
	Clock       func() time.Time
}

func (c *ClientConfig) complete() error {
	u, err := url.Parse(c.URL)
	c.Version = cmp.Or(c.Version, defaultVersion)
	c.URL = strings.TrimSuffix(c.URL, "/")
	if c.Clock == nil {
		c.Clock = time.Now
	}
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return errors.New("cannot create a client of A&AI: its URL must begin with http:// or https://, and contain a host and no user")
	case c.Version < OldestVersion:
		return fmt.Errorf("cannot create a client of A&AI: version v%d has no k8s-resources; use v%d or a later one", c.Version, OldestVersion)
	case c.AppID == "" || c.Credentials == nil || c.Transport == nil || c.NewID == nil:
		return errors.New("cannot create a client of A&AI: AppID, Credentials, Transport and NewID are required")
	}
	return nil
}

// Client sends requests to A&AI. It is safe for concurrent use. While A&AI does not
// respond, its circuit breaker rejects requests.
type Client struct {
	cfg     ClientConfig
	http    http.Client
	breaker *breaker.Breaker
	rate    *rate.Limiter
}

// NewClient returns a client. It sends nothing.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	limit := rate.Inf
	if cfg.Rate > 0 {
		limit = rate.Limit(cfg.Rate)
	}
	return &Client{
		cfg: cfg, rate: rate.NewLimiter(limit, 1),
		http: http.Client{Transport: cfg.Transport, Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it would carry the credentials to another host
		}},
		breaker: breaker.New(breaker.Config{Clock: cfg.Clock, Failures: failures}),
	}, nil
}

// change is one operation of a transaction.
type change struct {
	Action string         `json:"action"`
	URI    string         `json:"uri"`
	Body   map[string]any `json:"body"`
}

// get returns an object with its children, or nil if it does not exist.
func (c *Client) get(ctx context.Context, path string) (map[string]any, error) {
	return c.read(ctx, path+"?depth=all")
}

// read returns the response to a GET, or nil if there is nothing at the path.
func (c *Client) read(ctx context.Context, path string) (map[string]any, error) {
	data, err := c.send(ctx, http.MethodGet, path, nil)
	if e, ok := errors.AsType[*ResponseError](err); ok && e.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil || out == nil {
		return nil, fmt.Errorf("cannot read %s: the response of A&AI is not a JSON object", path)
	}
	return out, nil
}

// list returns the objects of a collection that have the attributes of the filter,
// without children and edges.
func (c *Client) list(ctx context.Context, path, element string, filter url.Values) (out []map[string]any, err error) {
	for page := 1; ; page++ {
		query := url.Values{"nodes-only": {"true"}, "resultIndex": {strconv.Itoa(page)}, "resultSize": {strconv.Itoa(pageSize)}}
		maps.Copy(query, filter)
		found, err := c.read(ctx, path+"?"+query.Encode())
		if err != nil || found == nil {
			return out, err // a page that is empty does not exist
		}
		list := objects(found, element)
		out = append(out, list...)
		if len(list) < pageSize {
			return out, nil
		}
	}
}

// exists reports whether an object exists.
func (c *Client) exists(ctx context.Context, path string) (bool, error) {
	_, err := c.send(ctx, http.MethodGet, path+"?nodes-only=true", nil)
	if e, ok := errors.AsType[*ResponseError](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// transact makes all changes or none.
func (c *Client) transact(ctx context.Context, changes []change) error {
	body, err := json.Marshal(map[string]any{"operations": changes})
	if err != nil {
		return fmt.Errorf("cannot encode a transaction: %w", err)
	}
	_, err = c.send(ctx, http.MethodPost, "/bulk/single-transaction", body)
	return err
}

// send sends a request, and returns the body of the response. The error is a
// *ResponseError if A&AI has responded.
func (c *Client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, fmt.Errorf("cannot send %s %s to A&AI: %w", method, path, err)
	}
	if err := c.rate.Wait(ctx); err != nil {
		return nil, fmt.Errorf("cannot send %s %s to A&AI: %w", method, path, err)
	}
	ticket, err := c.breaker.Admit(true)
	if err != nil {
		return nil, fmt.Errorf("cannot send %s %s to A&AI: %w", method, path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		err = outbound.Plain(err)
		c.fail(ctx, ticket, err)
		return nil, fmt.Errorf("cannot send %s %s to A&AI: %w", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		err = outbound.Plain(err)
		c.fail(ctx, ticket, err)
		return nil, fmt.Errorf("cannot read the response of A&AI to %s %s: %w", method, path, err)
	}
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // of what is before A&AI
		c.fail(ctx, ticket, newResponseError(method, path, resp.StatusCode, nil))
	default:
		c.breaker.Responded()
	}
	if len(data) > maxResponse {
		return nil, fmt.Errorf("cannot read the response of A&AI to %s %s: it has more than %d bytes", method, path, maxResponse)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, newResponseError(method, path, resp.StatusCode, data)
	}
	return data, nil
}

// fail tells the circuit breaker that there was no response, unless the caller has
// ended the request.
func (c *Client) fail(ctx context.Context, t breaker.Ticket, err error) {
	if ctx.Err() != nil {
		c.breaker.Abandoned(t)
		return
	}
	c.breaker.Failed(t, err.Error())
}

func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s/aai/v%d%s", c.cfg.URL, c.cfg.Version, path), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("its URL is not valid")
	}
	user, password := c.cfg.Credentials(ctx)
	req.SetBasicAuth(user, string(password))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-FromAppId", c.cfg.AppID)
	req.Header.Set("X-TransactionId", c.cfg.NewID())
	req.Header.Set("User-Agent", "k8splugin")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
