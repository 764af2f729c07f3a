package notify

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// sendTime limits one request to a callback or a token endpoint.
const sendTime = 20 * time.Second

// sender sends requests with the credentials of their subscriptions.
type sender struct {
	subscription func(ctx context.Context, id string) (nf.VNFSubscription, error)
	hosts        outbound.Hosts
	plain        way // without the service's certificate
	certified    way

	fetches singleflight.Group // by subscription
	mu      sync.Mutex
	tokens  map[string]*oauth2.Token // by subscription
}

// way is how requests are sent: with or without a certificate.
type way struct {
	send  outbox.Send
	fetch *http.Client // for tokens
}

func newSender(cfg Config, subscription func(ctx context.Context, id string) (nf.VNFSubscription, error)) *sender {
	config := outbox.SendConfig{Hosts: cfg.Hosts, Noun: cfg.Noun, Timeout: sendTime, TLS: cfg.TLS, Via: cfg.Via}
	out := &sender{subscription: subscription, hosts: cfg.Hosts, certified: wayOf(config), tokens: map[string]*oauth2.Token{}}
	if cfg.TLS != nil {
		config.TLS = func(ctx context.Context) *tls.Config {
			bare := cfg.TLS(ctx).Clone()
			bare.Certificates, bare.GetClientCertificate = nil, nil
			return bare
		}
	}
	out.plain = wayOf(config)
	return out
}

func wayOf(config outbox.SendConfig) way {
	if config.Via == nil {
		config.Via = config.Transport()
	}
	return way{outbox.NewHTTPSend(config), &http.Client{
		Transport: config.Via, Timeout: sendTime,
		// A redirect would carry the password of the client to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send implements outbox.Send. A request of a subscription that was deleted counts as
// delivered: there is no one to deliver it to.
func (s *sender) send(ctx context.Context, r outbox.Request) (int, error) {
	id, _, _ := strings.Cut(r.Key, queueSeparator)
	to, err := s.subscription(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		s.forget(id)
		return http.StatusNoContent, nil
	}
	if err != nil {
		return http.StatusServiceUnavailable, err // with a status, because the target is not to blame
	}
	r.URL = to.Callback // it may have changed since: credentials are sent to their own callback only
	return s.sendTo(ctx, to, r)
}

// test sends a GET to the callback of a subscription that is not stored yet.
func (s *sender) test(ctx context.Context, to nf.VNFSubscription) (int, error) {
	defer s.forget(to.ID) // it may never be stored
	header := map[string]string{"Accept": "application/json", "Version": to.Interface.Version(), "User-Agent": "k8splugin"}
	return s.sendTo(ctx, to, outbox.Request{Method: http.MethodGet, URL: to.Callback, Header: header})
}

// sendTo sends a request with the credentials of a subscription. If the callback rejects
// a token, another one is fetched once.
func (s *sender) sendTo(ctx context.Context, to nf.VNFSubscription, r outbox.Request) (int, error) {
	by := s.wayTo(to)
	for attempt := 0; ; attempt++ {
		authorization, token, err := s.authorization(ctx, by, to)
		if err != nil {
			return http.StatusUnauthorized, err // with a status, as above
		}
		authorized := r
		if authorization != "" {
			authorized.Header = maps.Clone(r.Header)
			authorized.Header["Authorization"] = authorization
		}
		status, err := by.send(ctx, authorized)
		if status != http.StatusUnauthorized || token == nil || attempt > 0 {
			return status, err
		}
		s.reject(to.ID, token)
	}
}

func (s *sender) wayTo(to nf.VNFSubscription) way {
	if to.Auth.Kind.Certified() {
		return s.certified
	}
	return s.plain
}

// authorization returns the header Authorization, and the token in it if there is one.
func (s *sender) authorization(ctx context.Context, by way, to nf.VNFSubscription) (string, *oauth2.Token, error) {
	switch a := to.Auth; {
	case a.Kind == nf.CallbackBasic:
		pair := append([]byte(a.User+":"), a.Password...)
		return "Basic " + base64.StdEncoding.EncodeToString(pair), nil, nil
	case a.Kind.TokenBased():
		token, err := s.token(ctx, by, to)
		if err != nil {
			return "", nil, err
		}
		return "Bearer " + token.AccessToken, token, nil
	}
	return "", nil, nil
}

// token returns a valid token, which it fetches if none is kept.
func (s *sender) token(ctx context.Context, by way, to nf.VNFSubscription) (*oauth2.Token, error) {
	s.mu.Lock()
	kept := s.tokens[to.ID]
	s.mu.Unlock()
	if kept.Valid() {
		return kept, nil
	}
	got, err, _ := s.fetches.Do(to.ID, func() (any, error) { return s.fetch(ctx, by, to) })
	if err != nil {
		return nil, err
	}
	return got.(*oauth2.Token), nil
}

// fetch fetches a token and keeps it. Its errors do not repeat the response.
func (s *sender) fetch(ctx context.Context, by way, to nf.VNFSubscription) (*oauth2.Token, error) {
	if err := s.hosts.Check(to.Auth.TokenURL); err != nil {
		return nil, fmt.Errorf("cannot fetch a token: its URL %w", err)
	}
	grant := clientcredentials.Config{ClientID: to.Auth.User, ClientSecret: string(to.Auth.Password), TokenURL: to.Auth.TokenURL}
	if to.Auth.Kind == nf.CallbackClientCertificate {
		grant.AuthStyle = oauth2.AuthStyleInParams // RFC 8705: the request names the client
	}
	token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, by.fetch))
	if err != nil {
		return nil, fmt.Errorf("cannot fetch a token: %w", plain(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[to.ID] = token
	return token, nil
}

// plain returns an error that does not quote the token endpoint.
func plain(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the token endpoint answered %d", refused.Response.StatusCode)
	}
	if errors.Is(err, outbound.ErrNotAllowed) || outbound.Reason(err) != "" {
		return outbound.Plain(err)
	}
	return errors.New("the token endpoint sent no valid response")
}

// reject drops a token that a callback does not accept, unless it was replaced.
func (s *sender) reject(id string, token *oauth2.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens[id] == token {
		delete(s.tokens, id)
	}
}

// forget drops the token of a subscription.
func (s *sender) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, id)
}
