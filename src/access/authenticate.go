package access

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Authenticator identifies the caller of a request. It is safe for concurrent
// use.
type Authenticator struct {
	rules     *Rules
	now       func() time.Time
	throttle  *throttle
	passwords *passwords
	issuers   *issuers
}

// NewAuthenticator returns an authenticator that applies the rules.
func NewAuthenticator(rules *Rules) *Authenticator {
	now := rules.cfg.Clock
	return &Authenticator{
		rules: rules, now: now, throttle: newThrottle(now), passwords: newPasswords(now),
		issuers: newIssuers(now, rules.cfg.Logger),
	}
}

// Authenticate returns the identity of the caller. It returns
// nf.Unauthenticated if the request has no valid credentials, and nf.TooManyRequests if
// its address has failed too often. It returns nf.Unreachable if the token
// issuer does not answer and its keys are not known, or if Keystone does not answer.
// Without an Authorization header, a token in X-Auth-Token is used, as OpenStack's
// clients send it: it is one of Keystone, if that is used, or a service token. With
// either of them, the client certificate is ignored.
func (a *Authenticator) Authenticate(r *http.Request) (nf.Identity, error) {
	rules := a.rules.current(r.Context())
	offered := credentials(r)
	if len(offered) == 0 {
		id, found, err := rules.proven(r, a.now())
		if err == nil && !found {
			err = unknown(errors.New("it has no credentials; send a token, a user and password, or a client certificate"))
		}
		return id, err
	}
	if len(offered) > 1 {
		return a.failed(r, unknown(errors.New("it has several Authorization or X-Auth-Token headers")))
	}
	scheme, proof, _ := strings.Cut(offered[0], " ")
	if strings.EqualFold(scheme, "Basic") {
		return a.basic(r, rules)
	}
	proof = strings.TrimSpace(proof)
	if a.rules.cfg.Keystone != nil && len(r.Header.Values("Authorization")) == 0 && !strings.HasPrefix(proof, tokenPrefix) {
		return a.keystone(r, proof)
	}
	id, err := a.bearer(r, rules, scheme, proof)
	if nf.KindOf(err) == nf.Unauthenticated {
		return a.failed(r, err)
	}
	return id, err
}

// noToken is the value of X-Auth-Token with which OpenStack's clients say that they
// have no token.
const noToken = "notused"

// credentials returns the values of the Authorization header or, without one, those
// that X-Auth-Token stands for.
func credentials(r *http.Request) []string {
	if offered := r.Header.Values("Authorization"); len(offered) > 0 {
		return offered
	}
	var offered []string
	for _, token := range r.Header.Values("X-Auth-Token") {
		if token = strings.TrimSpace(token); token != "" && token != noToken {
			offered = append(offered, "Bearer "+token)
		}
	}
	return offered
}

// failed counts a failure against the client's address. It returns err, or
// nf.TooManyRequests if the address has failed too often.
func (a *Authenticator) failed(r *http.Request, err error) (nf.Identity, error) {
	end, after := a.throttle.begin(addressOf(r))
	if end == nil {
		return nf.Identity{}, tooMany(after)
	}
	end(true)
	return nf.Identity{}, err
}

// Challenges returns the values of WWW-Authenticate for an unauthenticated
// request.
func (a *Authenticator) Challenges() []string {
	return []string{`Bearer realm="k8splugin"`, `Basic realm="k8splugin", charset="UTF-8"`}
}

func (a *Authenticator) bearer(r *http.Request, rules *snapshot, scheme, proof string) (nf.Identity, error) {
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
	case strings.HasPrefix(proof, tokenPrefix):
		return rules.token(proof, a.now())
	case rules.oidc != nil:
		return a.issuers.of(*rules.oidc).identity(r.Context(), proof)
	default:
		return nf.Identity{}, unknown(errors.New("its token is not a service token, and the access rules name no issuer of other tokens"))
	}
	return nf.Identity{}, unknown(errors.New("the scheme of its Authorization header is not supported"))
}

// keystone authenticates the caller by a token of Keystone.
func (a *Authenticator) keystone(r *http.Request, token string) (nf.Identity, error) {
	if id, found := a.rules.cfg.Keystone.Known(token); found {
		return id, nil
	}
	// Throttle before asking: a throttled client must not cost a request to Keystone.
	end, after := a.throttle.begin(addressOf(r))
	if end == nil {
		return nf.Identity{}, tooMany(after)
	}
	id, err := a.rules.cfg.Keystone.Identity(r.Context(), token)
	end(nf.KindOf(err) == nf.Unauthenticated)
	return id, err
}

// basic authenticates a user by password. A user that does not exist takes as
// long as one that does.
func (a *Authenticator) basic(r *http.Request, rules *snapshot) (nf.Identity, error) {
	name, password, ok := r.BasicAuth()
	u, exists := rules.users[name]
	if exists && a.passwords.remembered(u.hash, password) {
		return nf.Identity{Kind: kindUser, Name: name, Groups: u.groups}, nil
	}
	if !exists {
		u = user{hash: rules.decoy}
	}
	// Throttle before comparing: a throttled client must not cost a bcrypt run.
	end, after := a.throttle.begin(addressOf(r))
	if end == nil {
		return nf.Identity{}, tooMany(after)
	}
	proven := ok && u.hash != nil && a.passwords.right(u.hash, password) && exists
	end(!proven)
	if !proven {
		return nf.Identity{}, unknown(errors.New("the user or the password is wrong"))
	}
	return nf.Identity{Kind: kindUser, Name: name, Groups: u.groups}, nil
}

// token authenticates a service by its token. The lookup is by the token's
// hash, so its duration reveals nothing about the token.
func (s *snapshot) token(proof string, now time.Time) (nf.Identity, error) {
	t, ok := s.tokens[sha256.Sum256([]byte(proof))]
	if !ok || !t.expires.IsZero() && !now.Before(t.expires) {
		return nf.Identity{}, unknown(errors.New("the service token is unknown or has expired"))
	}
	return nf.Identity{Kind: kindToken, Name: t.name, Groups: t.groups}, nil
}

func unknown(cause error) error {
	return nf.E(nf.Unauthenticated, "authenticate", "the request", cause)
}

func tooMany(after time.Duration) error {
	return &nf.Error{Kind: nf.TooManyRequests, Op: "authenticate", Subject: "the request", RetryAfter: after,
		Err: errors.New("too many failed attempts from its address")}
}
