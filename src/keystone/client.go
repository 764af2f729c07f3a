package keystone

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	remembered = time.Minute      // maximum use of a token without asking again
	askWithin  = 10 * time.Second // of one request
	restTime   = 2 * time.Second  // after a failure, no request is sent
	maxTokens  = 8192             // that are remembered
	maxToken   = 8 << 10          // bytes of a token
	maxAsking  = 16               // concurrent requests
)

// Config configures a Client. URL, Credentials and Transport are required.
type Config struct {
	URL         string                                                      // such as https://keystone.example.org:5000/v3
	Credentials func(ctx context.Context) (user string, password nf.Secret) // of the service user
	Project     string                                                      // that the service user has its role in; default service
	Domain      string                                                      // of the service user and of its project; default Default
	// Names is the domain whose users and projects have their names here; default Default.
	// Those of other domains have their Keystone ids, because names are unique in a domain
	// only.
	Names     string
	Transport http.RoundTripper
	Clock     func() time.Time // default time.Now
	Logger    *slog.Logger     // default: discard
}

// Client validates tokens. It is safe for concurrent use.
type Client struct {
	cfg    Config
	base   string
	http   http.Client
	asking chan struct{} // semaphore of validations

	renewing chan struct{} // semaphore: one request for the service user's token at a time

	mu     sync.Mutex
	known  *simplelru.LRU[[sha256.Size]byte, proven]
	own    ownToken
	failed time.Time // time of the last failure; zero: the last request succeeded
}

// proven is a valid token.
type proven struct {
	identity nf.Identity
	until    time.Time
}

// New returns a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("cannot create a client of Keystone: its URL must begin with http:// or https://, and contain a host and no user or query")
	case cfg.Credentials == nil || cfg.Transport == nil:
		return nil, errors.New("cannot create a client of Keystone: Credentials and Transport are required")
	}
	for value, usual := range map[*string]string{&cfg.Project: "service", &cfg.Domain: defaultDomain, &cfg.Names: defaultDomain} {
		if *value == "" {
			*value = usual
		}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	known, _ := simplelru.NewLRU[[sha256.Size]byte, proven](maxTokens, nil) // fails only for a size below 1
	return &Client{
		cfg: cfg, base: strings.TrimSuffix(cfg.URL, "/"), asking: make(chan struct{}, maxAsking), renewing: make(chan struct{}, 1), known: known,
		http: http.Client{Transport: cfg.Transport, Timeout: askWithin, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it would carry the tokens to another host
		}},
	}, nil
}

const defaultDomain = "Default"

// Known returns the identity of a token that was validated less than a minute ago and has
// not expired. It sends nothing.
func (c *Client) Known(token string) (nf.Identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, found := c.known.Get(sha256.Sum256([]byte(token)))
	if !found || !c.cfg.Clock().Before(p.until) {
		return nf.Identity{}, false
	}
	return p.identity, true
}

// Identity validates a token. It returns nf.Unauthenticated for a token that Keystone does
// not accept, and nf.Unreachable with the reason nf.ReasonKeystone if Keystone does not
// answer, or does not accept the service user.
func (c *Client) Identity(ctx context.Context, token string) (nf.Identity, error) {
	if !wellFormed(token) {
		return nf.Identity{}, wrongToken()
	}
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nf.Identity{}, nf.E(nf.Cancelled, "authenticate", "the request", context.Cause(ctx))
	}
	if id, found := c.Known(token); found {
		return id, nil // another request has asked meanwhile
	}
	if c.resting() {
		return nf.Identity{}, c.unreachable(ctx, nil)
	}
	// A client that disconnects must not count as a failure of Keystone.
	p, err := c.validate(context.WithoutCancel(ctx), token)
	if nf.KindOf(err) == nf.Unauthenticated {
		c.note(nil)
		return nf.Identity{}, err
	}
	c.note(err)
	if err != nil {
		return nf.Identity{}, c.unreachable(ctx, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Add(sha256.Sum256([]byte(token)), p)
	return p.identity, nil
}

// wellFormed reports whether a token may be the value of a header.
func wellFormed(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func wrongToken() error {
	return nf.E(nf.Unauthenticated, "authenticate", "the request", errors.New("its token is not valid in Keystone, or has expired"))
}

// resting reports whether a request failed just now.
func (c *Client) resting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failed.IsZero() && c.cfg.Clock().Sub(c.failed) < restTime
}

// note records the result of a request.
func (c *Client) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = time.Time{}
	if err != nil {
		c.failed = c.cfg.Clock()
	}
}

// unreachable returns the error of a token that cannot be validated, and logs the cause if
// there is one.
func (c *Client) unreachable(ctx context.Context, cause error) error {
	if cause != nil {
		c.cfg.Logger.WarnContext(ctx, "failed to validate a token with Keystone", "url", c.base, "error", cause)
	}
	return &nf.Error{Kind: nf.Unreachable, Op: "authenticate", Subject: "the request", Reason: nf.ReasonKeystone, RetryAfter: restTime,
		Err: errors.New("its token cannot be validated with Keystone at present; other ways to authenticate work")}
}
