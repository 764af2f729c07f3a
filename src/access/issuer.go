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

// oidcConfig is how the tokens of an issuer are read. It is comparable.
type oidcConfig struct {
	issuer, audience     string
	username             string // the claim that names who it is
	groups, groupsPrefix string // the claim of its groups, and what is put before them
	roots                string // PEM; empty: the system's
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
		l.refuse(e.at, "oidc.issuer", "is not an https URL without query and fragment")
	}
	if e.audience == "" {
		l.refuse(e.at, "oidc.audience", "is missing: without it a token that was given to anybody else would be good here")
	}
	if e.rootsCA != "" {
		pem, err := l.beside(e.rootsCA)
		if err != nil {
			l.refuse(e.at, "oidc.ca_file", "cannot be read: %v", err)
		} else if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			l.refuse(e.at, "oidc.ca_file", "holds no certificate")
		}
		cfg.roots = string(pem)
	}
	l.v.oidc = cfg
}

// trustworthy reports whether nobody on the way can give us keys in the place
// of the URL: it is https, or it does not leave the machine.
func trustworthy(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// issuers keeps the issuer of the present rules.
type issuers struct {
	now func() time.Time
	log *slog.Logger

	mu     sync.Mutex
	latest *issuer
}

func newIssuers(now func() time.Time, log *slog.Logger) *issuers { return &issuers{now: now, log: log} }

// of returns the issuer of a configuration. What is known of it is kept as long
// as that stays the same.
func (s *issuers) of(cfg oidcConfig) *issuer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil || s.latest.cfg != cfg {
		s.latest = newIssuer(cfg, s.now, s.log)
	}
	return s.latest
}

const (
	askEvery  = 10 * time.Second // at most, whatever tokens come
	keysFresh = 15 * time.Minute // then they are asked for again, so that a withdrawn key goes
	askWithin = 5 * time.Second
	maxAnswer = 1 << 20 // bytes of a discovery document or a key set
)

// issuer proves identities by the tokens of an OpenID Connect provider. Its
// keys are asked for when the first token comes.
type issuer struct {
	cfg    oidcConfig
	now    func() time.Time
	log    *slog.Logger
	client *http.Client

	asking chan struct{} // holds one token: whoever has it asks

	mu    sync.Mutex
	keys  *keys
	asked time.Time // when the provider was asked last
}

// newIssuer returns an issuer that has not been asked yet.
func newIssuer(cfg oidcConfig, now func() time.Time, log *slog.Logger) *issuer {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: askWithin, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	if cfg.roots != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(cfg.roots))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &issuer{
		cfg: cfg, now: now, log: log, asking: make(chan struct{}, 1),
		client: &http.Client{Transport: plain{transport}, Timeout: askWithin},
	}
}

// identity returns who a token speaks of.
func (s *issuer) identity(ctx context.Context, token string) (nf.Identity, error) {
	known, err := s.present(ctx)
	if err != nil {
		return nf.Identity{}, err
	}
	proven, err := known.verify(ctx, token, s.cfg, s.now)
	if err != nil && !known.expired(err) {
		// The key may be newer than what is known.
		if newer := s.renewed(ctx, known); newer != known {
			proven, err = newer.verify(ctx, token, s.cfg, s.now)
		}
	}
	if err != nil {
		// The library's text may quote the token's claims, which are nobody's business.
		return nf.Identity{}, unknown(errors.New("its token is not one of the issuer's for this service, or it has expired"))
	}
	return s.cfg.identity(proven)
}

// present returns the keys, as fresh as they can be had: old ones are better
// than none.
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
		return nil, &nf.Error{Kind: nf.Unreachable, Op: "authenticate", Subject: "the request", Reason: "issuer", After: askEvery,
			Err: errors.New("the issuer of its token does not answer; other ways to authenticate work")}
	}
	return s.keys, nil
}

// renewed returns keys that were asked for after the known ones, if there are
// any to be had.
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

// ask asks the provider for its keys, unless that was done a moment ago. One
// asks at a time; the others wait for him.
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
	// One client that goes away must not fail the others.
	found, err := fetchKeys(context.WithoutCancel(ctx), s.client, s.cfg.issuer, s.now)
	s.mu.Lock()
	s.asked = s.now()
	if err == nil {
		s.keys = found
	}
	s.mu.Unlock()
	if err != nil {
		s.log.WarnContext(ctx, "the issuer of tokens does not answer", "issuer", s.cfg.issuer, "error", err)
	}
}

// identity reads the claims of a token that was verified.
func (c oidcConfig) identity(token *oidc.IDToken) (nf.Identity, error) {
	var claims map[string]json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return nf.Identity{}, unknown(errors.New("the claims of its token cannot be read"))
	}
	var id nf.Identity
	if err := json.Unmarshal(claims[c.username], &id.Name); err != nil {
		return nf.Identity{}, unknown(fmt.Errorf("its token has no text in the claim %q, which would be its name", c.username))
	}
	var verified bool
	if raw, ok := claims["email_verified"]; c.username == "email" && ok && (json.Unmarshal(raw, &verified) != nil || !verified) {
		return nf.Identity{}, unknown(errors.New("nobody has verified the address that its token names"))
	}
	if err := checkName(id.Name); err != nil {
		return nf.Identity{}, unknown(fmt.Errorf("the name in its token %w", err))
	}
	id.Kind = kindOIDC
	id.Groups = c.groupsIn(claims[c.groups])
	return id, nil
}

// groupsIn reads the groups, one or a list. What cannot be a group's name is
// none.
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
