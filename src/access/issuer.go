package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// oidcConfig says how to verify and read an issuer's tokens. It is comparable.
type oidcConfig struct {
	issuer, audience     string
	username             string // claim that holds the user name
	groups, groupsPrefix string // claim that holds the groups, and a prefix for each group
	roots                string // PEM; if empty, the system's
}

func (l *loader) issuer(f file) {
	e := f.oidc
	if e == nil {
		return
	}
	cfg := &oidcConfig{issuer: e.issuer, audience: e.audience, username: "sub", groups: "groups", groupsPrefix: e.groupsPrefix}
	if e.username != "" {
		cfg.username = e.username
	}
	if e.groups != "" {
		cfg.groups = e.groups
	}
	if !trustworthy(e.issuer) {
		l.document.refuse(e.at, "oidc.issuer", "is not an https URL without query and fragment")
	}
	if e.audience == "" {
		l.document.refuse(e.at, "oidc.audience", "is missing: without it, tokens issued for other services would be accepted")
	}
	if e.rootsCA != "" {
		pem, err := l.beside(e.rootsCA)
		if err != nil {
			l.document.refuse(e.at, "oidc.ca_file", "cannot be read: %v", err)
		} else if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			l.document.refuse(e.at, "oidc.ca_file", "contains no certificate")
		}
		cfg.roots = string(pem)
	}
	l.v.oidc = cfg
}

// trustworthy reports whether keys from the URL cannot be replaced in transit:
// it is an https URL, or its host is a loopback address.
func trustworthy(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// issuers caches the issuer of the active rules.
type issuers struct {
	now func() time.Time
	log *slog.Logger

	mu     sync.Mutex
	latest *issuer
}

func newIssuers(now func() time.Time, log *slog.Logger) *issuers { return &issuers{now: now, log: log} }

// of returns the issuer for a configuration. Its keys are cached until the
// configuration changes.
func (s *issuers) of(cfg oidcConfig) *issuer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil || s.latest.cfg != cfg {
		s.latest = newIssuer(cfg, s.now, s.log)
	}
	return s.latest
}

const (
	askEvery  = 10 * time.Second // minimum time between requests, whatever tokens arrive
	keysFresh = 15 * time.Minute // lifetime of the keys, so that a withdrawn key stops working
	askWithin = 5 * time.Second
	maxAnswer = 1 << 20 // bytes of a discovery document or a key set
)

// issuer verifies tokens of one OpenID Connect provider. It requests the
// provider's keys when the first token arrives.
type issuer struct {
	cfg    oidcConfig
	now    func() time.Time
	log    *slog.Logger
	client *http.Client

	asking chan struct{} // semaphore: one request for keys at a time

	mu    sync.Mutex
	keys  *keys
	asked time.Time // time of the last request for keys
}

// newIssuer returns an issuer without keys.
func newIssuer(cfg oidcConfig, now func() time.Time, log *slog.Logger) *issuer {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: askWithin, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	if cfg.roots != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(cfg.roots))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &issuer{
		cfg: cfg, now: now, log: log, asking: make(chan struct{}, 1),
		client: &http.Client{Transport: strictTransport{transport}, Timeout: askWithin},
	}
}

// identity verifies a token and returns its identity.
func (s *issuer) identity(ctx context.Context, token string) (nf.Identity, error) {
	known, err := s.present(ctx)
	if err != nil {
		return nf.Identity{}, err
	}
	proven, err := known.verify(ctx, token, s.cfg, s.now)
	if err != nil && !known.expired(err) {
		// The key may be newer than the cached ones.
		if newer := s.renewed(ctx, known); newer != known {
			proven, err = newer.verify(ctx, token, s.cfg, s.now)
		}
	}
	if err != nil {
		// The library's text may quote the token's claims, which must not be
		// disclosed.
		return nf.Identity{}, unknown(errors.New("its token was not issued for this service by the issuer, or it has expired"))
	}
	return s.cfg.identity(proven)
}

// present returns the keys, refreshed if they are too old. If the refresh
// fails, old keys are better than none.
func (s *issuer) present(ctx context.Context) (*keys, error) {
	s.mu.Lock()
	known := s.keys
	s.mu.Unlock()
	if known != nil && s.now().Sub(known.at) < keysFresh {
		return known, nil
	}
	s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		return nil, &nf.Error{Kind: nf.Unreachable, Op: "authenticate", Subject: "the request", Reason: nf.ReasonIssuer, RetryAfter: askEvery,
			Err: errors.New("the issuer of its token does not answer; other ways to authenticate work")}
	}
	return s.keys, nil
}

// renewed returns keys that were fetched after the known ones, or the known
// ones if there are none.
func (s *issuer) renewed(ctx context.Context, known *keys) *keys {
	s.mu.Lock()
	latest := s.keys
	s.mu.Unlock()
	if latest != known {
		return latest
	}
	s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

// ask requests the provider's keys, unless that was done less than askEvery
// ago. One caller asks at a time; others wait.
func (s *issuer) ask(ctx context.Context) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	recent := !s.asked.IsZero() && s.now().Sub(s.asked) < askEvery
	s.mu.Unlock()
	if recent {
		return
	}
	// A client that disconnects must not fail the others.
	found, err := fetchKeys(context.WithoutCancel(ctx), s.client, s.cfg.issuer, s.now)
	s.mu.Lock()
	s.asked = s.now()
	if err == nil {
		s.keys = found
	}
	s.mu.Unlock()
	if err != nil {
		s.log.WarnContext(ctx, "failed to reach the token issuer", "issuer", s.cfg.issuer, "error", err)
	}
}

// identity reads the claims of a verified token.
func (c oidcConfig) identity(token *oidc.IDToken) (nf.Identity, error) {
	var claims map[string]json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return nf.Identity{}, unknown(errors.New("the claims of its token cannot be read"))
	}
	var id nf.Identity
	if err := json.Unmarshal(claims[c.username], &id.Name); err != nil {
		return nf.Identity{}, unknown(fmt.Errorf("its token has no string in the claim %q, which contains the user's name", c.username))
	}
	var verified bool
	if raw, ok := claims["email_verified"]; c.username == "email" && ok && (json.Unmarshal(raw, &verified) != nil || !verified) {
		return nf.Identity{}, unknown(errors.New("the email address in its token is not verified"))
	}
	if err := checkName(id.Name); err != nil {
		return nf.Identity{}, unknown(fmt.Errorf("the name in its token %w", err))
	}
	id.Kind = kindOIDC
	id.Groups = c.groupsIn(claims[c.groups])
	return id, nil
}

// groupsIn reads a group or a list of groups. It omits invalid names.
func (c oidcConfig) groupsIn(raw json.RawMessage) []string {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return nil
		}
		list = []string{one}
	}
	out := make([]string, 0, len(list))
	for _, name := range list {
		if name = c.groupsPrefix + name; checkName(name) == nil {
			out = append(out, name)
		}
	}
	out = groups(out)
	return slices.Clip(out[:min(len(out), maxGroup)])
}
